// The flow dialect: steps that name the next one. How they are read, and their outlets.

import { type Dialect, type Drawn, names } from "./dialect";
import { writeFlow } from "./flowWrite";
import { type Fork, joinOpenEnds } from "./forks";
import { readBody, stepAt } from "./tasks";
import { child, keys, type Node, resolve, textOf } from "./tree";
import type { Edge, Outlet, Step } from "./types";

export const flow: Dialect = { name: "flow", read, write: writeFlow };

function read(root: Node): Drawn {
  const drawn: Drawn = { steps: [], edges: [], faults: [] };
  const map = resolve(child(root, "flow"));
  if (map?.kind !== "map") return drawn;
  const inner: Drawn[] = [];
  for (const entry of map.entries) {
    if (entry.key === "<<") continue;
    const path = ["flow", entry.key];
    const step = stepAt(entry.key, entry.value, path, undefined, "flow", entry.keyStart);
    if (entry.key === "start" && typeof step.fields.name === "string") step.name = step.fields.name;
    step.outlets = outlets(entry.value);
    drawn.steps.push(step);
    if (step.kind === "each") inner.push(readBody(child(entry.value, "tasks"), [...path, "tasks"], step.id, "flow"));
  }
  const forks: Fork[] = [];
  for (const step of drawn.steps) {
    const value = child(map, step.id);
    if (value) leaving(step, value, drawn, forks);
  }
  drawn.edges.push(...joinOpenEnds(drawn.steps, drawn.edges, forks, isOpen));
  for (const body of inner) {
    drawn.steps.push(...body.steps);
    drawn.edges.push(...body.edges);
  }
  return drawn;
}

/** Whether the step does not name a next step. */
export function isOpen(step: Step): boolean {
  return (
    !step.fields.done &&
    ["next", "branch", "parallel", "join"].every(
      (name) => step.fields[name] === undefined || step.fields[name] === null,
    )
  );
}

/** A step by its key; the first also by its name. */
export function named(steps: readonly Step[], name: string): Step | undefined {
  return steps.find((step) => step.id === name) ?? steps.find((step) => step.id === "start" && step.name === name);
}

/** The key under which an entry of `branch` names its target. */
export function targetKey(entry: Node | undefined): string {
  return keys(entry).find((key) => ["then", "else", "next"].includes(key)) ?? "then";
}

function outlets(value: Node): Outlet[] {
  const list: Outlet[] = [];
  const branch = resolve(child(value, "branch"));
  if (branch?.kind === "seq") {
    for (const [n, item] of branch.items.entries()) list.push({ id: `branch:${n}`, label: condition(item) ?? "else" });
    list.push({ id: "branch:+", label: "add a case" });
  } else {
    list.push({ id: "next", label: "then" });
  }
  list.push({ id: "error", label: "on error", bad: true });
  return list;
}

function condition(entry: Node): string | undefined {
  const node = resolve(child(entry, "if"));
  if (node?.kind !== "scalar" || node.value === null || node.value === "else") return undefined;
  return String(node.value);
}

function leaving(step: Step, value: Node, drawn: Drawn, forks: Fork[]): void {
  const add = (outlet: string, name: string, start: number, end: number, label?: string) => {
    const to = named(drawn.steps, name);
    if (!to) return;
    const edge: Edge = { id: `${step.id}:${outlet}>${to.id}`, from: step.id, to: to.id, outlet, range: { start, end } };
    if (label !== undefined) edge.label = label;
    if (!drawn.edges.some((one) => one.id === edge.id)) drawn.edges.push(edge);
  };
  const branch = resolve(child(value, "branch"));
  const parallel = child(value, "parallel");
  const [join] = names(child(value, "join"), []);
  if (branch?.kind === "seq") {
    for (const [n, item] of branch.items.entries()) {
      const target = child(item, targetKey(item));
      const name = textOf(target);
      if (target && name !== undefined) add(`branch:${n}`, name, item.start, item.end, condition(item) ?? "else");
    }
  } else if (parallel && resolve(parallel)?.kind === "seq") {
    for (const one of names(parallel, [])) add("next", one.name, one.start, one.end);
    const to = join && named(drawn.steps, join.name);
    if (to && join) forks.push({ at: step.id, join: to.id, range: { start: join.start, end: join.end } });
  } else {
    const [next] = names(child(value, "next"), []);
    if (next) add("next", next.name, next.start, next.end);
    else if (join) add("next", join.name, join.start, join.end);
  }
  const onError = child(value, "on_error");
  const name = textOf(onError);
  if (onError && name !== undefined && name !== "fail" && name !== "continue")
    add("error", name, onError.start, onError.end, "on error");
}
