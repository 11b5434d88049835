// Writes changes of a flow into the fields that name the next step.

import { checkName, edgeOf, has, type Simple, sameScope, setField, stepOf } from "./dialect";
import type { Draft } from "./draft";
import { named, targetKey } from "./flow";
import { renameReferences } from "./references";
import { writeTask } from "./tasks";
import { type Edge, type Json, type Model, Refused, type Step } from "./types";

export function writeFlow(draft: Draft, model: Model, change: Simple): void {
  if (inBody(model, change)) return writeTask(draft, model, change);
  switch (change.type) {
    case "addStep":
      checkName(model, change.name, undefined);
      return draft.set(["flow", change.name], change.fields ?? {});
    case "removeStep":
      return removeStep(draft, model, stepOf(model, change.step));
    case "rename":
      return rename(draft, model, stepOf(model, change.step), change.name);
    case "setField":
      return setField(draft, stepOf(model, change.step).path, change.field, change.value);
    case "connect":
      return connect(draft, model, stepOf(model, change.from), stepOf(model, change.to), change.outlet);
    case "disconnect":
      return disconnect(draft, model, edgeOf(model, change.edge));
    case "move":
      return;
  }
}

/** Bodies of `for_each` are tasks. */
function inBody(model: Model, change: Simple): boolean {
  if (change.type === "addStep") return change.parent !== undefined;
  if (change.type === "move") return false;
  const id =
    change.type === "connect"
      ? change.from
      : change.type === "disconnect"
        ? edgeOf(model, change.edge).from
        : change.step;
  if (change.type === "connect") sameScope(stepOf(model, change.from), stepOf(model, change.to));
  return stepOf(model, id).parent !== undefined;
}

function connect(draft: Draft, model: Model, from: Step, to: Step, outlet: string): void {
  const path = from.path;
  const { next, join, parallel, branch, done } = from.fields;
  if (outlet === "error") return draft.set([...path, "on_error"], to.name);
  if (outlet === "branch:+") return addCase(draft, from, to.name);
  const number = /^branch:(\d+)$/.exec(outlet)?.[1];
  if (number !== undefined) {
    const entry = [...path, "branch", Number(number)];
    return draft.set([...entry, targetKey(draft.node(entry))], to.name);
  }
  if (Array.isArray(branch)) throw new Refused("This step uses `branch`: connect from one of its cases.");
  if (model.edges.some((edge) => edge.from === from.id && edge.to === to.id && edge.outlet === "next" && !edge.derived))
    return;
  if (Array.isArray(parallel)) {
    return parallel.length > 0
      ? draft.append([...path, "parallel"], to.name)
      : draft.set([...path, "parallel"], [to.name]);
  }
  if (done) draft.remove([...path, "done"]);
  const before = has(from.fields, "next") ? next : join;
  if (before === undefined || before === null) return draft.set([...path, "next"], to.name);
  // Two at once are a fork.
  draft.set([...path, "parallel"], [before as Json, to.name]);
  draft.remove([...path, has(from.fields, "next") ? "next" : "join"]);
}

function addCase(draft: Draft, from: Step, to: string): void {
  const path = [...from.path, "branch"];
  const cases = (from.fields.branch as Json[] | undefined) ?? [];
  const last = cases.at(-1);
  const closed =
    last !== null && typeof last === "object" && !Array.isArray(last) && (!("if" in last) || last.if === "else");
  // biome-ignore lint/suspicious/noThenProperty: a key of the format, and nothing awaits the object
  const otherwise = { then: to };
  if (!closed) return cases.length > 0 ? draft.append(path, otherwise) : draft.set(path, [otherwise]);
  draft.set(path, [...cases.slice(0, -1), { if: "result == 'ok'", ...otherwise }, last]);
}

function disconnect(draft: Draft, model: Model, edge: Edge): void {
  if (edge.derived) throw new Refused("This connection comes from a `join`: change that field on the forking step.");
  drop(draft, model, stepOf(model, edge.from), edge);
}

/** Removes one edge of a step. */
function drop(draft: Draft, model: Model, from: Step, edge: Edge): void {
  const path = from.path;
  if (edge.outlet === "error") return draft.remove([...path, "on_error"]);
  const number = /^branch:(\d+)$/.exec(edge.outlet)?.[1];
  if (number !== undefined) return dropItems(draft, [...path, "branch"], new Set([Number(number)]));
  const list = draft.json([...path, "parallel"]);
  if (Array.isArray(list)) {
    const gone = list.flatMap((name, n) => (named(model.steps, String(name))?.id === edge.to ? [n] : []));
    const left = list.filter((_, n) => !gone.includes(n));
    const [only] = left;
    const plain = from.kind !== "fork" && !has(from.fields, "join");
    if (left.length === 1 && plain && only !== undefined) {
      draft.set([...path, "next"], only);
      return draft.remove([...path, "parallel"]);
    }
    return dropItems(draft, [...path, "parallel"], new Set(gone));
  }
  draft.remove([...path, has(from.fields, "next") ? "next" : "join"]);
}

function dropItems(draft: Draft, path: readonly (string | number)[], gone: ReadonlySet<number>): void {
  const list = draft.json(path);
  if (Array.isArray(list) && gone.size >= list.length) draft.remove(path);
  else draft.removeItems(path, gone);
}

function removeStep(draft: Draft, model: Model, step: Step): void {
  if (step.id === "start")
    throw new Refused(
      "A flow begins with its step `start`: change what it does, or call another step `start` in the text.",
    );
  for (const one of model.steps) {
    if (one.parent !== undefined || one.id === step.id) continue;
    const into = model.edges.filter((edge) => edge.from === one.id && edge.to === step.id && !edge.derived);
    const cases = into.flatMap((edge) => /^branch:(\d+)$/.exec(edge.outlet)?.[1] ?? []).map(Number);
    if (cases.length > 0) dropItems(draft, [...one.path, "branch"], new Set(cases));
    for (const edge of into) if (!edge.outlet.startsWith("branch:")) drop(draft, model, one, edge);
    if (has(one.fields, "parallel") && one.fields.join === step.name) draft.remove([...one.path, "join"]);
  }
  draft.remove(step.path);
}

/** The first step keeps its key, which identifies it, and gets a separate name. */
function rename(draft: Draft, model: Model, step: Step, name: string): void {
  if (name === step.name) return;
  checkName(model, name, undefined, step.id);
  for (const one of model.steps) if (one.parent === undefined) renameTargets(draft, one, step.name, name);
  renameReferences(draft, step, step.name, name);
  if (step.id === "start") setField(draft, step.path, ["name"], name === "start" ? undefined : name);
  else draft.renameKey(step.path, name);
}

function renameTargets(draft: Draft, step: Step, from: string, to: string): void {
  for (const field of ["next", "join", "on_error"])
    if (step.fields[field] === from) draft.set([...step.path, field], to);
  const { parallel, branch } = step.fields;
  if (Array.isArray(parallel)) {
    for (const [n, name] of parallel.entries()) if (name === from) draft.set([...step.path, "parallel", n], to);
  }
  if (!Array.isArray(branch)) return;
  for (const n of branch.keys()) {
    const entry = [...step.path, "branch", n];
    const target = [...entry, targetKey(draft.node(entry))];
    if (draft.json(target) === from) draft.set(target, to);
  }
}
