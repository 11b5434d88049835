// Counts successful and failed runs per time slice, for the plot of the home page.
import type { RunSummary } from "../api/queries";

export interface Slice {
  from: number;
  good: number;
  bad: number;
  other: number;
}

/** Slices of equal length up to `now`; runs count where they were created. */
export function slices(runs: RunSummary[], now: number, span: number, count: number): Slice[] {
  const length = span / count;
  const end = Math.ceil(now / length) * length;
  const all: Slice[] = Array.from({ length: count }, (_, at) => ({
    from: end - (count - at) * length,
    good: 0,
    bad: 0,
    other: 0,
  }));
  for (const run of runs) {
    const at = Math.floor((Date.parse(run.created_at) - (end - span)) / length);
    const slice = all[at];
    if (!slice) continue;
    if (run.status === "completed") slice.good += 1;
    else if (run.status === "failed" || run.status === "timeout") slice.bad += 1;
    else slice.other += 1;
  }
  return all;
}
