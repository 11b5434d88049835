// Which fields the panel shows for a step, by kind and dialect. Other fields can be edited in the text.

import { has } from "../model/dialect";
import type { DialectName, Kind, Path, Step } from "../model/types";

export type FieldType =
  | "text"
  | "template"
  | "expression"
  | "number"
  | "choice"
  | "flag"
  | "value"
  | "javascript"
  | "sql";

export interface FieldSpec {
  path: Path;
  label: string;
  type: FieldType;
  help?: string;
  choices?: readonly string[];
  placeholder?: string;
  /** The default of a flag. */
  usual?: boolean;
}

export interface FieldGroup {
  title: string;
  /** Collapsed, unless one of its fields is set. */
  folded: boolean;
  fields: FieldSpec[];
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const CALLS: readonly Kind[] = ["http", "tool", "javascript", "query", "workflow"];

function field(path: string, label: string, type: FieldType, more: Partial<FieldSpec> = {}): FieldSpec {
  return { path: path.split("."), label, type, ...more };
}

export function groupsFor(step: Step, dialect: DialectName): FieldGroup[] {
  const groups: FieldGroup[] = [{ title: "What it does", folded: false, fields: mainFields(step, dialect) }];
  groups.push({ title: "When it runs", folded: false, fields: whenFields(step, dialect) });
  if (CALLS.includes(step.kind)) groups.push({ title: "Retries and time", folded: true, fields: retryFields(dialect) });
  groups.push({ title: "Details", folded: true, fields: aboutFields(step, dialect) });
  return groups.filter((group) => group.fields.length > 0);
}

function mainFields(step: Step, dialect: DialectName): FieldSpec[] {
  const graph = dialect === "graph";
  switch (step.kind) {
    case "http":
      return [
        field("url", "Address", "template", { placeholder: "https://…" }),
        field("method", "Method", "choice", { choices: METHODS, help: "default: POST" }),
        field("headers", "Headers", "value"),
        field("body", "Body", "value"),
        field("form", "Form", "value"),
      ];
    case "tool":
      return [
        field(has(step.fields, "toolName") ? "toolName" : "tool", "Tool", "text", { help: "such as echo, log, now" }),
        field("args", "Arguments", "value"),
      ];
    case "javascript":
      return [
        field(graph ? "code" : "javascript", "Code", "javascript", {
          help: "receives ctx: the input and the results of earlier steps",
        }),
        field("memory", "Memory", "text", { placeholder: "64MB" }),
      ];
    case "query": {
      const at = graph ? "" : "query.";
      return [
        field(`${at}connection`, "Connection", "text"),
        field(`${at}sql`, "Statement", "sql", { help: "values go into the parameters" }),
        field(`${at}params`, "Parameters", "value"),
        field(`${at}write`, "It writes", "flag"),
      ];
    }
    case "condition":
      return graph
        ? [
            field("branches", "Branches", "value", { help: "each has a condition and an id, which names its outlet" }),
            field("defaultBranch", "Otherwise", "text"),
          ]
        : [field("condition", "Cases", "value", { help: "the body is the id of the first case that matches" })];
    case "sleep":
      return graph
        ? [
            field("delayMinutes", "Minutes", "number"),
            field("delaySeconds", "Seconds", "number"),
            field("untilTime", "Or until", "template"),
          ]
        : [
            field("sleep", "For", "template", { placeholder: "10s, 5m, 1h30m" }),
            field("until", "Or until", "template", { placeholder: "2026-02-22T10:00:00Z" }),
          ];
    case "webhook":
      return [
        field(
          graph && !has(step.fields, "wait_for_webhook") ? "timeout" : "wait_for_webhook.timeout",
          "At most",
          "text",
          { placeholder: "1d" },
        ),
      ];
    case "approval":
      return gateFields(graph && !has(step.fields, "approval") ? "" : "approval.");
    case "each":
      return graph ? loopFields() : eachFields();
    case "workflow":
      return [field("workflow", "Workflow", "text"), field("input", "Input", "value")];
    case "end":
      return [field("outputParameters", "Output", "value", { help: "a list of {name, sourceVariable}" })];
    case "fork":
    case "start":
    case "unknown":
      return [];
  }
}

function gateFields(at: string): FieldSpec[] {
  return [
    field(`${at}message`, "Question", "template"),
    field(`${at}approvers`, "Who may answer", "value", {
      help: "a name or a list of names; default: anyone with the right",
    }),
    field(`${at}approvals`, "How many must approve", "number"),
    field(`${at}timeout`, "Open for", "text", { placeholder: "1d" }),
    field(`${at}on_timeout`, "On timeout", "choice", { choices: ["deny", "approve", "escalate"] }),
    field(`${at}escalate_to`, "Who else may answer if there is no answer", "value"),
    field(`${at}escalate_after`, "After", "text", { placeholder: "1h", help: "default: on timeout" }),
    field(`${at}notify`, "Who is notified", "value", { help: "default: everyone who may answer" }),
    field(`${at}form`, "Form (JSON Schema)", "value"),
    field(`${at}allow_self`, "The user who started the run may answer", "flag", { usual: true }),
  ];
}

function eachFields(): FieldSpec[] {
  return [
    field("for_each", "List", "value", { help: "a list, or {{…}} that returns one" }),
    field("max_parallel", "At a time", "number"),
    field("on_item_error", "When an item fails", "choice", { choices: ["stop", "continue"] }),
    field("output", "Result of one item", "value"),
  ];
}

function loopFields(): FieldSpec[] {
  return [
    field("sourceVariable", "List", "expression"),
    field("itemVariable", "Item as ctx.…", "text"),
    field("indexVariable", "Index as ctx.…", "text"),
    field("maxIterations", "At most", "number"),
    field("maxParallel", "At a time", "number"),
    field("onItemError", "When an item fails", "choice", { choices: ["stop", "continue"] }),
  ];
}

function whenFields(step: Step, dialect: DialectName): FieldSpec[] {
  if (dialect === "tasks" || step.parent !== undefined)
    return [field("if", "Only if", "expression", { help: "also waits for failed steps" })];
  if (dialect === "flow") {
    return [
      field("branch", "Choose what comes next", "value", { help: "a list of {if, then}; the first match is followed" }),
      ...(has(step.fields, "parallel") ? [field("join", "All paths join at", "text")] : []),
      field("done", "The run’s result", "flag"),
      field("on_error", "On error", "text", { help: "fail, continue, or the name of a step" }),
    ];
  }
  if (step.kind === "start") return [];
  return [
    field("joinMode", "Waits for", "choice", { choices: ["all", "any"], help: "all edges into it, or the first" }),
    field("errorHandling", "If it fails", "choice", { choices: ["continue", "fail_workflow"] }),
    field("isDisabled", "Switched off", "flag"),
  ];
}

function retryFields(dialect: DialectName): FieldSpec[] {
  return [
    field("timeout", "Time for each attempt", "text", { placeholder: "30s" }),
    field(dialect === "graph" ? "maxAttempts" : "retries", dialect === "graph" ? "Attempts" : "Tries again", "number"),
    field("retry", "Backoff and more", "value", { help: "{backoff, first, cap, jitter, on}" }),
    field("at_most_once", "Never call twice", "flag"),
    field("on_unknown", "If the outcome is unknown", "choice", { choices: ["fail", "ask"] }),
  ];
}

function aboutFields(step: Step, dialect: DialectName): FieldSpec[] {
  const list = [field("description", "Description", "text")];
  if (dialect !== "graph") return list;
  list.unshift(field("label", "Label", "text"));
  if (step.kind !== "start" && step.kind !== "end") list.push(field("outputVariable", "Result as ctx.…", "text"));
  return list;
}
