// Over every valid definition of the repository: reading is faithful, changing nothing changes nothing, and each kind
// of change yields exactly the expected model.

import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { comments, corpus, pick, random, said, saidOf } from "../testing/corpus";
import { blank } from "./kinds";
import { apply, parse } from "./model";
import { readTree, toJson } from "./tree";
import { type Change, type Json, type Model, Refused, type Step } from "./types";

const samples = corpus();

/** The changed text, or undefined if the text does not allow the change. */
function tried(text: string, change: Change): string | null {
  try {
    return apply(text, change);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function editable(model: Model): Step[] {
  return model.steps.filter((step) => step.kind !== "unknown");
}

test("there are samples of every dialect and language", () => {
  const kinds = new Set(samples.map(({ text }) => `${parse(text).dialect} ${parse(text).language}`));
  expect([...kinds].sort()).toEqual(["flow json", "flow yaml", "graph json", "graph yaml", "tasks json", "tasks yaml"]);
});

describe.each(samples)("$file", ({ text }) => {
  const model = parse(text);

  test("is read as the whole document", () => {
    expect(model.faults).toEqual([]);
    expect(model.editable).toBe(true);
    expect(model.steps.length).toBeGreaterThan(0);
    expect(toJson(readTree(text).root ?? undefined)).toEqual(parseYaml(text, { merge: true }));
  });

  test("does not change when a field is set to its current value", () => {
    for (const step of model.steps) {
      for (const [field, value] of Object.entries(step.fields)) {
        expect(apply(text, { type: "setField", step: step.id, field: [field], value })).toBe(text);
      }
    }
  });

  test("accepts new steps", () => {
    for (const kind of ["tool", "approval", "sleep", "javascript"] as const) {
      const fields = blank(kind, model.dialect ?? "tasks");
      const after = apply(text, { type: "addStep", name: "brand new", kind, fields });
      const steps = saidOf(after).steps;
      const added = steps.find((step) => step.id === "brand new");
      expect(added).toMatchObject({ name: "brand new", kind, fields });
      expect({ ...saidOf(after), steps: steps.filter((step) => step !== added) }).toEqual(said(model));
      expect(comments(after)).toEqual(comments(text));
    }
  });

  test("is restored when a new step is removed", () => {
    const fields = blank("tool", model.dialect ?? "tasks");
    const added = apply(text, { type: "addStep", name: "brand-new", kind: "tool", fields });
    expect(apply(added, { type: "removeStep", step: "brand-new" })).toBe(text);
  });

  test("loses only the removed step and its edges", () => {
    for (const step of editable(model)) {
      const after = tried(text, { type: "removeStep", step: step.id });
      if (after === null) continue;
      const now = saidOf(after);
      const inside = (id: string) => id === step.id || id.startsWith(`${step.id}/`);
      expect(now.faults).toEqual([]);
      expect(now.steps.map((one) => one.id)).toEqual(model.steps.map((one) => one.id).filter((id) => !inside(id)));
      if (model.dialect === "flow") continue;
      const left = said(model).edges.filter((edge) => !inside(edge.from) && !inside(edge.to));
      expect(now.edges).toEqual(left);
    }
  });

  test("updates every reference to a renamed step", () => {
    for (const step of editable(model)) {
      const after = tried(text, { type: "rename", step: step.id, name: "other-name" });
      if (after === null) continue;
      const now = saidOf(after);
      expect(now.faults).toEqual([]);
      expect(now.edges.length).toBe(model.edges.length);
      const start = model.dialect === "flow" && step.id === "start";
      const parent = step.parent === undefined ? "" : `${step.parent}/`;
      expect(
        now.steps.some((one) => one.id === (start ? "start" : `${parent}other-name`) && one.name === "other-name"),
      ).toBe(true);
      if (step.name !== "start") expect(speaksOf(toJson(readTree(after).root ?? undefined), step, model)).toEqual([]);
      const id = start ? "start" : `${parent}other-name`;
      expect(saidOf(apply(after, { type: "rename", step: id, name: step.name }))).toEqual(said(model));
    }
  });

  test("sets and removes a field of a step", () => {
    // An anchored value changes in several places at once.
    if (text.includes("<<:")) return;
    for (const step of editable(model)) {
      const after = tried(text, {
        type: "setField",
        step: step.id,
        field: ["description"],
        value: 'what: it "does" # {{here}}',
      });
      if (after === null) continue;
      const expected = said(model);
      const changed = expected.steps.find((one) => one.id === step.id);
      const had = "description" in step.fields;
      if (changed) changed.fields = { ...changed.fields, description: 'what: it "does" # {{here}}' };
      // Outer steps include the fields of inner ones.
      if (step.parent !== undefined) continue;
      expect(saidOf(after)).toEqual(expected);
      if (had) continue;
      const back = apply(after, { type: "setField", step: step.id, field: ["description"], value: undefined });
      expect(back.replace(/, (data|"nodeConfig"): {}|\n *"nodeConfig": {},?/, "")).toBe(
        text.replace(/, (data|"nodeConfig"): {}|\n *"nodeConfig": {},?/, ""),
      );
    }
  });

  test("connects and disconnects", () => {
    if (model.dialect === "flow") return;
    const outlet = model.dialect === "tasks" ? "next" : "success";
    const next = random(text.length);
    for (const from of editable(model)) {
      for (const to of [pick(editable(model), next), pick(editable(model), next)]) {
        if (!to || model.edges.some((edge) => edge.from === from.id && edge.to === to.id)) continue;
        if (model.dialect === "graph" && !from.outlets.some((one) => one.id === outlet)) continue;
        const after = tried(text, { type: "connect", from: from.id, to: to.id, outlet });
        if (after === null) continue;
        const now = saidOf(after);
        const added = now.edges.find((edge) => edge.from === from.id && edge.to === to.id && edge.outlet === outlet);
        expect(added).toBeDefined();
        expect(now.edges.filter((edge) => edge !== added)).toEqual(said(model).edges);
        const id =
          parse(after).edges.find((edge) => edge.from === from.id && edge.to === to.id && edge.outlet === outlet)?.id ??
          "";
        expect(plain(saidOf(apply(after, { type: "disconnect", edge: id })))).toEqual(plain(said(model)));
      }
    }
  });
});

/** One need may be written as a name or as a list of one. */
function plain(whole: ReturnType<typeof said>) {
  const steps = whole.steps.map((step) => ({
    ...step,
    fields: { ...step.fields, needs: [step.fields.needs ?? []].flat() },
  }));
  return {
    ...whole,
    steps: steps.map((step) => ({ ...step, fields: step.kind === "each" ? {} : step.fields })),
    edges: whole.edges,
  };
}

/** Templates that still refer to a step. */
function speaksOf(value: Json, step: Step, model: Model): string[] {
  if (model.steps.filter((one) => one.name === step.name).length > 1) return [];
  if (typeof value === "string") {
    const name = step.name.replace(/[-]/g, "\\-");
    const spoken = new RegExp(`\\{\\{[^}]*\\b(tasks|steps|wait)\\.${name}(?![\\w-])`).test(value);
    return spoken ? [value] : [];
  }
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap((inner) => speaksOf(inner, step, model));
}
