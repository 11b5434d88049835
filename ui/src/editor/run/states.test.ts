// Paths of a run map to the steps of the definition, in every dialect.

import { expect, test } from "vitest";
import { parse } from "../model/model";
import { outputs, type RunStep, states, stepOfPath } from "./states";

const TASKS = parse("name: x\ntasks:\n  a: {tool: t}\n  each: {for_each: [1], tasks: {a: {tool: t}}}\n");
const FLOW = parse("name: x\nflow:\n  start: {name: begin, tool: t, next: b}\n  b: {tool: t, next: begin}\n");
const GRAPH = parse("name: x\nnodes:\n  - {id: l, type: loop}\n  - {id: w, type: tool}\nedges: []\n");

test.each([
  [TASKS, "a", "a"],
  [TASKS, "each[12].a", "each/a"],
  [TASKS, "gone", undefined],
  [FLOW, "loop:begin[3].b", "b"],
  [FLOW, "loop:begin[3].begin", "start"],
  [FLOW, "loop:begin", undefined],
  [GRAPH, "l[0].w", "w"],
])("%#: %s", (model, path, id) => expect(stepOfPath(model, path)?.id).toBe(id));

test("many executions of one step fold into the state that needs attention", () => {
  const step = (status: string, output: unknown) => ({ id: "", kind: "tool", status, attempt: 1, output }) as RunStep;
  const all = states(TASKS, {
    a: step("success", 1),
    "each[0].a": step("success", 7),
    "each[1].a": step("failed", null),
    "each[2].a": step("running", null),
  });
  expect(all.get("a")).toMatchObject({ status: "success", note: "" });
  expect(all.get("each/a")).toMatchObject({ status: "failed", note: "1 failed, 1 running, 1 success" });
  expect(outputs(all)).toEqual(
    new Map([
      ["a", 1],
      ["each/a", 7],
    ]),
  );
});
