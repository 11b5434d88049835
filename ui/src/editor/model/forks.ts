// The open ends of a `parallel` with a `join` lead to that join implicitly. This finds them, as the engine does: inner
// forks take theirs first.

import type { Edge, Range, Step } from "./types";

export interface Fork {
  at: string;
  join: string;
  range: Range;
}

/** Steps visited at most; the engine refuses larger flows. */
const MAX_VISITS = 200_000;

export function joinOpenEnds(
  steps: readonly Step[],
  edges: readonly Edge[],
  forks: readonly Fork[],
  isOpen: (step: Step) => boolean,
): Edge[] {
  const targets = new Map<string, string[]>();
  for (const edge of edges) {
    if (edge.outlet === "error") continue;
    const list = targets.get(edge.from);
    if (list) list.push(edge.to);
    else targets.set(edge.from, [edge.to]);
  }
  const after = new Map(forks.map((fork) => [fork.at, fork.join]));
  let visits = 0;
  const regions = forks.map((fork, n) => {
    const region = new Set<string>();
    const todo = (targets.get(fork.at) ?? []).filter((to) => to !== fork.join);
    while (todo.length > 0 && visits < MAX_VISITS) {
      const at = todo.pop() as string;
      if (region.has(at)) continue;
      region.add(at);
      visits += 1;
      const behind = at === fork.at ? undefined : after.get(at);
      const next = [...(targets.get(at) ?? []), ...(behind === undefined ? [] : [behind])];
      todo.push(...next.filter((to) => to !== fork.join && to !== fork.at));
    }
    return { n, fork, region };
  });
  regions.sort((a, b) => a.region.size - b.region.size || a.n - b.n);
  const taken = new Map<string, Fork[]>();
  const joined: Edge[] = [];
  for (const { fork, region } of regions) {
    for (const step of steps) {
      if (!region.has(step.id) || !isOpen(step)) continue;
      const by = taken.get(step.id) ?? [];
      if (by.some((inner) => region.has(inner.at))) continue;
      taken.set(step.id, [...by, fork]);
      const id = `${step.id}:next>${fork.join}`;
      if (joined.some((edge) => edge.id === id)) continue;
      joined.push({
        id,
        from: step.id,
        to: fork.join,
        outlet: "next",
        label: "join",
        derived: true,
        range: fork.range,
      });
    }
  }
  return joined;
}
