// Text replacements, and helpers for lines.

export interface Splice {
  start: number;
  end: number;
  text: string;
}

export function splice(text: string, splices: readonly Splice[]): string {
  let result = text;
  for (const { start, end, text: put } of [...splices].sort((a, b) => b.start - a.start)) {
    result = result.slice(0, start) + put + result.slice(end);
  }
  return result;
}

export function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1;
}

/** Before the line break. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  if (end < 0) return text.length;
  return text[end - 1] === "\r" && end > at ? end - 1 : end;
}

/** After the line break. */
export function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}

export function column(text: string, at: number): number {
  return at - lineStart(text, at);
}

export function beginsLine(text: string, at: number): boolean {
  return text.slice(lineStart(text, at), at).trim() === "";
}

export function newlineOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** The smallest single replacement that turns `before` into `after`. */
export function difference(before: string, after: string): Splice | null {
  if (before === after) return null;
  let start = 0;
  const least = Math.min(before.length, after.length);
  while (start < least && before[start] === after[start]) start += 1;
  let tail = 0;
  while (tail < least - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  return { start, end: before.length - tail, text: after.slice(start, after.length - tail) };
}
