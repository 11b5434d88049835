// The kind of a step, by dialect, and the initial fields of each kind.

import { has } from "./dialect";
import type { DialectName, Json, Kind } from "./types";

const BY_FIELD: readonly (readonly [string, Kind])[] = [
  ["url", "http"],
  ["tool", "tool"],
  ["javascript", "javascript"],
  ["query", "query"],
  ["condition", "condition"],
  ["sleep", "sleep"],
  ["until", "sleep"],
  ["wait_for_webhook", "webhook"],
  ["approval", "approval"],
  ["for_each", "each"],
  ["workflow", "workflow"],
];

const NODE_TYPES: Record<string, Kind> = {
  start: "start",
  end: "end",
  javascript: "javascript",
  dataQuery: "query",
  condition: "condition",
  delay: "sleep",
  loop: "each",
  http: "http",
  tool: "tool",
  approval: "approval",
  wait_for_webhook: "webhook",
  workflow: "workflow",
};

export function kindOfStep(fields: Record<string, Json>, dialect: "tasks" | "flow"): Kind {
  const found = BY_FIELD.find(([field]) => has(fields, field));
  if (found) return found[1];
  if (dialect === "flow" && ("tool" in fields || has(fields, "notify_user") || has(fields, "timeout_s")))
    return "approval";
  if (dialect === "flow" && has(fields, "parallel")) return "fork";
  if (["method", "headers", "body", "form"].some((field) => has(fields, field))) return "http";
  return "unknown";
}

export function kindOfNode(type: string | undefined): Kind {
  return (type !== undefined && NODE_TYPES[type]) || "unknown";
}

export function nodeType(kind: Kind): string {
  return Object.entries(NODE_TYPES).find(([, one]) => one === kind)?.[0] ?? "tool";
}

/** The kinds that can be added, by dialect. */
export function palette(dialect: DialectName): Kind[] {
  const calls: Kind[] = ["http", "tool", "javascript", "query", "workflow"];
  const waits: Kind[] = ["sleep", "webhook", "approval"];
  if (dialect === "tasks") return [...calls, ...waits, "condition", "each"];
  if (dialect === "flow") return [...calls, ...waits, "fork", "each"];
  return ["start", ...calls, ...waits, "condition", "each", "end"];
}

/** Base names of new steps. */
export const FIRST_NAME: Record<Kind, string> = {
  http: "request",
  tool: "tool",
  javascript: "code",
  query: "query",
  condition: "choose",
  sleep: "pause",
  webhook: "call-back",
  approval: "approve",
  each: "each",
  workflow: "child",
  fork: "fork",
  start: "start",
  end: "end",
  unknown: "step",
};

/** The initial fields of a new step, complete if possible. */
export function blank(kind: Kind, dialect: DialectName): Record<string, Json> {
  if (dialect === "graph") return blankNode(kind);
  const body = { step: { tool: "echo", args: { item: "{{item}}" } } };
  const fields: Partial<Record<Kind, Record<string, Json>>> = {
    http: { url: "https://example.com", method: "GET" },
    tool: { tool: "echo", args: { text: "hello" } },
    javascript: { javascript: "return ctx.input;" },
    query: { query: { connection: "main", sql: "select 1" } },
    condition: { condition: [{ id: "yes", if: "exists(input)" }, { id: "no" }] },
    sleep: { sleep: "10s" },
    webhook: { wait_for_webhook: { timeout: "1d" } },
    approval: { approval: { message: "Continue?", timeout: "1d" } },
    each: { for_each: "{{input.items}}", tasks: body },
    workflow: { workflow: "other" },
    fork: { parallel: [] },
  };
  return fields[kind] ?? { tool: "echo" };
}

function blankNode(kind: Kind): Record<string, Json> {
  const fields: Partial<Record<Kind, Record<string, Json>>> = {
    http: { url: "https://example.com", method: "GET" },
    tool: { tool: "echo", args: { text: "hello" } },
    javascript: { code: "return ctx.input;" },
    query: { connection: "main", sql: "select 1" },
    condition: { branches: [{ id: "yes", condition: "exists(input)" }], defaultBranch: "no" },
    sleep: { delaySeconds: 10 },
    webhook: { timeout: "1d" },
    approval: { message: "Continue?", timeout: "1d" },
    each: { sourceVariable: "input.items" },
    workflow: { workflow: "other" },
    end: { outputParameters: [] },
  };
  return fields[kind] ?? {};
}
