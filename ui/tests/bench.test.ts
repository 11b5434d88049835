// The logic of the run page: the way a run took, items with failures first, sentences, paths, sizes of panes.
import { describe, expect, it } from "vitest";
import type { Graph, RunEvent, Step } from "../src/api/queries";
import { fold, heat } from "../src/lib/fold";
import { itemsOf } from "../src/lib/items";
import { join, size } from "../src/lib/json";
import { LEAST, moved, valid } from "../src/lib/panes";
import { allows } from "../src/lib/rights";
import { sentence } from "../src/lib/sentences";
import { ways } from "../src/lib/taken";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

function step(status: Step["status"], from?: number, to?: number): Step {
  return {
    id: "",
    kind: "tool",
    status,
    attempt: 1,
    started_at: from === undefined ? null : at(from),
    finished_at: to === undefined ? null : at(to),
  };
}

function graph(edges: [string, string, Partial<Graph["edges"][number]>?][]): Graph {
  const names = [...new Set([...edges.map((edge) => edge[0]), ...edges.map((edge) => edge[1])])];
  return {
    name: "g",
    version: 1,
    nodes: names.map((name) => ({ name, path: name, kind: "tool", detail: "" })),
    edges: edges.map(([from, to, more]) => ({
      from: names.indexOf(from),
      to: names.indexOf(to),
      label: "",
      style: "normal",
      ...more,
    })),
  };
}

describe("the way a run took", () => {
  const shape = graph([
    ["a", "b"],
    ["a", "c", { style: "error" }],
    ["b", "d"],
  ]);

  it("follows successes, and failures only over their edges", () => {
    const good = fold({ a: step("success", 0, 1), b: step("running", 1), c: step("skipped"), d: step("pending") });
    expect(ways(shape, good, false)).toEqual(["taken", "not-taken", "open"]);
    const bad = fold({ a: step("failed", 0, 1), b: step("skipped"), c: step("success", 1, 2), d: step("skipped") });
    expect(ways(shape, bad, true)).toEqual(["not-taken", "taken", "not-taken"]);
  });

  it("says of what a finished run did not reach that it was not taken", () => {
    const stopped = fold({ a: step("success", 0, 1), b: step("failed", 1, 2) });
    expect(ways(shape, stopped, true)).toEqual(["taken", "not-taken", "not-taken"]);
  });

  it("shows how long each box took beside the slowest, without loops", () => {
    const all = fold({ each: step("success", 0, 9), "each[0].a": step("success", 0, 4), b: step("success", 4, 6) });
    expect(heat(all, new Set(["each"]))).toEqual(
      new Map([
        ["each[].a", 1],
        ["b", 0.5],
      ]),
    );
  });
});

describe("items", () => {
  it("come with failed ones first, and what failed in them", () => {
    const failed = { ...step("failed", 0, 1), error: { code: "x", message: "no stock" } };
    const tasks = {
      each: step("failed", 0, 2),
      "each[0].a": step("success", 0, 1),
      "each[1].a": step("success", 0, 1),
      "each[1].b": failed,
      "other[2].a": failed,
    };
    expect(itemsOf(tasks, "each")).toEqual([
      { index: 1, status: "failed", path: "each[1].b", error: "no stock" },
      { index: 0, status: "success", path: "each[0].a", error: undefined },
    ]);
  });
});

describe("the log", () => {
  const says = (event: Record<string, unknown>) =>
    sentence({ run_id: "r", version: 1, at: at(0), ...event } as unknown as RunEvent).says;

  it("is made of sentences", () => {
    expect(says({ type: "created", by: "ann" })).toBe("Created by ann");
    expect(says({ type: "entered", step: "a", attempt: 2, wait: "executor" })).toBe("Is called (attempt 2)");
    expect(says({ type: "entered", step: "a", attempt: 1, wait: "scope", count: 3 })).toBe("Begins: 3 items");
    expect(says({ type: "finished", step: "a", status: "failed", failure: { message: "refused" } })).toBe(
      "Failed: refused",
    );
    expect(says({ type: "skipped", step: "a", reason: "upstream_failed" })).toBe(
      "Skipped: a step before it did not succeed",
    );
    expect(says({ type: "ended", status: "cancelled", by: "ann" })).toBe("The run ended: cancelled by ann");
    expect(says({ type: "retried", by: "ann", reset: ["a"], reopened: [] })).toBe(
      "Retried by ann: one step runs again",
    );
  });
});

describe("values", () => {
  it("have the paths that templates use", () => {
    expect(join("tasks.a.body", "items")).toBe("tasks.a.body.items");
    expect(join("input", 3)).toBe("input[3]");
    expect(join("input", "a b")).toBe('input["a b"]');
    expect([size([1, 2]), size({ a: 1 })]).toEqual(["[2]", "{1}"]);
  });
});

describe("panes", () => {
  it("are moved within limits, and only two of them", () => {
    expect(moved([0.4, 0.4, 0.2], 0, 0.1)).toEqual([0.5, expect.closeTo(0.3), 0.2]);
    expect(moved([0.5, 0.5], 0, 0.9)[1]).toBeCloseTo(LEAST);
    expect(moved([0.5, 0.5], 0, -0.9)[0]).toBeCloseTo(LEAST);
    expect(moved([0.5, 0.5], 1, 0.1)).toEqual([0.5, 0.5]);
  });

  it("ignore what is remembered of other panes", () => {
    expect(valid([1, 3], 2)).toEqual([0.25, 0.75]);
    for (const wrong of [[1], [0, 1], ["a", 1], null, { length: 2 }]) expect(valid(wrong, 2)).toBeUndefined();
  });
});

describe("rights", () => {
  it("are included in those of an administrator, but for the operator's", () => {
    expect(allows(["workflow.run"], "workflow.run")).toBe(true);
    expect(allows(["workflow.read"], "workflow.run")).toBe(false);
    expect(allows(["admin"], "workflow.define")).toBe(true);
    expect(allows(["admin"], "operator")).toBe(false);
  });
});
