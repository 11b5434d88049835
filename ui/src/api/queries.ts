// The query cache of server responses and its keys. Live events invalidate it; nothing polls.
import { QueryClient, queryOptions } from "@tanstack/react-query";
import { api, type Page, Problem, page, part, type Schemas } from "./client";

export type Me = Schemas["Me"];
export type Run = Schemas["Run"];
export type RunSummary = Schemas["RunSummary"];
export type Step = Schemas["Step"];
export type Workflow = Schemas["Workflow"];
export type WorkflowSummary = Schemas["WorkflowSummary"];
export type Version = Schemas["Version"];
export type Schedule = Schemas["ScheduleSummary"];
export type Approval = Schemas["Approval"];
export type Graph = Schemas["Graph"];
export type RunEvent = Schemas["Event"];

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Cached data is valid until an event invalidates it.
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      retry: (failed, error) =>
        failed < 2 && (!(error instanceof Problem) || error.status === 0 || error.status === 503),
    },
  },
});

export const me = queryOptions({ queryKey: ["me"], queryFn: () => api<Me>("/me"), staleTime: 300_000 });

export const workflows = queryOptions({
  queryKey: ["workflows"],
  queryFn: async () => {
    const all: WorkflowSummary[] = [];
    let cursor: string | undefined;
    do {
      const got = await page<WorkflowSummary>("/workflows", { limit: 1000, cursor });
      all.push(...got.data);
      cursor = got.next ?? undefined;
    } while (cursor);
    return all;
  },
});

export const workflow = (name: string) =>
  queryOptions({ queryKey: ["workflow", name], queryFn: () => api<Workflow>(`/workflows/${part(name)}`) });

export const versions = (name: string) =>
  queryOptions({
    queryKey: ["workflow", name, "versions"],
    queryFn: async () => (await page<Version>(`/workflows/${part(name)}/versions`)).data,
  });

export const schedule = (name: string) =>
  queryOptions({
    queryKey: ["workflow", name, "schedule"],
    queryFn: async () => (await page<Schedule>(`/workflows/${part(name)}/schedule`)).data,
  });

export const schedules = queryOptions({
  queryKey: ["schedules"],
  queryFn: async () => (await page<Schedule>("/schedules")).data,
});

export const run = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: async () => {
      const got = await api<Run>(`/runs/${part(id)}`);
      // A run comes with its first steps; the others follow in pages.
      let cursor: string | null | undefined = got.tasks_next;
      while (cursor) {
        const query = { limit: 1000, cursor };
        const more: Page<Schemas["StepOfRun"]> = await page(`/runs/${part(id)}/steps`, query);
        for (const step of more.data) got.tasks[step.path] = step;
        cursor = more.next;
      }
      return got;
    },
  });

export const approvals = queryOptions({
  queryKey: ["approvals"],
  queryFn: async () => (await page<Approval>("/approvals", { limit: 500 })).data,
});

export const workflowGraph = (name: string, version?: number) =>
  queryOptions({
    queryKey: ["graph", name, version ?? "newest"],
    queryFn: () => api<Graph>(`/workflows/${part(name)}/graph`, { query: { version } }),
    staleTime: version === undefined ? 0 : Number.POSITIVE_INFINITY,
  });

/** The graph of a run changes only when it is retried on another version. */
export const runGraph = (id: string, version: number) =>
  queryOptions({
    queryKey: ["graph", id, version],
    queryFn: () => api<Graph>(`/runs/${part(id)}/graph`),
    staleTime: Number.POSITIVE_INFINITY,
  });

export interface RunFilter {
  status?: string;
  workflow?: string;
  q?: string;
  label?: string;
  created_by?: string;
  since?: string;
  until?: string;
  parent?: string;
  tests?: boolean;
}

/** The newest matching runs; `more` says whether there are others. */
export const runsOf = (filter: RunFilter, limit: number) =>
  queryOptions({
    queryKey: ["runs", filter, limit],
    queryFn: async () => {
      const got = await page<RunSummary>("/runs", { ...filter, limit });
      return { runs: got.data, more: Boolean(got.next) };
    },
  });
