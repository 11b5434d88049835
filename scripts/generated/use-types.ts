// Uses the types of openapi-typescript with plain fetch. Only checked for types, never run.
import type { components, operations } from "./types";

type Schemas = components["schemas"];
type Started = operations["triggerWorkflow"]["responses"][201]["content"]["application/json"];

export function label(status: Schemas["RunStatus"]): string {
  switch (status) {
    case "scheduled":
    case "queued":
    case "running":
    case "paused":
      return "open";
    case "completed":
    case "failed":
    case "cancelled":
    case "timeout":
      return "over";
  }
}

export async function start(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/workflows/hello/trigger`, { method: "POST", body: "{}" });
  return ((await answer.json()) as Started).data.run_id;
}

/** The union of events narrows by its type. */
export function told(event: Schemas["Event"]): string {
  if (event.type === "finished") return `${event.step}: ${event.status}`;
  if (event.type === "entered") return `${event.step} waits for ${event.wait}`;
  return event.type;
}

export function question(approval: Schemas["Approval"]): string[] {
  return (approval.asks.calls ?? []).map((call) => `${call.step}: ${call.kind}`);
}
