// A test run as the canvas shows it: the run's steps, found by their paths, folded onto the steps of the definition.

import type { Schemas } from "../../api/client";
import { counted } from "../../lib/fold";
import { tone, word } from "../../lib/status";
import type { Json, Model, Step } from "../model/types";

export type RunStep = Schemas["Step"];

export interface StepState {
  status: string;
  /** Shown beside the status if there were several: `3 success, 1 failed`. */
  note: string;
  /** Every pass or item, by its path in the run. */
  each: { path: string; step: RunStep }[];
}

const ORDER = ["bad", "wait", "busy", "good", "idle"];

/** `each[3].charge` and `loop:poll[0].check` as the step of the definition. */
export function stepOfPath(model: Model, path: string): Step | undefined {
  const names = path
    .split(".")
    .map((name) => name.replace(/\[\d+\]$/, ""))
    .filter((name) => !name.startsWith("loop:"));
  if (model.dialect === "graph") return model.steps.find((step) => step.name === names.at(-1));
  let found: Step | undefined;
  for (const name of names) {
    const scope: string | undefined = found?.id;
    found = model.steps.find((step) => step.parent === scope && step.name === name);
    if (!found) return undefined;
  }
  return found;
}

export function states(model: Model, tasks: Record<string, RunStep>): Map<string, StepState> {
  const all = new Map<string, StepState>();
  for (const [path, step] of Object.entries(tasks)) {
    const of = stepOfPath(model, path);
    if (!of) continue;
    const state = all.get(of.id) ?? { status: step.status, note: "", each: [] };
    state.each.push({ path, step });
    if (ORDER.indexOf(tone(step.status)) < ORDER.indexOf(tone(state.status))) state.status = step.status;
    all.set(of.id, state);
  }
  for (const state of all.values()) {
    if (state.each.length < 2) continue;
    const by: Record<string, number> = {};
    for (const { step } of state.each) by[step.status] = (by[step.status] ?? 0) + 1;
    state.note = counted({ by }, word);
  }
  return all;
}

/** Results of steps, for suggestions in expressions. */
export function outputs(all: ReadonlyMap<string, StepState>): Map<string, Json> {
  const found = new Map<string, Json>();
  for (const [id, { each }] of all) {
    const last = each.findLast(({ step }) => step.output !== undefined && step.output !== null);
    if (last) found.set(id, last.step.output as Json);
  }
  return found;
}
