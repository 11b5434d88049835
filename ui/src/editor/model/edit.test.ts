// Single changes with the expected text: only the necessary lines change, and comments stay.

import { describe, expect, test } from "vitest";
import { saidOf } from "../testing/corpus";
import { apply, parse } from "./model";
import { type Change, Refused } from "./types";

function check(before: string, change: Change, after: string) {
  expect(apply(before, change)).toBe(after);
}

const ORDER = `# The order.
name: order # its name
tasks:
  # Money first.
  charge:
    url: https://pay.example/charges # the bank
    retries: 3

  # Then goods.
  ship:
    needs: charge   # not before
    tool: ship
    args: {id: "{{tasks.charge.body.id}}"}
output: "{{tasks.ship.status}} {{input.tasks.charge}}"
`;

describe("tasks", () => {
  test("a field is changed in place, and its comment stays", () =>
    check(
      ORDER,
      { type: "setField", step: "charge", field: ["url"], value: "https://other.example" },
      ORDER.replace("https://pay.example/charges", "https://other.example"),
    ));

  test("a new field goes to the end of its step", () =>
    check(
      ORDER,
      { type: "setField", step: "charge", field: ["timeout"], value: "5s" },
      ORDER.replace("retries: 3\n", "retries: 3\n    timeout: 5s\n"),
    ));

  test("a field inside an object is created with the object", () =>
    check(
      ORDER,
      { type: "setField", step: "charge", field: ["retry", "on"], value: ["5xx", 429] },
      ORDER.replace("retries: 3\n", "retries: 3\n    retry: {on: [5xx, 429]}\n"),
    ));

  test("text over several lines becomes a block", () =>
    check(
      ORDER,
      { type: "setField", step: "charge", field: ["body"], value: "a: 1\n\nb # c" },
      ORDER.replace("retries: 3\n", "retries: 3\n    body: |-\n      a: 1\n\n      b # c\n"),
    ));

  test("an object changes only where it differs", () =>
    check(
      ORDER,
      { type: "setField", step: "ship", field: ["args"], value: { id: "{{tasks.charge.body.id}}", to: "a, b" } },
      ORDER.replace('body.id}}"}', 'body.id}}", to: "a, b"}'),
    ));

  test("a rename updates needs and templates, and nothing else", () =>
    check(
      ORDER,
      { type: "rename", step: "charge", name: "take money" },
      ORDER.replace("  charge:", "  take money:")
        .replace("needs: charge ", "needs: take money ")
        .replace('"{{tasks.charge.body', "\"{{tasks['take money'].body"),
    ));

  test("a removed step takes its comment with it", () =>
    check(
      ORDER,
      { type: "removeStep", step: "charge" },
      ORDER.replace(
        "  # Money first.\n  charge:\n    url: https://pay.example/charges # the bank\n    retries: 3\n",
        "",
      ).replace("    needs: charge   # not before\n", ""),
    ));

  test("a second need creates a list", () =>
    check(
      ORDER.replace("output:", "  last: {sleep: 1s}\noutput:"),
      { type: "connect", from: "last", to: "ship", outlet: "next" },
      ORDER.replace("output:", "  last: {sleep: 1s}\noutput:").replace("needs: charge ", "needs: [charge, last] "),
    ));

  test("the last entry of a block leaves an empty object", () => {
    const text = "name: x\ntasks:\n  a:\n    tool: t # why\n";
    check(text, { type: "setField", step: "a", field: ["tool"], value: undefined }, "name: x\ntasks:\n  a: {} # why\n");
  });

  test("cycles are refused with a message", () => {
    expect(() => apply(ORDER, { type: "connect", from: "ship", to: "charge", outlet: "next" })).toThrow(/cycle/);
    expect(() => apply(ORDER, { type: "rename", step: "ship", name: "charge" })).toThrow(Refused);
    expect(() => apply(ORDER, { type: "rename", step: "ship", name: "a.b" })).toThrow(/letters/);
  });

  test("a step in a body is renamed only in the body and its output", () => {
    const text = `name: x
tasks:
  a: {tool: t}
  each:
    needs: a
    for_each: "{{tasks.a.body}}"
    tasks:
      a: {tool: u}
      b: {needs: a, tool: v, args: {x: "{{tasks.a.body}}"}}
    output: "{{tasks.a.body}}"
output: "{{tasks.a.body}}"
`;
    const inner = apply(text, { type: "rename", step: "each/a", name: "z" });
    expect(inner).toBe(
      text
        .replace("      a: {tool: u}", "      z: {tool: u}")
        .replace('needs: a, tool: v, args: {x: "{{tasks.a', 'needs: z, tool: v, args: {x: "{{tasks.z')
        .replace('    output: "{{tasks.a', '    output: "{{tasks.z'),
    );
    const outer = apply(text, { type: "rename", step: "a", name: "z" });
    expect(outer).toBe(
      text
        .replace("  a: {tool: t}", "  z: {tool: t}")
        .replace("needs: a\n", "needs: z\n")
        .replace('for_each: "{{tasks.a', 'for_each: "{{tasks.z')
        .replace('\noutput: "{{tasks.a', '\noutput: "{{tasks.z'),
    );
  });

  test("an alias is not changed", () => {
    const text = "name: x\ntasks:\n  a: &same {tool: t}\n  b: *same\n";
    expect(() => apply(text, { type: "setField", step: "b", field: ["tool"], value: "u" })).toThrow(/&same/);
    expect(() => apply(text, { type: "removeStep", step: "a" })).toThrow(/anchor/);
  });

  test("windows line breaks stay", () =>
    check(
      "name: x\r\ntasks:\r\n  a:\r\n    tool: t\r\n",
      { type: "setField", step: "a", field: ["if"], value: "true" },
      'name: x\r\ntasks:\r\n  a:\r\n    tool: t\r\n    if: "true"\r\n',
    ));

  test("a text without a final line break keeps none", () => {
    const text = "name: x\ntasks:\n  a: {tool: t}";
    const added = apply(text, { type: "addStep", name: "b", kind: "tool", fields: { needs: "a", tool: "u" } });
    expect(added).toBe(`${text}\n  b: {needs: a, tool: u}`);
    check(added, { type: "removeStep", step: "b" }, text);
  });
});

