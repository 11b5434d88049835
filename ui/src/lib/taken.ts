// Which edges of a graph a run has taken: those between a step that is done and one that was reached through it.
import type { Graph } from "../api/queries";
import type { Folded } from "./fold";

export type Way = "taken" | "not-taken" | "open";

const BAD = ["failed", "timeout", "denied", "template_error"];

export function ways(graph: Graph, folded: Map<string, Folded>, over: boolean): Way[] {
  return graph.edges.map((edge) => {
    const from = folded.get(graph.nodes[edge.from]?.path ?? "");
    const to = folded.get(graph.nodes[edge.to]?.path ?? "");
    const not: Way = over || to?.status === "skipped" ? "not-taken" : "open";
    if (edge.style === "back") return (to?.count ?? 0) > 1 ? "taken" : not;
    // The start of a graph has no state.
    const start = graph.nodes[edge.from]?.kind === "start";
    if (!to?.began || (!from && !start) || (from && !from.done)) return not;
    const failed = from !== undefined && BAD.includes(from.status);
    if (edge.style === "error") return failed ? "taken" : not;
    // After a failure a plain edge is only taken if it has a condition that asks for it.
    return !failed || edge.label !== "" || from.count > 1 ? "taken" : not;
  });
}
