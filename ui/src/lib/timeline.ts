// A run on a time axis: a row per step, a bar per attempt. Loops and for_each are one row until they are expanded.
import type { Step } from "../api/queries";
import { holder, shortName } from "./paths";

export interface Bar {
  from: number;
  to: number;
  status: string;
  attempt: number;
}

export interface Line {
  path: string;
  label: string;
  depth: number;
  status: string;
  kind: string;
  bars: Bar[];
  /** Passes or items inside; 0 for a plain step. */
  inside: number;
  open: boolean;
  /** Items of an expanded scope that are not shown yet. */
  more: number;
}

export interface Timeline {
  lines: Line[];
  from: number;
  to: number;
}

interface Items {
  /** Steps of each pass or item, in order. */
  byIndex: Map<number, string[]>;
}

export interface Wanted {
  /** Expanded scopes, with the number of items shown. */
  open: ReadonlyMap<string, number>;
  now: number;
}

export function timeline(tasks: Record<string, Step>, wanted: Wanted): Timeline {
  const scopes = new Map<string, Items>();
  const top: string[] = [];
  for (const path of Object.keys(tasks)) {
    const held = holder(path);
    if (!held) {
      top.push(path);
      continue;
    }
    let items = scopes.get(held.scope);
    if (!items) {
      items = { byIndex: new Map() };
      scopes.set(held.scope, items);
    }
    const list = items.byIndex.get(held.index);
    if (list) list.push(path);
    else items.byIndex.set(held.index, [path]);
  }
  const lines: Line[] = [];
  const walk = (path: string, depth: number, label: string) => {
    const step = tasks[path];
    if (!step) return;
    const items = scopes.get(path);
    const shown = wanted.open.get(path);
    const inside = items?.byIndex.size ?? 0;
    const open = shown !== undefined && inside > 0;
    const line: Line = {
      path,
      label,
      depth,
      status: step.status,
      kind: step.kind,
      bars: bars(step, wanted.now),
      inside,
      open,
      more: 0,
    };
    lines.push(line);
    if (!open || !items) return;
    const indices = [...items.byIndex.keys()].sort((a, b) => a - b);
    line.more = Math.max(indices.length - shown, 0);
    for (const index of indices.slice(0, shown)) {
      for (const inner of items.byIndex.get(index) ?? []) walk(inner, depth + 1, `${index}: ${shortName(inner)}`);
    }
  };
  for (const path of top) walk(path, 0, shortName(path));
  const all = lines.flatMap((line) => line.bars);
  const from = all.reduce((least, bar) => Math.min(least, bar.from), Number.POSITIVE_INFINITY);
  const to = all.reduce((most, bar) => Math.max(most, bar.to), 0);
  if (all.length === 0) return { lines, from: wanted.now, to: wanted.now + 1 };
  return { lines, from, to: Math.max(to, from + 1) };
}

function bars(step: Step, now: number): Bar[] {
  const attempts = step.attempts ?? [];
  if (attempts.length > 0) {
    return attempts.map((one) => ({
      from: Date.parse(one.started_at),
      to: one.finished_at ? Date.parse(one.finished_at) : now,
      status: one.status,
      attempt: one.attempt,
    }));
  }
  if (!step.started_at) return [];
  const from = Date.parse(step.started_at);
  return [
    {
      from,
      to: step.finished_at ? Date.parse(step.finished_at) : Math.max(now, from),
      status: step.status,
      attempt: step.attempt,
    },
  ];
}

/** Round marks for an axis of this length, about `count`, in milliseconds from the start. */
export function marks(length: number, count: number): number[] {
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5,
    216e5, 432e5, 864e5,
  ];
  const step = steps.find((one) => length / one <= count) ?? Math.ceil(length / count / 864e5) * 864e5;
  const found: number[] = [];
  for (let at = 0; at <= length; at += step) found.push(at);
  return found;
}
