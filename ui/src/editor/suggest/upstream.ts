// What a step can read: the steps that come before it, in its own scope and in those around it, and the loops it is in.

import type { Edge, Model, Step } from "../model/types";

/** Everything from which an edge leads to `step`, directly or not. In a cycle a step also precedes itself. */
function before(edges: readonly Edge[], step: string): Set<string> {
  const into = new Map<string, string[]>();
  for (const edge of edges) into.set(edge.to, [...(into.get(edge.to) ?? []), edge.from]);
  const found = new Set<string>();
  const todo = [...(into.get(step) ?? [])];
  while (todo.length > 0) {
    const at = todo.pop() as string;
    if (found.has(at)) continue;
    found.add(at);
    todo.push(...(into.get(at) ?? []));
  }
  return found;
}

/** The steps that can have ended when `id` starts; if there is no such step, those visible to the run's output. */
export function upstream(model: Model, id: string | undefined): Step[] {
  const step = model.steps.find((one) => one.id === id);
  if (!step) return model.steps.filter((one) => one.parent === undefined);
  const ids = before(model.edges, step.id);
  for (let around = step.parent; around !== undefined; ) {
    for (const one of before(model.edges, around)) ids.add(one);
    const scope: string = around;
    around = model.steps.find((one) => one.id === scope)?.parent;
  }
  return model.steps.filter((one) => ids.has(one.id));
}

/** Whether `item` and `index` are known there. */
export function isInLoop(model: Model, id: string | undefined): boolean {
  const step = model.steps.find((one) => one.id === id);
  if (!step) return false;
  if (step.parent !== undefined) return true;
  return loopsAround(model, step.id).length > 0;
}

/** The loop nodes of a graph whose body a node is in. */
export function loopsAround(model: Model, id: string): Step[] {
  if (model.dialect !== "graph") return [];
  return model.steps.filter((loop) => {
    if (loop.kind !== "each" || loop.id === id) return false;
    const body = new Set<string>();
    const todo = model.edges.filter((edge) => edge.from === loop.id && edge.outlet === "loop").map((edge) => edge.to);
    while (todo.length > 0) {
      const at = todo.pop() as string;
      if (at === loop.id || body.has(at)) continue;
      body.add(at);
      todo.push(...model.edges.filter((edge) => edge.from === at).map((edge) => edge.to));
    }
    return body.has(id);
  });
}
