// Reviews of what agents wrote, as the API shows them.
import { api, page, part } from "../api/client";

export interface Review {
  id: string;
  workflow: string;
  version?: number | null;
  state: string;
  written_by: string;
  key?: string | null;
  client?: string | null;
  reason?: string | null;
  written_at: string;
}

export interface ReviewDetail extends Review {
  digest: string;
  source: string;
  base?: number | null;
  before?: string | null;
  steps: Record<"added" | "changed" | "removed", string[]>;
  new: Record<"tools" | "hosts" | "secrets" | "connections" | "workflows", string[]>;
  simulation: { status: string; steps: string[]; error?: string | null };
  policies: string[];
}

export const openReviews = {
  queryKey: ["reviews"],
  queryFn: async () => (await page<Review>("/reviews")).data,
  staleTime: 0,
};

export function reviewDetail(id: string) {
  return { queryKey: ["reviews", id], queryFn: () => api<ReviewDetail>(`/reviews/${part(id)}`), staleTime: 0 };
}

/** `agent key builder of ann, client some-client 1.0` */
export function writer(review: Review): string {
  const key = review.key ? `agent key ${review.key} of ` : "";
  return `${key}${review.written_by}${review.client ? `, client ${review.client}` : ""}`;
}

/** What a person should look at first: a line for each kind of change that there is. */
export function noteworthy(review: ReviewDetail): string[] {
  const kinds: [string, string[]][] = [
    ["New tools", review.new.tools],
    ["New hosts", review.new.hosts],
    ["New secrets", review.new.secrets],
    ["New connections", review.new.connections],
    ["New child workflows", review.new.workflows],
    ["Added steps", review.steps.added],
    ["Changed steps", review.steps.changed],
    ["Removed steps", review.steps.removed],
    ["Policies", review.policies],
  ];
  const { status, steps, error } = review.simulation;
  const simulated = `Simulation: ${status}${error ? ` (${error})` : ""}${steps.length > 0 ? `: ${steps.join(", ")}` : ""}`;
  return [
    ...kinds.filter(([, list]) => list.length > 0).map(([what, list]) => `${what}: ${list.join(", ")}`),
    simulated,
  ];
}
