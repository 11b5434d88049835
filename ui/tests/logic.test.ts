// The parts with logic: layouts, folding, forms, texts of problems, the live list. Run by vitest, without a browser.
import { describe, expect, it } from "vitest";
import { Problem } from "../src/api/client";
import type { Graph, RunSummary, Step } from "../src/api/queries";
import { hasSecrets, readAsks, silence } from "../src/lib/asks";
import { diffLines } from "../src/lib/diff";
import { counted, fold } from "../src/lib/fold";
import { bothGraphs } from "../src/lib/graphDiff";
import { layout } from "../src/lib/layout";
import { contentOf } from "../src/lib/notices";
import { holder, pattern, shortName } from "../src/lib/paths";
import { slices } from "../src/lib/plot";
import { words } from "../src/lib/problem";
import { withEvents, withFirst, withNext } from "../src/lib/runList";
import { begin, fieldsOf, finish } from "../src/lib/schema";
import {
  acceptance,
  counted as countedTools,
  type McpServer,
  type McpTool,
  nextLook,
  sayingNow,
  visible,
} from "../src/lib/servers";
import { length, relative } from "../src/lib/time";
import { marks, timeline } from "../src/lib/timeline";
import { EventReader } from "../src/live/parse";
import type { LiveEvent } from "../src/live/stream";

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

describe("paths", () => {
  it("map a step of a run to the step of the graph and to its scope", () => {
    expect(pattern("each[3].loop:poll[12].check")).toBe("each[].loop:poll[].check");
    expect(holder("each[3].inner[0].charge")).toEqual({ scope: "each[3].inner", index: 0 });
    expect(holder("charge")).toBeUndefined();
    expect(shortName("each[3].loop:poll")).toBe("poll");
  });
});

describe("folding", () => {
  it("shows what needs attention first and counts the rest", () => {
    const folded = fold({
      each: step("running"),
      "each[0].a": step("success"),
      "each[1].a": step("failed"),
      "each[2].a": step("success"),
    });
    const a = folded.get("each[].a");
    expect(a?.status).toBe("failed");
    expect(a && counted(a, (word) => word)).toBe("1 failed, 2 success");
  });
});

