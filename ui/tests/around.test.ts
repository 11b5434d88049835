// The palette, what a user is offered, and the filters and order of the list of runs.
import { describe, expect, it } from "vitest";
import type { RunSummary } from "../src/api/queries";
import { type Command, fitting, places, settingsFor } from "../src/lib/palette";
import { allows, type Right } from "../src/lib/rights";
import { duration, sorted, within, withSaved } from "../src/lib/runFilters";

const may = (grants: string[]) => (right: Right) => allows(grants, right);

describe("the palette", () => {
  it("offers only what the user may see", () => {
    const names = (grants: string[]) => places(may(grants)).map((one) => one.name);
    expect(names(["admin"])).toContain("Settings: Users");
    expect(names(["workflow.read"])).not.toContain("Settings: Users");
    expect(names(["workflow.read"])).not.toContain("New workflow");
    expect(settingsFor(may(["workflow.read"])).map(([id]) => id)).toEqual([
      "keys",
      "mcp-servers",
      "policies",
      "channels",
      "plan",
      "nodes",
      "you",
    ]);
  });

  it("puts names that begin with the text first, then names, then notes", () => {
    const all: Command[] = [
      { id: "1", group: "Go to", name: "Approvals", to: "/a", note: "orders" },
      { id: "2", group: "Workflow", name: "fetch-orders", to: "/b" },
      { id: "3", group: "Workflow", name: "orders", to: "/c" },
      { id: "4", group: "Workflow", name: "reorders", to: "/d" },
    ];
    const found = (text: string) => fitting(all, text, 3).map((one) => one.id);
    expect(found("orders")).toEqual(["3", "2", "4"]);
    expect(found("workflow fetch")).toEqual(["2"]);
    expect(found("nothing")).toEqual([]);
    expect(found("")).toEqual(["1", "2", "3"]);
  });
});

function run(id: string, began: number | undefined, ended: number | undefined, workflow = "w"): RunSummary {
  const at = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());
  return { id, workflow, started_at: at(began), finished_at: at(ended) } as unknown as RunSummary;
}

describe("the list of runs", () => {
  const runs = [
    run("a", 0, 5_000, "z"),
    run("b", 0, undefined, "y"),
    run("c", undefined, undefined, "x"),
    run("d", 0, 1),
  ];

  it("is sorted by what is loaded, and runs that have not begun come last", () => {
    const ids = (order: Parameters<typeof sorted>[1]) => sorted(runs, order, 2_000).map((one) => one.id);
    expect(ids("newest")).toEqual(["a", "b", "c", "d"]);
    expect(ids("oldest")).toEqual(["d", "c", "b", "a"]);
    expect(ids("longest")).toEqual(["a", "b", "d", "c"]);
    expect(ids("shortest")).toEqual(["d", "b", "a", "c"]);
    expect(ids("workflow")).toEqual(["d", "c", "b", "a"]);
    expect(duration(run("e", 0, undefined), 2_000)).toBe(2_000);
  });

  it("has ranges of time in whole minutes, and names that are kept once", () => {
    const now = Date.UTC(2026, 0, 2, 0, 0, 30);
    expect(within({ status: "failed", until: "x" }, 86_400_000, now)).toEqual({
      status: "failed",
      since: "2026-01-01T00:00:00.000Z",
    });
    const list = withSaved([{ name: "a", filter: {} }], { name: "a", filter: { status: "failed" } });
    expect(list).toEqual([{ name: "a", filter: { status: "failed" } }]);
  });
});
