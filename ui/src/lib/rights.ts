// What the signed-in user may do, so that a page offers nothing else. The server decides; this only hides.
import { useQuery } from "@tanstack/react-query";
import { me } from "../api/queries";

export type Right = "workflow.define" | "workflow.run" | "workflow.read" | "workflow.approve" | "admin" | "operator";

export function allows(grants: readonly string[], right: Right): boolean {
  return grants.includes(right) || (right !== "operator" && grants.includes("admin"));
}

export function useMay(): (right: Right) => boolean {
  const who = useQuery(me);
  const grants = who.data?.grants ?? [];
  return (right) => allows(grants, right);
}
