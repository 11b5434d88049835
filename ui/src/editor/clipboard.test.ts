// Copies come back with fresh names and their own connections.

import { expect, test } from "vitest";
import { copy, paste } from "./clipboard";
import { apply, parse } from "./model/model";

function pasted(text: string, ids: string[], parent?: string): string {
  const model = parse(text);
  const copied = copy(model, new Set(ids)) ?? "";
  const made = paste(model, copied, parent);
  return made ? apply(text, made.change) : "refused";
}

test("tasks", () => {
  const text = "name: x\ntasks:\n  a: {tool: t}\n  b: {needs: a, tool: u}\n  c: {needs: [a, b], sleep: 1s}\n";
  expect(pasted(text, ["b", "c"])).toBe(`${text}  b-2: {tool: u}\n  c-2: {sleep: 1s, needs: b-2}\n`);
});

test("flow, into a body", () => {
  const text = "name: x\nflow:\n  start: {tool: t, next: e}\n  e: {for_each: [1], tasks: {a: {tool: t}}}\n";
  expect(parse(pasted(text, ["e/a"], "e")).steps.map((step) => step.id)).toEqual(["start", "e", "e/a", "e/a-2"]);
  expect(parse(pasted(text, ["start", "e"])).edges.map((edge) => edge.id)).toContain("start-2:next>e-2");
});

test("graph, beside the original", () => {
  const text = "name: x\nnodes:\n  - {id: a, type: tool, position: {x: 1, y: 2}, data: {tool: t}}\nedges: []\n";
  expect(parse(pasted(text, ["a"])).steps[1]).toMatchObject({
    id: "a-2",
    position: { x: 41, y: 42 },
    fields: { tool: "t" },
  });
});

test("other dialects and other texts are refused", () => {
  const graph = parse("name: x\nnodes: []\n");
  expect(paste(graph, copy(parse("name: x\ntasks: {a: {tool: t}}\n"), new Set(["a"])) ?? "", undefined)).toBeNull();
  expect(paste(graph, "hello", undefined)).toBeNull();
});