describe("the layout of a graph", () => {
  const overlap = (a: { x: number; y: number; width: number; height: number }, b: typeof a) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

  it("puts a diamond in ranks without overlaps", () => {
    const boxes = layout(
      [{ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" }],
      [
        { from: "a", to: "b" },
        { from: "a", to: "c" },
        { from: "b", to: "d" },
        { from: "c", to: "d" },
      ],
    );
    const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => boxes.get(id) ?? { x: 0, y: 0, width: 0, height: 0 });
    expect(a && b && a.y < b.y).toBe(true);
    expect(b?.y).toBe(c?.y);
    expect(b && d && b.y < d.y).toBe(true);
    expect(b && c && overlap(b, c)).toBe(false);
  });

  it("sizes a frame to its content, and a back edge does not reverse the order", () => {
    const boxes = layout(
      [{ id: "loop" }, { id: "x", parent: "loop" }, { id: "y", parent: "loop" }, { id: "after" }],
      [
        { from: "x", to: "y" },
        { from: "y", to: "x", back: true },
        { from: "loop", to: "after" },
      ],
    );
    const [loop, x, y, after] = ["loop", "x", "y", "after"].map((id) => boxes.get(id));
    if (!loop || !x || !y || !after) throw new Error("a box is missing");
    expect(x.y).toBeLessThan(y.y);
    expect(y.y + y.height).toBeLessThan(loop.height);
    expect(x.x + x.width).toBeLessThan(loop.width);
    expect(after.y).toBeGreaterThanOrEqual(loop.y + loop.height);
  });

  it("lays out five hundred steps quickly", { timeout: 60_000 }, () => {
    const nodes = Array.from({ length: 500 }, (_, n) => ({ id: String(n) }));
    const edges = nodes.slice(1).map((node, n) => ({ from: String(Math.floor(n / 2)), to: node.id }));
    const begun = performance.now();
    expect(layout(nodes, edges).size).toBe(500);
    const took = performance.now() - begun;
    console.log(`500 steps are laid out in ${took.toFixed(0)} ms`);
    // Not a benchmark: a generous limit against freezing the page, on a machine with other load.
    expect(took).toBeLessThan(20_000);
  });
});

describe("the timeline", () => {
  const tasks: Record<string, Step> = { first: step("success", 0, 2), each: step("running", 2) };
  for (let n = 0; n < 1000; n += 1) tasks[`each[${n}].charge`] = step("success", 2 + n, 3 + n);
  const now = Date.parse(at(1100));

  it("folds a thousand items into one row", () => {
    const shown = timeline(tasks, { open: new Map(), now });
    expect(shown.lines.map((line) => [line.label, line.inside])).toEqual([
      ["first", 0],
      ["each", 1000],
    ]);
    expect(shown.from).toBe(Date.parse(at(0)));
    expect(shown.to).toBe(now);
  });

  it("expands as many as requested and reports how many are left", () => {
    const shown = timeline(tasks, { open: new Map([["each", 50]]), now });
    expect(shown.lines).toHaveLength(52);
    expect(shown.lines[1]?.more).toBe(950);
    expect(shown.lines[2]?.label).toBe("0: charge");
  });

  it("has a bar for each attempt, and a running one extends to now", () => {
    const twice: Step = {
      ...step("running", 0),
      attempts: [
        { attempt: 1, status: "failed", started_at: at(0), finished_at: at(1) },
        { attempt: 2, status: "running", started_at: at(5) },
      ],
    };
    const bars = timeline({ call: twice }, { open: new Map(), now: Date.parse(at(9)) }).lines[0]?.bars;
    expect(bars?.map((bar) => [bar.status, bar.to - bar.from])).toEqual([
      ["failed", 1000],
      ["running", 4000],
    ]);
  });

  it("has round marks", () => {
    expect(marks(2400, 6)).toEqual([0, 500, 1000, 1500, 2000]);
  });
});

describe("a form from a schema", () => {
  const schema = {
    type: "object",
    required: ["who", "count"],
    properties: {
      who: { type: "string", title: "Name" },
      count: { type: "integer", minimum: 1, default: 2 },
      colour: { enum: ["red", "blue"] },
      loud: { type: "boolean" },
      place: { type: "object", properties: { city: { type: "string" } } },
      list: { type: "array" },
    },
  };

  it("has a field of the right kind for each property", () => {
    expect(fieldsOf(schema)?.map((field) => field.kind)).toEqual([
      "text",
      "whole",
      "choice",
      "yes-no",
      "group",
      "json",
    ]);
    expect(fieldsOf({ type: "array" })).toBeUndefined();
    expect(fieldsOf(true)).toBeUndefined();
  });

  it("starts with defaults, omits empty fields and keeps unknown ones", () => {
    const fields = fieldsOf(schema) ?? [];
    const given = { who: "Ann", more: [1] };
    expect(finish(fields, begin(fields, given), given)).toEqual({
      value: { who: "Ann", count: 2, more: [1] },
      faults: {},
    });
  });

  it("reports faults by the path of the field", () => {
    const fields = fieldsOf(schema) ?? [];
    const filled = { ...begin(fields, undefined), count: "0", list: "[1" };
    const { faults } = finish(fields, filled);
    expect(faults.count).toBe("At least 1.");
    expect(faults.list).toMatch(/^This is not JSON/);
  });
});

describe("problems", () => {
  it("have a readable message, a hint and the request's id", () => {
    const problem = new Problem({
      status: 409,
      code: "workflow-disabled",
      detail: "the workflow is disabled",
      request_id: "req_1",
    });
    expect(words(problem)).toEqual({
      title: "The workflow is disabled.",
      hint: "Enable the workflow first.",
      requestId: "req_1",
    });
    expect(words(new TypeError("x is undefined")).hint).toMatch(/fault of the page/);
  });
});

describe("the list of runs", () => {
  const run = (id: string, status: RunSummary["status"] = "running"): RunSummary => ({
    id,
    run_id: id,
    status,
    workflow: "w",
    workflow_id: "wf",
    workflow_version: 1,
    created_by: "ann",
    created_at: at(0),
    labels: {},
    child: false,
  });
  const ids = (list: { runs: RunSummary[] }) => list.runs.map((one) => one.id).join("");
  const event = (type: string, id: string, status?: string): LiveEvent => ({
    run_id: id,
    type,
    version: 1,
    at: at(5),
    ...(status ? { status } : {}),
  });

  it("adds new runs at the top and keeps those loaded below", () => {
    const first = withFirst({ runs: [], next: undefined }, { data: [run("c"), run("b")], next: "2" });
    const both = withNext(first, { data: [run("b"), run("a")], next: null });
    expect(ids(both)).toBe("cba");
    expect(ids(withFirst(both, { data: [run("d"), run("c")], next: "x" }))).toBe("dcba");
  });

  it("starts over when too much happened in between", () => {
    const list = { runs: [run("b"), run("a")], next: "2" };
    expect(withFirst(list, { data: [run("y"), run("x")], next: "3" })).toEqual({
      runs: [run("y"), run("x")],
      next: "3",
    });
  });

  it("follows events, and drops runs that no longer match the filter", () => {
    const list = { runs: [run("b"), run("a")], next: null };
    expect(withEvents(list, [event("ended", "a", "failed")], []).runs[1]?.status).toBe("failed");
    expect(ids(withEvents(list, [event("ended", "a", "failed")], ["running"]))).toBe("b");
    expect(withEvents(list, [event("entered", "a")], [])).toBe(list);
  });
});

describe("the stream of events", () => {
  it("reads events however the text is cut", () => {
    const text =
      ': hello\n\nid: 1.0\nevent: created\ndata: {"a":1}\n\nid: 2.0\n\nid: 3.0\nevent: x\ndata: 1\ndata: 2\n\n';
    for (let cut = 0; cut < text.length; cut += 1) {
      const reader = new EventReader();
      const told = [...reader.read(text.slice(0, cut)), ...reader.read(text.slice(cut))];
      expect(told).toEqual([
        { id: "1.0", type: "created", data: '{"a":1}' },
        { id: "3.0", type: "x", data: "1\n2" },
      ]);
      expect(reader.place).toBe("3.0");
    }
  });
});

describe("differences", () => {
  it("between texts are minimal", () => {
    const lines = diffLines("a\nb\nc\nd", "a\nx\nc\nd\ne");
    expect(lines.map((line) => ({ same: " ", out: "-", in: "+" })[line.kind] + line.text).join("|")).toBe(
      " a|-b|+x| c| d|+e",
    );
  });

  it("can be undone from either side, for random texts", () => {
    let seed = 7;
    const draw = (n: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % n;
    };
    for (let round = 0; round < 200; round += 1) {
      const text = () => Array.from({ length: draw(12) + 1 }, () => "abc"[draw(3)]).join("\n");
      const [before, after] = [text(), text()];
      const lines = diffLines(before, after);
      expect(
        lines
          .filter((line) => line.kind !== "in")
          .map((line) => line.text)
          .join("\n"),
      ).toBe(before);
      expect(
        lines
          .filter((line) => line.kind !== "out")
          .map((line) => line.text)
          .join("\n"),
      ).toBe(after);
    }
  });

  it("between graphs are found by step", () => {
    const node = (name: string, detail = "") => ({ name, path: name, kind: "tool" as const, detail, parent: null });
    const before: Graph = {
      name: "g",
      version: 1,
      nodes: [node("a"), node("b", "x"), node("gone")],
      edges: [{ from: 0, to: 2, label: "", style: "normal" }],
    };
    const after: Graph = { name: "g", version: 2, nodes: [node("a"), node("b", "y"), node("new")], edges: [] };
    const both = bothGraphs(before, after);
    expect(Object.fromEntries(both.changes)).toEqual({ a: "same", b: "changed", new: "added", gone: "removed" });
    expect(both.graph.edges).toEqual([{ from: 0, to: 3, label: "", style: "normal" }]);
  });
});

describe("words for times and counts", () => {
  it("are short", () => {
    expect([850, 2400, 61_000, 90_000_000].map(length)).toEqual(["850 ms", "2.4 s", "1 min 1 s", "1 d 1 h"]);
    expect(relative(at(0), Date.parse(at(30)))).toBe("30 s ago");
    expect(relative(at(59), Date.parse(at(0)))).toBe("in 59 s");
  });

  it("runs are counted in the hour they were created in", () => {
    const now = Date.UTC(2026, 0, 2, 0, 30);
    const runs = [
      { created_at: "2026-01-02T00:10:00Z", status: "failed" },
      { created_at: "2026-01-01T23:59:00Z", status: "completed" },
      { created_at: "2020-01-01T00:00:00Z", status: "failed" },
    ] as RunSummary[];
    const all = slices(runs, now, 86_400_000, 24);
    expect([all.at(-1)?.bad, all.at(-2)?.good, all.reduce((sum, one) => sum + one.bad, 0)]).toEqual([1, 1, 1]);
  });
});

describe("the content of an approval", () => {
  it("is read whatever its shape", () => {
    expect(readAsks(null).calls).toEqual([]);
    const asks = readAsks({
      message: "Pay?",
      approvals: 2,
      approvers: ["ann", 3],
      calls: [
        { step: "pay", kind: "tool", input: { cents: 7 }, digest: "ab" },
        { step: "log", not_yet_known: true },
      ],
    });
    expect([readAsks({ approvers: "ann", escalate_to: "bob" }).escalateTo, asks.allowSelf, asks.moreCalls]).toEqual([
      ["bob"],
      true,
      false,
    ]);
    expect([asks.approvers, asks.calls[0]?.input, asks.calls[1]?.unknown]).toEqual([["ann"], { cents: 7 }, true]);
  });

  it("keeps what follows a denial apart, and names what is not covered", () => {
    const asks = readAsks({
      calls: [
        { step: "pay", input: { to: "{{form.to}}" }, not_yet_known: true, unknown: ["/to"] },
        { step: "big", too_large_to_show: true },
      ],
      more_calls: 5,
      on_denial: [{ step: "tell", input: { key: "{{secrets.KEY}}" }, also_if_approved: true }],
      on_timeout: "approve",
    });
    expect(asks.calls.map((call) => [call.step, call.unknownParts, call.tooLarge, call.digest])).toEqual([
      ["pay", ["/to"], false, undefined],
      ["big", [], true, undefined],
    ]);
    expect(asks.onDenial.map((call) => [call.step, call.alsoIfApproved])).toEqual([["tell", true]]);
    expect([asks.moreCalls, asks.moreOnDenial, asks.onTimeout]).toEqual([true, false, "approve"]);
    expect([hasSecrets(asks.calls), hasSecrets(asks.onDenial)]).toEqual([false, true]);
  });

  it("says what silence means", () => {
    expect([silence("approve"), silence("deny"), silence(undefined)]).toEqual([
      "counts as approved",
      "counts as denied",
      "counts as denied",
    ]);
  });
});

describe("a browser notification", () => {
  const notice = {
    event: "gate_opened" as const,
    title: "pay: approval needed",
    workflow: "pay",
    run_id: "run_1",
    step: "each[0].gate",
    text: "Pay?",
    at: at(0),
  };
  it("of a question links to the inbox, and replaces an earlier one", () => {
    const [asked, again] = [contentOf(notice), contentOf({ ...notice, event: "gate_escalated" })];
    expect([asked.path, asked.tag === again.tag]).toEqual(["/approvals", true]);
  });
  it("of anything else links to the run", () => {
    expect(contentOf({ ...notice, event: "gate_answered" }).path).toBe("/runs/run_1?step=each%5B0%5D.gate");
  });
});

describe("tools of MCP servers", () => {
  const tool = (name: string, standing: McpTool["standing"]): McpTool => ({
    tool: name,
    standing,
    digest: standing === "missing" ? null : `digest of ${name}`,
  });
  const server = (state: McpServer["state"], next?: string): McpServer => ({
    name: "files",
    state,
    connections: 0,
    tools: [],
    next_attempt_at: next ?? null,
  });

  it("are counted with what needs attention first", () => {
    expect(countedTools([tool("a", "accepted"), tool("b", "changed"), tool("c", "missing")])).toBe(
      "3 tools: 1 changed, 1 not offered now, 1 accepted",
    );
    expect(countedTools([tool("a", "new")])).toBe("1 tool: 1 new");
  });

  it("are accepted by the digest that was shown", () => {
    expect(acceptance([tool("a", "new")])).toEqual({ tools: [{ tool: "a", digest: "digest of a" }] });
  });

  it("count as unchanged only if that is known", () => {
    const saying = (description: string, accepted_description: string) =>
      sayingNow({ ...tool("a", "changed"), description, accepted_description });
    expect(saying("reads", "reads")).toBe("same");
    expect(saying("reads and sends", "reads")).toBe("different");
    expect(saying(`${"é".repeat(2_000)} and sends`, "é".repeat(2_000))).toBe("begins the same");
  });

  it("hide nothing in their descriptions", () => {
    expect(visible("reads\u200B a\u202Efile\r\n\tnext")).toBe("reads⟨U+200B⟩ a⟨U+202E⟩file\n\tnext");
    expect(visible("plain \u{E0041}\u{E0100}")).toBe("plain ⟨U+E0041⟩⟨U+E0100⟩");
    expect(visible("Größe, 日本, ✓")).toBe("Größe, 日本, ✓");
  });

  it("are polled only while a server is not ready", () => {
    const now = Date.parse(at(0));
    expect(nextLook([server("ready"), server("absent")], now)).toBe(false);
    expect(nextLook([server("ready"), server("down", at(8))], now)).toBe(8_500);
    expect(nextLook([server("connecting"), server("down", at(8))], now)).toBe(2_000);
  });
});