const FLOW = `name: f
flow:
  start: {tool: a, next: b} # first
  b:
    tool: b
    branch:
      - {if: result == ok, then: c} # good
      - {then: d}
  c: {tool: c, done: true}
  d: {tool: d}
`;

describe("flow", () => {
  test("two next steps are a fork, one is not", () => {
    const forked = apply(FLOW, { type: "connect", from: "start", to: "d", outlet: "next" });
    expect(forked).toBe(FLOW.replace("next: b", "parallel: [b, d]"));
    expect(apply(forked, { type: "disconnect", edge: "start:next>d" })).toBe(FLOW);
  });

  test("a case is moved, added and removed", () => {
    check(FLOW, { type: "connect", from: "b", to: "d", outlet: "branch:0" }, FLOW.replace("then: c", "then: d"));
    const added = apply(FLOW, { type: "connect", from: "b", to: "start", outlet: "branch:+" });
    expect(
      parse(added)
        .edges.filter((edge) => edge.from === "b")
        .map((edge) => `${edge.label} ${edge.to}`),
    ).toEqual(["result == ok c", "result == 'ok' start", "else d"]);
    check(
      FLOW,
      { type: "disconnect", edge: "b:branch:0>c" },
      FLOW.replace("      - {if: result == ok, then: c} # good\n", ""),
    );
  });

  test("a final step gets a next step", () =>
    check(FLOW, { type: "connect", from: "c", to: "d", outlet: "next" }, FLOW.replace("done: true", "next: d")));

  test("on_error is a connection", () => {
    const after = apply(FLOW, { type: "connect", from: "d", to: "c", outlet: "error" });
    expect(after).toBe(FLOW.replace("{tool: d}", "{tool: d, on_error: c}"));
    check(after, { type: "disconnect", edge: "d:error>c" }, FLOW);
  });

  test("the first step keeps its key", () => {
    check(FLOW, { type: "rename", step: "start", name: "one" }, FLOW.replace("next: b}", "next: b, name: one}"));
    expect(() => apply(FLOW, { type: "removeStep", step: "start" })).toThrow(/start/);
  });

  test("edges to a removed step are removed", () =>
    check(
      FLOW,
      { type: "removeStep", step: "d" },
      FLOW.replace("      - {then: d}\n", "").replace("  d: {tool: d}\n", ""),
    ));

  test("open ends of a fork lead to its join", () => {
    const edges = parse(
      "name: f\nflow:\n  start: {parallel: [a, b], join: c}\n  a: {tool: a}\n  b: {tool: b, next: b2}\n  b2: {tool: b}\n  c: {tool: c}\n",
    ).edges;
    expect(edges.filter((edge) => edge.derived).map((edge) => edge.id)).toEqual(["a:next>c", "b2:next>c"]);
  });
});

