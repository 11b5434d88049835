// The tasks dialect: named steps that list what they need. Also the bodies of `for_each`, including those in flows.

import {
  checkName,
  type Dialect,
  type Drawn,
  edgeOf,
  fieldsOf,
  has,
  names,
  reaches,
  type Simple,
  sameScope,
  setField,
  stepOf,
} from "./dialect";
import type { Draft } from "./draft";
import { kindOfStep } from "./kinds";
import { renameReferences } from "./references";
import { child, type Node, resolve } from "./tree";
import { type Edge, type Json, type Model, type Path, Refused, type Step } from "./types";

export const tasks: Dialect = {
  name: "tasks",
  read: (root) => readBody(child(root, "tasks"), ["tasks"], undefined, "tasks"),
  write: writeTask,
};

/** The steps of a map of tasks, including those of nested bodies. */
export function readBody(
  node: Node | undefined,
  path: Path,
  parent: string | undefined,
  dialect: "tasks" | "flow",
): Drawn {
  const drawn: Drawn = { steps: [], edges: [], faults: [] };
  const map = resolve(node);
  if (map?.kind !== "map" || path.length > 40) return drawn;
  for (const entry of map.entries) {
    if (entry.key === "<<") continue;
    drawn.steps.push(stepAt(entry.key, entry.value, [...path, entry.key], parent, dialect, entry.keyStart));
  }
  const here = [...drawn.steps];
  for (const step of here) {
    const value = child(map, String(step.path.at(-1)));
    for (const need of names(child(value, "needs"), [...step.path, "needs"])) {
      const from = here.find((one) => one.name === need.name);
      if (!from) continue;
      const edge: Edge = {
        id: `${from.id}>${step.id}`,
        from: from.id,
        to: step.id,
        outlet: "next",
        range: { start: need.start, end: need.end },
      };
      if (typeof step.fields.if === "string") edge.label = "if";
      drawn.edges.push(edge);
    }
    if (step.kind === "each") {
      const inner = readBody(child(value, "tasks"), [...step.path, "tasks"], step.id, dialect);
      drawn.steps.push(...inner.steps);
      drawn.edges.push(...inner.edges);
    }
  }
  return drawn;
}

export function stepAt(
  key: string,
  value: Node,
  path: Path,
  parent: string | undefined,
  dialect: "tasks" | "flow",
  start: number,
): Step {
  const fields = fieldsOf(value);
  const id = parent === undefined ? key : `${parent}/${key}`;
  const step: Step = {
    id,
    name: key,
    kind: kindOfStep(fields, dialect),
    path,
    range: { start, end: value.end },
    fields,
    outlets: [{ id: "next", label: "then" }],
  };
  if (parent !== undefined) step.parent = parent;
  return step;
}

export function writeTask(draft: Draft, model: Model, change: Simple): void {
  switch (change.type) {
    case "addStep":
      return addTask(draft, model, change);
    case "removeStep":
      return removeTask(draft, model, stepOf(model, change.step));
    case "rename":
      return renameTask(draft, model, stepOf(model, change.step), change.name);
    case "setField":
      return setField(draft, stepOf(model, change.step).path, change.field, change.value);
    case "connect":
      return connect(draft, model, stepOf(model, change.from), stepOf(model, change.to));
    case "disconnect": {
      const edge = edgeOf(model, change.edge);
      return dropNeed(draft, stepOf(model, edge.to), stepOf(model, edge.from).name);
    }
    case "move":
      return;
  }
}

export function addTask(draft: Draft, model: Model, change: Extract<Simple, { type: "addStep" }>): void {
  checkName(model, change.name, change.parent);
  const around = change.parent === undefined ? [] : stepOf(model, change.parent).path;
  draft.set([...around, "tasks", change.name], change.fields ?? {});
}

export function removeTask(draft: Draft, model: Model, step: Step): void {
  const alone = model.steps.filter((one) => one.parent === step.parent).length === 1;
  if (alone && step.parent !== undefined) throw new Refused("A loop needs at least one step in its body.");
  for (const edge of model.edges) if (edge.from === step.id) dropNeed(draft, stepOf(model, edge.to), step.name);
  draft.remove(step.path);
}

export function renameTask(draft: Draft, model: Model, step: Step, name: string): void {
  if (name === step.name) return;
  checkName(model, name, step.parent, step.id);
  for (const edge of model.edges) {
    if (edge.from !== step.id) continue;
    const path = [...stepOf(model, edge.to).path, "needs"];
    const needs = draft.json(path);
    draft.set(path, Array.isArray(needs) ? needs.map((need) => (String(need) === step.name ? name : need)) : name);
  }
  renameReferences(draft, step, step.name, name);
  draft.renameKey(step.path, name);
}

export function connect(draft: Draft, model: Model, from: Step, to: Step): void {
  sameScope(from, to);
  if (model.edges.some((edge) => edge.from === from.id && edge.to === to.id)) return;
  if (reaches(model.edges, to.id, from.id))
    throw new Refused("That would create a cycle: tasks cannot go back to an earlier step.");
  const path = [...to.path, "needs"];
  if (!has(to.fields, "needs")) return draft.set(path, from.name);
  const needs = to.fields.needs as Json;
  if (Array.isArray(needs) && draft.node(path)?.kind === "seq" && needs.length > 0)
    return draft.append(path, from.name);
  draft.set(path, [...(Array.isArray(needs) ? needs : [needs]), from.name]);
}

export function dropNeed(draft: Draft, step: Step, name: string): void {
  const path = [...step.path, "needs"];
  const needs = draft.json(path);
  const left = Array.isArray(needs) ? needs.filter((need) => String(need) !== name) : [];
  if (left.length === 0) draft.remove(path);
  else draft.set(path, left);
}
