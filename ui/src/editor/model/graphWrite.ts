// Writes changes of a graph with the field names that its nodes and edges already use.

import { checkName, edgeOf, type Simple, stepOf } from "./dialect";
import type { Draft } from "./draft";
import { endsOf, idOf, LAYERS, outletOf } from "./graph";
import { nodeType } from "./kinds";
import { renameReferences } from "./references";
import { child, keys, type Node, resolve } from "./tree";
import { type Json, type Model, type Path, type Point, Refused, type Step } from "./types";

type Of<T extends Simple["type"]> = Extract<Simple, { type: T }>;

export function writeGraph(draft: Draft, model: Model, change: Simple): void {
  switch (change.type) {
    case "addStep":
      return addNode(draft, model, change);
    case "removeStep":
      return removeNode(draft, stepOf(model, change.step));
    case "rename":
      return rename(draft, model, stepOf(model, change.step), change.name);
    case "setField":
      return setField(draft, model, stepOf(model, change.step), change.field, change.value);
    case "connect":
      return connect(draft, model, change);
    case "disconnect":
      return disconnect(draft, model, change);
    case "move":
      return draft.setEach(
        change.steps.map(({ step, position }) => ({
          path: [...stepOf(model, step).path, "position"],
          value: rounded(position),
        })),
      );
  }
}

function rounded({ x, y }: Point): { x: number; y: number } {
  return { x: Math.round(x), y: Math.round(y) };
}

function itemsOf(draft: Draft, list: string): Node[] {
  const node = resolve(draft.node([list]));
  return node?.kind === "seq" ? node.items : [];
}

/** The first of these field names that the entries of a list use. */
function wordOf(items: readonly Node[], words: readonly [string, ...string[]]): string {
  return words.find((word) => items.some((item) => child(item, word) !== undefined)) ?? words[0];
}

function addNode(draft: Draft, model: Model, change: Of<"addStep">): void {
  checkName(model, change.name, undefined);
  const items = itemsOf(draft, "nodes");
  const node: Record<string, Json> = {
    [wordOf(items, ["id", "nodeID"])]: change.name,
    [wordOf(items, ["type", "nodeType"])]: nodeType(change.kind),
  };
  if (change.position) node.position = rounded(change.position);
  const fields = change.fields ?? {};
  if (Object.keys(fields).length > 0) node[wordOf(items, ["data", "nodeConfig", "config"])] = fields;
  draft.append(["nodes"], node);
  if (draft.node(["edges"]) === undefined) draft.set(["edges"], []);
}

function removeNode(draft: Draft, step: Step): void {
  const gone = new Set<number>();
  for (const [n, item] of itemsOf(draft, "edges").entries()) {
    const { from, to } = endsOf(item);
    if (from === step.id || to === step.id) gone.add(n);
  }
  draft.removeItems(["edges"], gone);
  draft.removeItems(["nodes"], new Set([Number(step.path[1])]));
}

function rename(draft: Draft, model: Model, step: Step, name: string): void {
  if (name === step.id) return;
  checkName(model, name, undefined, step.id);
  for (const [n, item] of itemsOf(draft, "edges").entries()) {
    for (const word of ["upstreamNodeID", "source", "downstreamNodeID", "target"]) {
      const end = resolve(child(item, word));
      if (end?.kind === "scalar" && String(end.value) === step.id) draft.set(["edges", n, word], name);
    }
  }
  renameReferences(draft, step, step.id, name);
  const node = draft.node(step.path);
  draft.set([...step.path, child(node, "nodeID") ? "nodeID" : "id"], name);
}

/** The path of a field, existing or new. */
function placeOf(draft: Draft, step: Step, field: string): Path {
  const node = draft.node(step.path);
  const at = (layer: Path) => layer.reduce<Node | undefined>((found, key) => child(found, key), node);
  const there = LAYERS.find((layer) => child(at(layer), field) !== undefined);
  if (there) return [...step.path, ...there];
  const inside = LAYERS.slice(1).findLast((layer) => resolve(at(layer))?.kind === "map");
  if (inside) return [...step.path, ...inside];
  const bare = keys(node).some((key) => !["id", "nodeID", "type", "nodeType", "position", "label"].includes(key));
  return bare ? step.path : [...step.path, wordOf(itemsOf(draft, "nodes"), ["data", "nodeConfig", "config"])];
}

function setField(draft: Draft, model: Model, step: Step, field: Path, value: Json | undefined): void {
  const [first] = field;
  const place = placeOf(draft, step, String(first));
  if (field.length === 1 && first === "label") followLabel(draft, model, step, value);
  if (value !== undefined) return draft.set([...place, ...field], value);
  draft.remove([...place, ...field]);
}

/** A unique label also names its node: references by that label switch to the id. */
function followLabel(draft: Draft, model: Model, step: Step, value: Json | undefined): void {
  const { label } = step;
  if (label === undefined || label === value) return;
  const alone = !model.steps.some((one) => one !== step && (one.label === label || one.id === label));
  if (alone) renameReferences(draft, step, label, step.id);
}

function connect(draft: Draft, model: Model, change: Of<"connect">): void {
  const from = stepOf(model, change.from);
  const to = stepOf(model, change.to);
  if (from.kind === "end") throw new Refused("Nothing comes after an end.");
  if (to.kind === "start") throw new Refused("Nothing leads to a start.");
  if (model.edges.some((edge) => edge.from === from.id && edge.to === to.id && edge.outlet === change.outlet)) return;
  const items = itemsOf(draft, "edges");
  const edge: Record<string, Json> = {};
  const idWord =
    items.length > 0 && items.every((item) => child(item, "id") !== undefined)
      ? "id"
      : items.length > 0 && items.every((item) => child(item, "edgeID") !== undefined)
        ? "edgeID"
        : null;
  if (idWord) edge[idWord] = freshId(items, `${from.id}-${to.id}`);
  edge[wordOf(items, ["source", "upstreamNodeID"])] = from.id;
  edge[wordOf(items, ["target", "downstreamNodeID"])] = to.id;
  if (change.outlet !== "success") edge.sourceHandle = change.outlet;
  if (draft.node(["edges"]) === undefined) return draft.set(["edges"], [edge]);
  draft.append(["edges"], edge);
}

function freshId(items: readonly Node[], base: string): string {
  const taken = new Set(items.map((item) => idOf(item)));
  let id = base;
  for (let n = 2; taken.has(id); n += 1) id = `${base}-${n}`;
  return id;
}

/** Removes every equivalent edge: a duplicate has no effect of its own. */
function disconnect(draft: Draft, model: Model, change: Of<"disconnect">): void {
  const edge = edgeOf(model, change.edge);
  const from = stepOf(model, edge.from);
  const gone = new Set<number>();
  for (const [n, item] of itemsOf(draft, "edges").entries()) {
    const ends = endsOf(item);
    if (ends.from === edge.from && ends.to === edge.to && outletOf(from, ends.handle) === edge.outlet) gone.add(n);
  }
  draft.removeItems(["edges"], gone);
}
