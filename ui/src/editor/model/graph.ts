// The graph dialect: reads nodes and edges as a canvas saves them, with the engine's field names or React Flow's.

import { type Dialect, type Drawn, fieldsOf } from "./dialect";
import { writeGraph } from "./graphWrite";
import { kindOfNode } from "./kinds";
import { child, keys, type Node, resolve, textOf, toJson } from "./tree";
import type { Edge, Json, Kind, Outlet, Path, Point, Step } from "./types";

export const graph: Dialect = { name: "graph", read, write: writeGraph };

/** Objects of a node that hold its fields, the outermost first. */
export const LAYERS: readonly Path[] = [[], ["nodeConfig"], ["config"], ["data"], ["data", "nodeConfig"]];

/** Fields of a node that do not belong to its kind. */
const NOT_FIELDS = new Set([
  ...[
    "nodeID",
    "id",
    "nodeType",
    "type",
    "nodeConfig",
    "config",
    "data",
    "position",
    "positionAbsolute",
    "width",
    "height",
  ],
  ...[
    "measured",
    "selected",
    "dragging",
    "style",
    "className",
    "sourcePosition",
    "targetPosition",
    "zIndex",
    "parentId",
  ],
]);

const SUCCESS = new Set(["output", "success", "default", ""]);

function read(root: Node): Drawn {
  const drawn: Drawn = { steps: [], edges: [], faults: [] };
  const nodes = resolve(child(root, "nodes"));
  if (nodes?.kind === "seq") {
    for (const [n, node] of nodes.items.entries()) {
      const step = stepOfNode(node, n);
      if (step && !drawn.steps.some((one) => one.id === step.id)) drawn.steps.push(step);
    }
  }
  const edges = resolve(child(root, "edges"));
  if (edges?.kind !== "seq") return drawn;
  const byId = new Map(drawn.steps.map((step) => [step.id, step]));
  const seen = new Set<string>();
  for (const node of edges.items) {
    const edge = edgeOfNode(node, byId);
    if (!edge || seen.has(edge.id)) continue;
    seen.add(edge.id);
    drawn.edges.push(edge);
    const from = byId.get(edge.from);
    if (from && !from.outlets.some((outlet) => outlet.id === edge.outlet))
      from.outlets.push({ id: edge.outlet, label: edge.outlet });
  }
  return drawn;
}

export function idOf(node: Node): string | undefined {
  return nameText(child(node, "nodeID") ?? child(node, "id"));
}

/** The two ends of an edge, and the handle as it is written. */
export function endsOf(node: Node): { from: string | undefined; to: string | undefined; handle: string } {
  return {
    from: nameText(child(node, "upstreamNodeID") ?? child(node, "source")),
    to: nameText(child(node, "downstreamNodeID") ?? child(node, "target")),
    handle: textOf(child(node, "sourceHandle")) ?? "",
  };
}

function nameText(node: Node | undefined): string | undefined {
  const at = resolve(node);
  return at?.kind === "scalar" && at.value !== null ? String(at.value) : undefined;
}

function layer(node: Node, path: Path): Node | undefined {
  return path.reduce<Node | undefined>((found, key) => child(found, key), node);
}

function stepOfNode(node: Node, n: number): Step | undefined {
  const id = idOf(node);
  if (id === undefined || resolve(node)?.kind !== "map") return undefined;
  const fields: Record<string, Json> = {};
  for (const path of [...LAYERS].reverse()) {
    const at = layer(node, path);
    if (resolve(at)?.kind === "map" && at)
      Object.assign(
        fields,
        fieldsOf(
          at,
          keys(at).filter((key) => NOT_FIELDS.has(key)),
        ),
      );
  }
  const inner = [layer(node, ["data"]), layer(node, ["nodeConfig"]), layer(node, ["data", "nodeConfig"])];
  const type =
    textOf(child(node, "nodeType")) ??
    inner.map((one) => textOf(child(one, "nodeType"))).find(Boolean) ??
    textOf(child(node, "type"));
  const kind = kindOfNode(type);
  const step: Step = {
    id,
    name: id,
    kind,
    path: ["nodes", n],
    range: { start: node.start, end: node.end },
    fields,
    outlets: outlets(kind, fields),
  };
  if (typeof fields.label === "string" && fields.label !== "") step.label = fields.label;
  if (fields.isDisabled === true) step.disabled = true;
  const position = pointOf(toJson(child(node, "position")));
  if (position) step.position = position;
  return step;
}

function pointOf(value: Json): Point | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  const { x, y } = value;
  return typeof x === "number" && typeof y === "number" ? { x, y } : undefined;
}

function outlets(kind: Kind, fields: Record<string, Json>): Outlet[] {
  const error: Outlet = { id: "error", label: "on error", bad: true };
  if (kind === "end") return [];
  if (kind === "start") return [{ id: "success", label: "then" }];
  if (kind === "each") return [{ id: "loop", label: "each item" }, { id: "done", label: "after all" }, error];
  if (kind === "approval")
    return [{ id: "success", label: "approved" }, { id: "denied", label: "denied", bad: true }, error];
  if (kind === "condition") return branches(fields);
  if (kind === "sleep") return [{ id: "success", label: "then" }];
  return [{ id: "success", label: "then" }, error];
}

function branches(fields: Record<string, Json>): Outlet[] {
  const list: Outlet[] = [];
  for (const branch of Array.isArray(fields.branches) ? fields.branches : []) {
    if (branch === null || typeof branch !== "object" || Array.isArray(branch) || typeof branch.id !== "string")
      continue;
    list.push({ id: branch.id, label: typeof branch.label === "string" ? branch.label : branch.id });
  }
  const otherwise = defaultOutlet(fields);
  if (!list.some((outlet) => outlet.id === otherwise))
    list.push({ id: otherwise, label: otherwise === "default" ? "else" : otherwise });
  return list;
}

function defaultOutlet(fields: Record<string, Json>): string {
  return typeof fields.defaultBranch === "string" && fields.defaultBranch !== "" ? fields.defaultBranch : "default";
}

/** The outlet that a handle means on a step. */
export function outletOf(step: Step, handle: string): string {
  if (handle === "error" || handle === "denied") return handle;
  if (step.kind === "condition") {
    if (step.outlets.some((outlet) => outlet.id === handle)) return handle;
    return ["default", "else", ""].includes(handle) ? defaultOutlet(step.fields) : handle;
  }
  if (step.kind === "each")
    return handle === "loop"
      ? "loop"
      : handle === "completed" || handle === "done" || SUCCESS.has(handle)
        ? "done"
        : handle;
  return SUCCESS.has(handle) ? "success" : handle;
}

function edgeOfNode(node: Node, steps: ReadonlyMap<string, Step>): Edge | undefined {
  const { from, to, handle } = endsOf(node);
  const source = from === undefined ? undefined : steps.get(from);
  if (!source || to === undefined || !steps.has(to)) return undefined;
  const outlet = outletOf(source, handle);
  const edge: Edge = {
    id: `${source.id}:${outlet}>${to}`,
    from: source.id,
    to,
    outlet,
    range: { start: node.start, end: node.end },
  };
  const label = source.outlets.find((one) => one.id === outlet)?.label;
  if (label !== undefined && outlet !== "success") edge.label = label;
  return edge;
}
