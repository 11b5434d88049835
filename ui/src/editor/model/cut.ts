// Removes entries and items from a collection, with their commas, dashes and comments.

import { beginsLine, lineEnd, lineStart, nextLine, type Splice } from "./splice";
import type { MapNode, Seq } from "./tree";

/** An entry of a map or an item of a list: where it starts (its key or dash) and ends. */
interface Part {
  start: number;
  end: number;
}

export function partsOf(text: string, node: MapNode | Seq): Part[] {
  if (node.kind === "map")
    return node.entries.map((entry) => ({ start: entry.keyStart, end: Math.max(entry.keyEnd, entry.value.end) }));
  return node.items.map((item) => ({ start: node.flow ? item.start : dash(text, item.start), end: item.end }));
}

/** The dash of an item that starts at `at`, past anchors and tags. */
function dash(text: string, at: number): number {
  let found = text.lastIndexOf("-", at);
  while (found > 0 && !/^-(\s|$)/.test(text.slice(found, found + 2))) found = text.lastIndexOf("-", found - 1);
  return found;
}

/** `after` is where the node's parent ends its part of the line: behind the key's colon, or the dash. */
export function cut(text: string, node: MapNode | Seq, indexes: ReadonlySet<number>, after: number): Splice[] {
  if (indexes.size === 0) return [];
  const parts = partsOf(text, node);
  if (indexes.size >= parts.length) return [emptied(text, node, after)];
  return node.flow ? cutFlow(text, parts, indexes) : cutBlock(text, parts, indexes);
}

function emptied(text: string, node: MapNode | Seq, after: number): Splice {
  const empty = node.kind === "map" ? "{}" : "[]";
  if (node.flow) return { start: node.start, end: node.end, text: empty };
  const space = after === 0 || /\s/.test(text[after - 1] ?? "") ? "" : " ";
  return { start: after, end: node.end, text: space + empty };
}

function cutBlock(text: string, parts: Part[], indexes: ReadonlySet<number>): Splice[] {
  const splices: Splice[] = [];
  for (const [n, part] of parts.entries()) {
    if (!indexes.has(n)) continue;
    if (beginsLine(text, part.start)) {
      splices.push(wholeLines(text, part, n === 0 ? 0 : (parts[n - 1]?.end ?? 0)));
      continue;
    }
    // The first key behind a dash: the next one that stays moves up to it.
    let next = n + 1;
    while (indexes.has(next)) next += 1;
    splices.push({ start: part.start, end: parts[next]?.start ?? part.end, text: "" });
    for (let skipped = n + 1; skipped < next; skipped += 1) parts[skipped] = { start: -1, end: -1 };
  }
  return splices.filter((one) => one.start >= 0);
}

/** The lines of a part, with the comment right above that is indented as it is. */
function wholeLines(text: string, part: Part, floor: number): Splice {
  if (part.start < 0) return { start: -1, end: -1, text: "" };
  let start = lineStart(text, part.start);
  const indent = text.slice(start, part.start);
  while (start > floor) {
    const above = lineStart(text, start - 1);
    const line = text.slice(above, start);
    if (above < floor || !line.startsWith(`${indent}#`)) break;
    start = above;
  }
  const end = nextLine(text, part.end);
  // If the text has no final line break, removing the last line also removes the line break before it.
  if (end === text.length && text[end - 1] !== "\n" && start > 0) {
    const before = text[start - 2] === "\r" ? start - 2 : start - 1;
    return { start: before, end, text: "" };
  }
  return { start, end, text: "" };
}

function cutFlow(text: string, parts: Part[], indexes: ReadonlySet<number>): Splice[] {
  const splices: Splice[] = [];
  let kept = parts.length - 1;
  while (indexes.has(kept)) kept -= 1;
  const lastKept = parts[kept];
  const last = parts.at(-1);
  if (lastKept && last && kept < parts.length - 1) {
    const comma = commaAfter(text, lastKept.end);
    const lineBreak = lineEnd(text, comma);
    // Text after the comma on its line is a comment on the entry that stays.
    if (lineBreak < (parts[kept + 1]?.start ?? 0)) {
      splices.push({ start: comma, end: comma + 1, text: "" }, { start: lineBreak, end: last.end, text: "" });
    } else {
      splices.push({ start: lastKept.end, end: last.end, text: "" });
    }
  }
  for (let n = 0; n < kept; n += 1) {
    const part = parts[n];
    const next = parts[n + 1];
    if (!indexes.has(n) || !part || !next) continue;
    const comma = commaAfter(text, part.end);
    const own = beginsLine(text, part.start) && nextLine(text, comma) <= next.start;
    if (own) splices.push({ start: lineStart(text, part.start), end: nextLine(text, comma), text: "" });
    else splices.push({ start: part.start, end: next.start, text: "" });
  }
  return splices;
}

/** The comma after a part that is not the last; comments may precede it. */
export function commaAfter(text: string, at: number): number {
  let found = at;
  while (found < text.length && text[found] !== ",") {
    if (text[found] === "#") found = lineEnd(text, found);
    else found += 1;
  }
  return found;
}
