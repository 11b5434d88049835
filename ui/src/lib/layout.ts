// Lays out a graph: each loop or for_each is laid out separately and is then one box in its enclosing scope.
import { Graph as Dagre, layout as layOut } from "@dagrejs/dagre";

export interface LayoutNode {
  id: string;
  parent?: string;
}

export interface LayoutEdge {
  from: string;
  to: string;
  /** Leads back to an earlier step: drawn, but ignored for the order. */
  back?: boolean;
  label?: string;
}

export interface Box {
  /** Relative to its enclosing scope. */
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The inputs of a layout. */
export interface Shape {
  nodes: LayoutNode[];
  edges: LayoutEdge[];
}

export type Boxes = ReadonlyMap<string, Box>;

export const NODE = { width: 210, height: 62 };
const PADDING = { side: 24, top: 62, bottom: 24 };
const GAP = { ranks: 56, nodes: 36 };
/** Above this many boxes in one scope a simpler ranking is used, which is twice as fast. */
const MANY = 100;

export function layout(nodes: LayoutNode[], edges: LayoutEdge[]): Map<string, Box> {
  const boxes = new Map<string, Box>();
  const children = new Map<string | undefined, string[]>();
  const known = new Set(nodes.map((node) => node.id));
  const parents = new Map<string, string | undefined>();
  for (const node of nodes) {
    const parent = node.parent !== undefined && known.has(node.parent) ? node.parent : undefined;
    parents.set(node.id, parent);
    const list = children.get(parent);
    if (list) list.push(node.id);
    else children.set(parent, [node.id]);
  }
  const inside = new Map<string | undefined, LayoutEdge[]>();
  for (const edge of edges) {
    if (!known.has(edge.from) || !known.has(edge.to) || edge.from === edge.to) continue;
    const scope = parents.get(edge.from);
    if (scope !== parents.get(edge.to)) continue;
    const list = inside.get(scope);
    if (list) list.push(edge);
    else inside.set(scope, [edge]);
  }
  const place = (scope: string | undefined): { width: number; height: number } => {
    const ids = children.get(scope) ?? [];
    const sizes = new Map<string, { width: number; height: number }>();
    for (const id of ids) {
      const body = children.has(id) ? place(id) : undefined;
      const width = body ? Math.max(body.width + 2 * PADDING.side, NODE.width) : NODE.width;
      const height = body ? body.height + PADDING.top + PADDING.bottom : NODE.height;
      sizes.set(id, { width, height });
    }
    const size = placeScope(ids, sizes, inside.get(scope) ?? [], boxes);
    if (scope !== undefined) {
      for (const id of ids) {
        const box = boxes.get(id);
        if (box) boxes.set(id, { ...box, x: box.x + PADDING.side, y: box.y + PADDING.top });
      }
    }
    return size;
  };
  place(undefined);
  return boxes;
}

function placeScope(
  ids: string[],
  sizes: Map<string, { width: number; height: number }>,
  edges: LayoutEdge[],
  boxes: Map<string, Box>,
): { width: number; height: number } {
  const graph = new Dagre({ multigraph: true });
  graph.setGraph({
    rankdir: "TB",
    ranksep: GAP.ranks,
    nodesep: GAP.nodes,
    ...(ids.length > MANY ? { ranker: "tight-tree" } : {}),
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...(sizes.get(id) ?? NODE) });
  edges.forEach((edge, at) => {
    if (edge.back) return;
    const label = edge.label ? { width: Math.min(edge.label.length * 7, 160), height: 18, labelpos: "c" } : {};
    graph.setEdge(edge.from, edge.to, label, String(at));
  });
  layOut(graph);
  let [width, height] = [0, 0];
  for (const id of ids) {
    const at = graph.node(id) as { x: number; y: number };
    const size = sizes.get(id) ?? NODE;
    const box = { x: at.x - size.width / 2, y: at.y - size.height / 2, ...size };
    boxes.set(id, box);
    width = Math.max(width, box.x + box.width);
    height = Math.max(height, box.y + box.height);
  }
  return { width, height };
}
