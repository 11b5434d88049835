// Faults are mapped to their position in the text and their step.

import { expect, test } from "vitest";
import { parse } from "../model/model";
import { byStep, fieldOf, placed } from "./faults";

const TEXT = `name: x
tasks:
  "𝒶":
    tool: t
  b: {needs: nobody, tool: t, args: {x: "{{tasks.q}}"}}
  each:
    for_each: []
    tasks: {in: {tool: t, needs: who}}
`;

const told = (line: number | null, column: number | null) => ({
  path: "",
  message: "m",
  code: "c",
  hint: null,
  line,
  column,
});

test("columns are characters", () => {
  const [fault] = placed('a: "𝒶𝒶" b', [told(1, 9)]);
  expect(fault && 'a: "𝒶𝒶" b'.slice(fault.start, fault.end)).toBe("b");
});

test("a warning is told apart from a fault", () => {
  const [warning] = placed(TEXT, [told(5, 14)], true);
  expect(warning?.warning).toBe(true);
  expect(placed(TEXT, [told(5, 14)])[0]?.warning).toBeUndefined();
});

test("each belongs to the innermost step around it", () => {
  const faults = placed(TEXT, [told(5, 14), told(8, 34), told(4, 5), told(1, 1), told(null, null)]);
  expect(faults.slice(0, 2).map((fault) => TEXT.slice(fault.start, fault.end))).toEqual(["nobody", "who"]);
  const found = byStep(parse(TEXT), faults);
  expect([...found].map(([id, list]) => `${id}:${list.length}`)).toEqual(["b:1", "each/in:1", "𝒶:1", ":2"]);
});

test("a fault is mapped to its field", () => {
  const graph = parse("name: g\nnodes:\n  - {id: a, type: http, data: {url: x, headers: {b: {}}}}\n");
  const [node] = graph.steps;
  const [, b] = parse(TEXT).steps;
  const fault = (path: string) => ({ message: "", path, start: 0, end: 0 });
  expect(node && fieldOf(node, fault("nodes[0].data.headers.b"))).toEqual(["headers", "b"]);
  expect(b && fieldOf(b, fault("tasks.b.needs[0]"))).toEqual(["needs", "0"]);
  expect(b && fieldOf(b, fault("tasks.b"))).toEqual([]);
});
