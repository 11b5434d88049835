// What changed between two versions of a graph, step by step.
import type { Graph } from "../api/queries";

export type Change = "same" | "added" | "removed" | "changed";

export interface Both {
  graph: Graph;
  /** By path of the step. */
  changes: Map<string, Change>;
}

/** One graph with the steps and edges of both; removed steps come last. */
export function bothGraphs(before: Graph, after: Graph): Both {
  const changes = new Map<string, Change>();
  const old = new Map(before.nodes.map((node) => [node.path, node]));
  const nodes = [...after.nodes];
  const place = new Map(nodes.map((node, at) => [node.path, at]));
  for (const node of after.nodes) {
    const was = old.get(node.path);
    const same = was && was.kind === node.kind && was.detail === node.detail;
    changes.set(node.path, was ? (same ? "same" : "changed") : "added");
  }
  for (const node of before.nodes) {
    if (place.has(node.path)) continue;
    changes.set(node.path, "removed");
    place.set(node.path, nodes.length);
    const parent = node.parent == null ? undefined : before.nodes[node.parent]?.path;
    nodes.push({ ...node, parent: parent === undefined ? null : (place.get(parent) ?? null) });
  }
  const name = (graph: Graph, edge: Graph["edges"][number]) =>
    `${graph.nodes[edge.from]?.path}\n${graph.nodes[edge.to]?.path}\n${edge.label}`;
  const edges = [...after.edges];
  const there = new Set(after.edges.map((edge) => name(after, edge)));
  for (const edge of before.edges) {
    if (there.has(name(before, edge))) continue;
    const from = place.get(before.nodes[edge.from]?.path ?? "");
    const to = place.get(before.nodes[edge.to]?.path ?? "");
    // A removed edge between existing steps marks its target as changed.
    if (from === undefined || to === undefined) continue;
    const target = nodes[to]?.path ?? "";
    const gone = changes.get(nodes[from]?.path ?? "") === "removed" || changes.get(target) === "removed";
    if (gone) edges.push({ ...edge, from, to });
    else if (changes.get(target) === "same") changes.set(target, "changed");
  }
  return { graph: { ...after, nodes, edges }, changes };
}
