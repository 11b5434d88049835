// The removed and added lines between two texts. Myers' algorithm on lines, bounded.

export interface DiffLine {
  kind: "same" | "out" | "in";
  text: string;
  /** Line numbers in the old and in the new text, from 1. */
  old?: number;
  new?: number;
}

/** Beyond this many changed lines, everything between the common start and end counts as changed. */
const MOST_CHANGES = 2_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  const lines: DiffLine[] = [];
  for (let at = 0; at < head; at += 1) lines.push({ kind: "same", text: a[at] ?? "", old: at + 1, new: at + 1 });
  lines.push(...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), head));
  for (let at = tail; at > 0; at -= 1) {
    lines.push({ kind: "same", text: a[a.length - at] ?? "", old: a.length - at + 1, new: b.length - at + 1 });
  }
  return lines;
}

function middle(a: string[], b: string[], offset: number): DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [0, 0];
  const out = () => lines.push({ kind: "out", text: a[x] ?? "", old: offset + ++x });
  const put = () => lines.push({ kind: "in", text: b[y] ?? "", new: offset + ++y });
  for (const step of path(a, b)) {
    if (step === "out") out();
    else if (step === "in") put();
    else lines.push({ kind: "same", text: a[x] ?? "", old: offset + ++x, new: offset + ++y });
  }
  return lines;
}

function path(a: string[], b: string[]): ("out" | "in" | "same")[] {
  const [n, m] = [a.length, b.length];
  const most = Math.min(n + m, MOST_CHANGES);
  let ends = new Map<number, number>([[1, 0]]);
  const trail: Map<number, number>[] = [];
  for (let d = 0; d <= most; d += 1) {
    trail.push(new Map(ends));
    const next = new Map(ends);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
      let x = down ? (ends.get(k + 1) ?? 0) : (ends.get(k - 1) ?? 0) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x >= n && x - k >= m) return walkBack(trail, n, m);
    }
    ends = next;
  }
  return [...a.map(() => "out" as const), ...b.map(() => "in" as const)];
}

function walkBack(trail: Map<number, number>[], n: number, m: number): ("out" | "in" | "same")[] {
  const steps: ("out" | "in" | "same")[] = [];
  let [x, y] = [n, m];
  for (let d = trail.length - 1; d >= 0; d -= 1) {
    const ends = trail[d] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : (ends.get(before) ?? 0);
    const fromY = d === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY) {
      steps.push("same");
      x -= 1;
      y -= 1;
    }
    if (d > 0) {
      steps.push(down ? "in" : "out");
      [x, y] = [fromX, fromY];
    }
  }
  return steps.reverse();
}
