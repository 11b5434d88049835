// The items of a for_each, or the passes of a loop: those that failed first, with what failed in them.
import type { Step } from "../api/queries";
import { rank } from "./fold";
import { holder } from "./paths";

export interface Item {
  index: number;
  /** The most telling status inside. */
  status: string;
  /** The step that has it. */
  path: string;
  error: string | undefined;
}

export function itemsOf(tasks: Record<string, Step>, scope: string): Item[] {
  const items = new Map<number, Item>();
  for (const [path, step] of Object.entries(tasks)) {
    const held = holder(path);
    if (held?.scope !== scope) continue;
    const known = items.get(held.index);
    if (known && rank(known.status) <= rank(step.status)) continue;
    items.set(held.index, { index: held.index, status: step.status, path, error: step.error?.message });
  }
  return [...items.values()].sort((a, b) => rank(a.status) - rank(b.status) || a.index - b.index);
}