const GRAPH = `{
  "name": "g",
  "nodes": [
    {"id": "s", "type": "start", "position": {"x": 0, "y": 0}},
    {"id": "w", "type": "condition", "data": {"label": "Which?", "branches": [{"id": "yes", "condition": "input.a"}]}},
    {"id": "e", "type": "end", "data": {"outputParameters": [{"name": "o", "value": "{{steps['Which?'].body}}{{steps.w.body}}"}]}}
  ],
  "edges": [
    {"id": "1", "source": "s", "target": "w"},
    {"id": "2", "source": "w", "target": "e", "sourceHandle": "else"}
  ]
}
`;

describe("graph", () => {
  test("a move changes only the position", () => {
    check(
      GRAPH,
      { type: "move", steps: [{ step: "s", position: { x: 10.4, y: 0 } }] },
      GRAPH.replace('{"x": 0, "y": 0}', '{"x": 10, "y": 0}'),
    );
    check(
      GRAPH,
      { type: "move", steps: [{ step: "e", position: { x: 1, y: 2 } }] },
      GRAPH.replace('.body}}"}]}}', '.body}}"}]}, "position": {"x": 1, "y": 2}}'),
    );
  });

  test("a connection is written in the style of the others", () => {
    const after = apply(GRAPH, { type: "connect", from: "w", to: "e", outlet: "yes" });
    expect(after).toBe(
      GRAPH.replace('"else"}\n', '"else"},\n    {"id": "w-e", "source": "w", "target": "e", "sourceHandle": "yes"}\n'),
    );
    check(after, { type: "disconnect", edge: "w:yes>e" }, GRAPH);
  });

  test("a removed node takes its edges with it", () => {
    expect(saidOf(apply(GRAPH, { type: "removeStep", step: "w" }))).toMatchObject({
      edges: [],
      steps: [{ id: "s" }, { id: "e" }],
    });
  });

  test("a rename updates edges and templates", () =>
    check(
      GRAPH,
      { type: "rename", step: "w", name: "pick" },
      GRAPH.replace('"id": "w"', '"id": "pick"')
        .replace('"target": "w"', '"target": "pick"')
        .replace('"source": "w"', '"source": "pick"')
        .replace("steps.w.", "steps.pick."),
    ));

  test("references by a changed label switch to the id", () =>
    check(
      GRAPH,
      { type: "setField", step: "w", field: ["label"], value: "Else?" },
      GRAPH.replace("Which?", "Else?").replace("steps['Which?']", "steps['w']"),
    ));

  test("the default branch is one outlet under any name", () => {
    expect(parse(GRAPH).edges.map((edge) => edge.outlet)).toEqual(["success", "default"]);
  });
});

describe("unreadable texts", () => {
  test.each(["", "name: [", '{"name": }', "- a", "name: x\nname: y", "name: x\ntasks:\n  a: {body: {{input}}}"])(
    "%j has faults and is not changed",
    (text) => {
      expect(parse(text).editable).toBe(false);
      expect(parse(text).faults.length).toBeGreaterThan(0);
      expect(() => apply(text, { type: "addStep", name: "a", kind: "tool" })).toThrow(Refused);
    },
  );
});
