// The name and icon of each kind of step, and a one-line summary of what a step does.

import type { ReactNode } from "react";
import type { Json, Kind, Step } from "../model/types";

export const KIND_NAMES: Record<Kind, string> = {
  http: "HTTP request",
  tool: "Tool",
  javascript: "JavaScript",
  query: "SQL query",
  condition: "Condition",
  sleep: "Sleep",
  webhook: "Wait for a call",
  approval: "Approval",
  each: "For each item",
  workflow: "Other workflow",
  fork: "Fork",
  start: "Start",
  end: "End",
  unknown: "Not set yet",
};

/** For the buttons that add them. */
export const KIND_SHORT: Record<Kind, string> = {
  ...KIND_NAMES,
  http: "HTTP",
  javascript: "Code",
  query: "SQL",
  webhook: "Callback",
  each: "For each",
  workflow: "Workflow",
};

export const KIND_HELP: Record<Kind, string> = {
  http: "calls a URL",
  tool: "calls a tool by name",
  javascript: "runs a few lines of code",
  query: "queries a database",
  condition: "chooses by conditions",
  sleep: "waits for a duration",
  webhook: "waits for a callback",
  approval: "waits for a person to approve or deny",
  each: "runs steps for each item of a list",
  workflow: "runs another workflow and waits for it",
  fork: "continues on several paths at once",
  start: "where a run starts",
  end: "collects the run’s output",
  unknown: "has no action yet",
};

const PATHS: Record<Kind, ReactNode> = {
  http: <path d="M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M3 10h14M10 3c-5 5-5 9 0 14M10 3c5 5 5 9 0 14" />,
  tool: <path d="M12.5 3.5a4 4 0 0 0-4.6 5.3L3.5 13.2l3.3 3.3 4.4-4.4a4 4 0 0 0 5.3-4.6L14 10l-2.4-.6L11 7z" />,
  javascript: <path d="m7 6-4 4 4 4M13 6l4 4-4 4" />,
  query: <path d="M4 5.5c0-3 12-3 12 0v9c0 3-12 3-12 0zM4 5.5c0 3 12 3 12 0M4 10c0 3 12 3 12 0" />,
  condition: <path d="m10 3 7 7-7 7-7-7zM10 7.5v3M10 13v.2" />,
  sleep: <path d="M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6v4l3 2" />,
  webhook: <path d="M4 8v8h12V8M10 3v9M6.5 8.5 10 12l3.5-3.5" />,
  approval: <path d="M10 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6M4 17c0-7 12-7 12 0M13 15l1.5 1.5L18 13" />,
  each: <path d="M4 8a6 6 0 0 1 11-2l1 1.5M16 4v3.5h-3.5M16 12a6 6 0 0 1-11 2l-1-1.5M4 16v-3.5h3.5" />,
  workflow: <path d="M3 4h6v5H3zM11 11h6v5h-6zM6 9v4.5h5" />,
  fork: <path d="M10 3v5M10 8 5 12v5M10 8l5 4v5" />,
  start: <path d="M6 4v12l10-6z" />,
  end: <path d="M5 5h10v10H5z" />,
  unknown: <path d="M7 7.5C7 3 14 4 13 8c-.5 1.5-3 2-3 4M10 15v.5" />,
};

export function KindIcon({ kind }: { kind: Kind }) {
  return (
    <svg
      className="kind-icon"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {PATHS[kind]}
    </svg>
  );
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
}

/** What a step does, on one line. */
export function summary({ kind, fields }: Step): string {
  switch (kind) {
    case "http":
      return `${text(fields.method).toUpperCase() || "POST"} ${text(fields.url)}`;
    case "tool":
      return text(fields.tool ?? fields.toolName);
    case "javascript":
      return text(fields.javascript ?? fields.code).split("\n")[0] ?? "";
    case "query": {
      const inner = fields.query;
      const of = inner !== null && typeof inner === "object" && !Array.isArray(inner) ? inner : fields;
      return text(of.sql ?? of.saved ?? of.dataQueryID);
    }
    case "sleep":
      return text(fields.sleep ?? fields.until ?? fields.untilTime ?? fields.delayVariable) || delay(fields);
    case "approval": {
      const inner = fields.approval;
      const of = inner !== null && typeof inner === "object" && !Array.isArray(inner) ? inner : fields;
      return text(of.message);
    }
    case "each":
      return text(fields.for_each ?? fields.sourceVariable);
    case "workflow":
      return text(fields.workflow);
    default:
      return text(fields.description);
  }
}

function delay(fields: Record<string, Json>): string {
  const units = [
    ["delayMinutes", "m"],
    ["delaySeconds", "s"],
    ["delayMs", "ms"],
  ] as const;
  return units
    .flatMap(([name, unit]) => (fields[name] === undefined ? [] : [`${text(fields[name])}${unit}`]))
    .join(" ");
}
