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
  /** When the first began, and when the last ended; none while one goes on. */
  began: string | undefined;
  ended: string | undefined;
  /** All have ended. */
  done: boolean;
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

const OPEN = ["pending", "running", "sleeping", "waiting"];

export function rank(status: string): number {
  const at = TELLING.indexOf(status);
  return at < 0 ? TELLING.length : at;
}

/** By pattern: `each[].charge`. */
export function fold(tasks: Record<string, Step>): Map<string, Folded> {
  const all = new Map<string, Folded>();
  for (const [path, step] of Object.entries(tasks)) {
    const name = pattern(path);
    const one = all.get(name);
    const done = !OPEN.includes(step.status);
    if (!one) {
      all.set(name, {
        status: step.status,
        count: 1,
        by: { [step.status]: 1 },
        paths: [path],
        attempt: step.attempt,
        began: step.started_at ?? undefined,
        ended: done ? (step.finished_at ?? undefined) : undefined,
        done,
      });
      continue;
    }
    one.count += 1;
    one.by[step.status] = (one.by[step.status] ?? 0) + 1;
    one.paths.push(path);
    one.attempt = Math.max(one.attempt, step.attempt);
    if (step.started_at && (!one.began || step.started_at < one.began)) one.began = step.started_at;
    one.done &&= done;
    if (!one.done) one.ended = undefined;
    else if (step.finished_at && (!one.ended || step.finished_at > one.ended)) one.ended = step.finished_at;
    if (rank(step.status) < rank(one.status)) one.status = step.status;
  }
  return all;
}

/** `998 success, 2 failed`. */
export function counted(folded: Pick<Folded, "by">, word: (status: string) => string): string {
  const parts = Object.entries(folded.by).sort(([a], [b]) => rank(a) - rank(b));
  return parts.map(([status, count]) => `${count} ${word(status)}`).join(", ");
}

/** How long it took in milliseconds, if it has ended. */
export function lasted(folded: Folded): number | undefined {
  return folded.began && folded.ended ? Date.parse(folded.ended) - Date.parse(folded.began) : undefined;
}

/** How long each box took as a share of the longest. Loops and for_each last as long as all inside, so they do not count. */
export function heat(all: Map<string, Folded>, scopes: ReadonlySet<string>): Map<string, number> {
  const times = [...all].flatMap(([path, one]) => {
    const ms = scopes.has(path) ? undefined : lasted(one);
    return ms === undefined ? [] : [[path, ms] as const];
  });
  const most = Math.max(...times.map(([, ms]) => ms), 0);
  return new Map(most > 0 ? times.map(([path, ms]) => [path, ms / most]) : []);
}
