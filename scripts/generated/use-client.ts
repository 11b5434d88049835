// Uses the client of @hey-api/openapi-ts. Only checked for types, never run.
import { approveStep, getRun, listRuns, putWorkflow, streamRun, triggerWorkflow } from "./client";
import { createClient } from "./client/client";
import type { Problem } from "./client";

const client = createClient({ baseUrl: "http://127.0.0.1:7070", auth: "sw_key" });

export async function start(): Promise<string> {
  const { data, error } = await triggerWorkflow({ client, path: { id: "hello" }, body: { name: "Ann" } });
  if (!data) throw new Error(told(error));
  return data.data.run_id;
}

function told(problem: Problem | undefined): string {
  return problem ? `${problem.code}: ${problem.detail}` : "no answer";
}

export async function define(text: string): Promise<void> {
  const body = new Blob([text], { type: "application/yaml" });
  const { error } = await putWorkflow({ client, path: { id: "hello" }, body });
  for (const fault of error?.errors ?? []) console.log(fault.pointer, fault.message);
}

export async function failed(run: string): Promise<string[]> {
  const { data } = await getRun({ client, path: { run }, throwOnError: true });
  const steps = Object.entries(data.data.tasks);
  return steps.filter(([, step]) => step.status === "failed").map(([path]) => path);
}

export async function watch(run: string): Promise<void> {
  const { stream } = await streamRun({ client, path: { run } });
  for await (const event of stream) if (typeof event === "object" && event.type === "ended") console.log(event.status);
}

export async function approve(run: string, step: string): Promise<void> {
  await approveStep({ client, path: { run, step }, body: { comment: "go ahead" }, throwOnError: true });
}

export async function ids(): Promise<string[]> {
  const { data } = await listRuns({ client, query: { status: "failed" } });
  return (data?.data ?? []).map((run) => run.run_id);
}
