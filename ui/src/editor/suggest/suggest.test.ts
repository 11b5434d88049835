// Suggestions contain only what can be read at that position.

import { describe, expect, test } from "vitest";
import { parse } from "../model/model";
import type { Json } from "../model/types";
import { expressionBefore, suggest } from "./suggest";

const TASKS = parse(`name: x
input_schema: {type: object, properties: {who: {type: string}, order: {type: object, properties: {id: {type: integer}}}}}
tasks:
  first: {tool: t}
  odd name: {needs: first, tool: t}
  last: {needs: odd name, tool: t}
  aside: {wait_for_webhook: true}
  each:
    needs: first
    for_each: "{{tasks.first.body}}"
    tasks:
      one: {tool: t}
      two: {needs: one, tool: t}
`);

const GRAPH = parse(`name: g
nodes:
  - {id: s, type: start}
  - {id: get, type: http, data: {url: "https://x", outputVariable: people}}
  - {id: each, type: loop, data: {sourceVariable: people, itemVariable: person}}
  - {id: mail, type: tool, data: {tool: t}}
  - {id: e, type: end}
edges:
  - {source: s, target: get}
  - {source: get, target: each}
  - {source: each, target: mail, sourceHandle: loop}
  - {source: mail, target: each}
  - {source: each, target: e, sourceHandle: done}
`);

function labels(model: typeof TASKS, step: string | undefined, before: string, outputs?: Map<string, Json>): string[] {
  return suggest({ model, step, before, ...(outputs ? { outputs } : {}) }).options.map((option) => option.label);
}

describe("names", () => {
  test("vars, where the definition has some", () => {
    const model = parse("name: v\nvars: {net: 1, gross: 2}\ntasks:\n  a: {tool: t}\n");
    expect(labels(model, "a", "vars.")).toEqual(["net", "gross"]);
    expect(labels(model, "a", "")).toContain("vars");
    expect(labels(TASKS, "first", "")).not.toContain("vars");
    expect(labels(TASKS, "first", "")).toContain("now");
  });

  test("only earlier steps", () => {
    expect(labels(TASKS, "last", "tasks.")).toEqual(["first", "odd name"]);
    expect(labels(TASKS, "first", "tasks.")).toEqual([]);
    expect(labels(TASKS, undefined, "tasks.")).toEqual(["first", "odd name", "last", "aside", "each"]);
  });

  test("a body sees its own steps and those before its loop", () => {
    expect(labels(TASKS, "each/two", "tasks.")).toEqual(["first", "each/one".split("/")[1]]);
    expect(labels(TASKS, "each/two", "")).toContain("item");
    expect(labels(TASKS, "last", "")).not.toContain("item");
  });

  test("names with spaces are put in brackets", () => {
    expect(suggest({ model: TASKS, step: "last", before: "tasks." }).options[1]?.insert).toBe('["odd name"]');
  });

  test("variables of a graph, where they are in scope", () => {
    expect(labels(GRAPH, "mail", "ctx.")).toEqual(["input", "people", "person"]);
    expect(labels(GRAPH, "get", "ctx.")).toEqual(["input"]);
  });

  test("webhook waits are known everywhere", () => expect(labels(TASKS, "first", "wait.")).toEqual(["aside"]));
});

describe("fields", () => {
  test("of steps", () => expect(labels(TASKS, "last", "len(tasks.first.")).toContain("status_code"));
  test("of the input, from its schema", () => {
    expect(labels(TASKS, "first", "input.")).toEqual(["who", "order"]);
    expect(labels(TASKS, "first", "lower(input.who) == input.order.i")).toEqual(["id"]);
    expect(suggest({ model: TASKS, step: "first", before: "input.order.i" }).length).toBe(1);
  });
  test("of results, from the last test run", () => {
    const outputs = new Map<string, Json>([
      ["first", { a: [{ b: 1 }] }],
      ["get", { total: 2 }],
    ]);
    expect(labels(TASKS, "last", "tasks.first.body.", outputs)).toEqual(["a"]);
    expect(labels(TASKS, "last", "tasks.first.body.a[0].", outputs)).toEqual(["b"]);
    expect(labels(GRAPH, "mail", "ctx.people.", outputs)).toEqual(["total"]);
  });
  test("functions come with their parentheses", () => {
    expect(
      suggest({ model: TASKS, step: "last", before: "le" }).options.find((one) => one.label === "len")?.insert,
    ).toBe("len()");
  });
});

test("the start of an expression", () => {
  expect(expressionBefore('    url: "https://x/{{input.i')).toBe("input.i");
  expect(expressionBefore('    url: "https://x/{{input.i}}/')).toBeNull();
  expect(expressionBefore("    if: tasks.a.st")).toBe("tasks.a.st");
  expect(expressionBefore('{"if": "tasks.')).toBe("tasks.");
  expect(expressionBefore("      - {if: result == ok, then: c")).toBe("result == ok, then: c");
  expect(expressionBefore("    tool: echo")).toBeNull();
});
