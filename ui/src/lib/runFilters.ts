// Filters of the list of runs that have a name, and ranges of time in one click. Names are kept in this browser.
import type { RunFilter, RunSummary } from "../api/queries";

const KEY = "stepwell.run-filters";
const MOST = 20;

export interface Saved {
  name: string;
  filter: RunFilter;
}

export const RANGES: [string, number][] = [
  ["1 h", 3_600_000],
  ["24 h", 86_400_000],
  ["7 d", 604_800_000],
  ["30 d", 2_592_000_000],
];

/** The filter with runs of the last so many milliseconds. Whole minutes, so that pages of one click agree. */
export function within(filter: RunFilter, ms: number, now: number): RunFilter {
  const { until: _, ...rest } = filter;
  return { ...rest, since: new Date(Math.floor((now - ms) / 60_000) * 60_000).toISOString() };
}

export function savedFilters(): Saved[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.name === "string" && isFilter(one.filter)) : [];
  } catch {
    return [];
  }
}

function isFilter(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The list with this one first; a name is there once. */
export function withSaved(list: Saved[], one: Saved): Saved[] {
  return [one, ...list.filter((other) => other.name !== one.name)].slice(0, MOST);
}

export function keepFilters(list: Saved[]): void {
  localStorage.setItem(KEY, JSON.stringify(list));
}

export type Order = "newest" | "oldest" | "longest" | "shortest" | "workflow";

export const ORDERS: [Order, string][] = [
  ["newest", "newest first"],
  ["oldest", "oldest first"],
  ["longest", "longest first"],
  ["shortest", "shortest first"],
  ["workflow", "by workflow"],
];

/** How long a run took, or has taken; none if it has not begun. */
export function duration(run: RunSummary, now: number): number | undefined {
  if (!run.started_at) return undefined;
  return Math.max((run.finished_at ? Date.parse(run.finished_at) : now) - Date.parse(run.started_at), 0);
}

/** Sorts what is loaded; the server sends the newest first. */
export function sorted(runs: RunSummary[], order: Order, now: number): RunSummary[] {
  if (order === "newest") return runs;
  if (order === "oldest") return [...runs].reverse();
  if (order === "workflow") return [...runs].sort((a, b) => a.workflow.localeCompare(b.workflow));
  const sign = order === "longest" ? -1 : 1;
  const none = order === "longest" ? -1 : Number.POSITIVE_INFINITY;
  const times = new Map(runs.map((run) => [run.id, duration(run, now) ?? none]));
  return [...runs].sort((a, b) => sign * ((times.get(a.id) ?? 0) - (times.get(b.id) ?? 0)));
}
