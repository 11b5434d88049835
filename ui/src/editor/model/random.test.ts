// Random edits, one after another: the text stays readable, keeps its comments, and reflects every change.

import { expect, test } from "vitest";
import { comments, corpus, pick, random } from "../testing/corpus";
import { blank, palette } from "./kinds";
import { apply, freshName, parse } from "./model";
import { type Change, type Json, type Model, Refused } from "./types";

const SEEDS = 40;
const EDITS = 12;
const VALUES: Json[] = [
  "a: b",
  "{{input.x}} x#",
  "",
  "no",
  "1e3",
  7,
  true,
  ["x, y", { z: [] }],
  { k: "v\nw", "odd key": null },
  "über\ttab",
  "- dash",
  "'q' \"r\"",
];

function change(model: Model, next: (below: number) => number): Change | null {
  const step = pick(model.steps, next);
  const other = pick(model.steps, next);
  const edge = pick(model.edges, next);
  if (!step || !other || !model.dialect) return null;
  const kind = pick(palette(model.dialect), next) ?? "tool";
  const changes: (Change | null)[] = [
    {
      type: "addStep",
      name: freshName(model, pick(["new", "new step", "9"], next) ?? "n"),
      kind,
      fields: blank(kind, model.dialect),
    },
    { type: "rename", step: step.id, name: freshName(model, "renamed", step.parent) },
    { type: "setField", step: step.id, field: ["description"], value: pick(VALUES, next) ?? null },
    { type: "setField", step: step.id, field: ["notes", "inner"], value: pick(VALUES, next) ?? null },
    { type: "connect", from: step.id, to: other.id, outlet: pick(step.outlets, next)?.id ?? "next" },
    edge ? { type: "disconnect", edge: edge.id } : null,
    next(4) === 0 ? { type: "removeStep", step: step.id } : null,
    model.dialect === "graph"
      ? {
          type: "move",
          steps: [step, other]
            .map((one) => ({ step: one.id, position: { x: next(900), y: next(900) } }))
            .slice(0, step === other ? 1 : 2),
        }
      : null,
  ];
  return pick(changes, next) ?? null;
}

test.each(Array.from({ length: SEEDS }, (_, seed) => seed))("seed %i", (seed) => {
  const next = random(seed * 7919 + 1);
  const samples = corpus().filter(({ text }) => !text.includes("<<:"));
  let text = pick(samples, next)?.text ?? "";
  for (let n = 0; n < EDITS; n += 1) {
    const model = parse(text);
    const wanted = change(model, next);
    if (!wanted) continue;
    let after: string;
    try {
      after = apply(text, wanted);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      continue;
    }
    const now = parse(after);
    const why = `${JSON.stringify(wanted)}\n${text}\n=>\n${after}`;
    expect(now.faults, why).toEqual([]);
    if (wanted.type !== "removeStep" && wanted.type !== "disconnect" && model.language === "yaml") {
      expect(comments(after).length, why).toBeGreaterThanOrEqual(
        comments(text).filter((one) => !one.includes("{{")).length,
      );
    }
    if (wanted.type === "setField") {
      const fields = now.steps.find((step) => step.id === wanted.step)?.fields ?? {};
      const got = wanted.field.length === 1 ? fields.description : (fields.notes as { inner: Json }).inner;
      expect(got, why).toEqual(wanted.value);
    }
    if (wanted.type === "addStep")
      expect(
        now.steps.map((step) => step.name),
        why,
      ).toContain(wanted.name);
    if (wanted.type === "rename") expect(now.edges.length, why).toBe(model.edges.length);
    if (wanted.type === "connect")
      expect(
        now.edges.some((edge) => edge.from === wanted.from && edge.to === wanted.to),
        why,
      ).toBe(true);
    for (const moved of wanted.type === "move" ? wanted.steps : []) {
      expect(now.steps.find((step) => step.id === moved.step)?.position, why).toEqual(moved.position);
    }
    text = after;
  }
});
