// Maps the server's faults, with lines and columns, to positions in the text and to steps.

import type { Fault as Told } from "../../api/client";
import type { Fault, Model, Step } from "../model/types";

/** Columns count characters, from 1; positions count UTF-16 units, from 0. */
export function placed(text: string, told: readonly Told[], warning = false): Fault[] {
  const lines = text.split("\n");
  const starts: number[] = [];
  let at = 0;
  for (const line of lines) {
    starts.push(at);
    at += line.length + 1;
  }
  return told.map((fault) => {
    const base = {
      message: fault.message,
      path: fault.path,
      ...(fault.code ? { code: fault.code } : {}),
      ...(fault.hint ? { hint: fault.hint } : {}),
      ...(warning ? { warning } : {}),
    };
    if (fault.line == null) return { ...base, start: 0, end: 0 };
    const line = lines[fault.line - 1] ?? "";
    const before = [...line].slice(0, (fault.column ?? 1) - 1).join("").length;
    const start = (starts[fault.line - 1] ?? text.length) + before;
    const word = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,\]}]+)/.exec(line.slice(before))?.[0] ?? "";
    return { ...base, start, end: start + Math.max(1, word.length) };
  });
}

/** By id of the innermost step at that position; under "" if there is none. */
export function byStep(model: Model, faults: readonly Fault[]): Map<string, Fault[]> {
  const found = new Map<string, Fault[]>();
  const put = (id: string, fault: Fault) => found.set(id, [...(found.get(id) ?? []), fault]);
  for (const fault of faults) {
    const step = stepAt(model, fault.start);
    const edge =
      step === undefined && model.dialect === "graph"
        ? model.edges.find((one) => one.range.start <= fault.start && fault.start <= one.range.end)
        : undefined;
    put(step ?? edge?.from ?? "", fault);
  }
  return found;
}

export function stepAt(model: Model, offset: number): string | undefined {
  let best: { id: string; length: number } | undefined;
  for (const { id, range } of model.steps) {
    const length = range.end - range.start;
    if (range.start <= offset && offset <= range.end && (!best || length < best.length)) best = { id, length };
  }
  return best?.id;
}

/** The field of a step that a fault is about, as a path within the step; empty if it is about the step as a whole. */
export function fieldOf(step: Step, fault: Fault): string[] {
  const own = step.path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${key}` : key),
    "",
  );
  if (!fault.path?.startsWith(`${own}.`)) return [];
  const rest = fault.path
    .slice(own.length + 1)
    .split(/[.[\]]+/)
    .filter(Boolean);
  while (rest.length > 0 && ["nodeConfig", "config", "data"].includes(rest[0] ?? "")) rest.shift();
  return rest;
}

export function sentence(fault: Fault): string {
  return fault.hint ? `${fault.message}; ${fault.hint}` : fault.message;
}
