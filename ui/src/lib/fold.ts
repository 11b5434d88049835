// A run's steps as its graph shows them: one box per step of the definition, with counts where there were many.
import type { Step } from "../api/queries";
import { pattern } from "./paths";

export interface Folded {
  /** The status of the box: the most important of all. */
  status: string;
  count: number;
  /** Counts by status. */
  by: Record<string, number>;
  /** The paths of the steps, in order. */
  paths: string[];
  attempt: number;
}

/** Priority of statuses if steps differ: needing attention, then in progress, then finished. */
const TELLING = [
  "failed",
  "timeout",
  "template_error",
  "waiting",
  "running",
  "sleeping",
  "denied",
  "cancelled",
  "pending",
  "success",
  "received",
  "skipped",
];

function rank(status: string): number {
  const at = TELLING.indexOf(status);
  return at < 0 ? TELLING.length : at;
}

/** By pattern: `each[].charge`. */
export function fold(tasks: Record<string, Step>): Map<string, Folded> {
  const all = new Map<string, Folded>();
  for (const [path, step] of Object.entries(tasks)) {
    const name = pattern(path);
    const one = all.get(name);
    if (!one) {
      all.set(name, { status: step.status, count: 1, by: { [step.status]: 1 }, paths: [path], attempt: step.attempt });
      continue;
    }
    one.count += 1;
    one.by[step.status] = (one.by[step.status] ?? 0) + 1;
    one.paths.push(path);
    one.attempt = Math.max(one.attempt, step.attempt);
    if (rank(step.status) < rank(one.status)) one.status = step.status;
  }
  return all;
}

/** `998 success, 2 failed`. */
export function counted(folded: Folded, word: (status: string) => string): string {
  const parts = Object.entries(folded.by).sort(([a], [b]) => rank(a) - rank(b));
  return parts.map(([status, count]) => `${count} ${word(status)}`).join(", ");
}
