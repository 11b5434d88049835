// A long list of runs that stays up to date: pages are added at the end, new runs appear at the top, and events change
// existing rows. Pure; the hook is in `useRunList`.
import type { RunSummary } from "../api/queries";
import type { LiveEvent } from "../live/stream";

export interface RunList {
  runs: RunSummary[];
  /** The cursor of the next page; null at the end, undefined before the first page. */
  next: string | null | undefined;
}

export const EMPTY: RunList = { runs: [], next: undefined };

/** Merges a reloaded first page. If it shares no run with the list, too much has happened: start over with it. */
export function withFirst(list: RunList, page: { data: RunSummary[]; next?: string | null }): RunList {
  const known = new Map(list.runs.map((run, at) => [run.id, at]));
  const last = page.data.at(-1);
  const meets = last !== undefined && known.has(last.id);
  if (list.runs.length === 0 || !meets || page.next == null) return { runs: page.data, next: page.next ?? null };
  return { runs: [...page.data, ...list.runs.slice((known.get(last.id) ?? 0) + 1)], next: list.next };
}

export function withNext(list: RunList, page: { data: RunSummary[]; next?: string | null }): RunList {
  const known = new Set(list.runs.map((run) => run.id));
  return { runs: [...list.runs, ...page.data.filter((run) => !known.has(run.id))], next: page.next ?? null };
}

/** Applies events to rows in one pass; the same list if nothing changes. `wanted`: statuses that belong in it. */
export function withEvents(list: RunList, events: LiveEvent[], wanted: readonly string[]): RunList {
  const changes = new Map<string, Partial<RunSummary>>();
  for (const event of events) {
    const change = changeBy(event);
    if (change) changes.set(event.run_id, { ...changes.get(event.run_id), ...change });
  }
  if (changes.size === 0 || !list.runs.some((run) => changes.has(run.id))) return list;
  const runs = list.runs.flatMap((run) => {
    const change = changes.get(run.id);
    if (!change) return [run];
    const changed = { ...run, ...change };
    return wanted.length > 0 && !wanted.includes(changed.status) ? [] : [changed];
  });
  return { ...list, runs };
}

function changeBy(event: LiveEvent): Partial<RunSummary> | undefined {
  switch (event.type) {
    case "started":
      return { status: "running", started_at: event.at };
    case "ended":
      return { status: (event.status as RunSummary["status"]) ?? "completed", finished_at: event.at };
    case "retried":
    case "adopted":
      return { status: "running", finished_at: null };
    default:
      return undefined;
  }
}
