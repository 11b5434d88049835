// What an approver is told: in words, with the values that are known and a mark on those that are not.
import { describe, expect, it } from "vitest";
import type { Approval } from "../src/api/queries";
import { answerable, asker, chosen, ifApproved, ifDenied, withoutAnswer } from "../src/lib/approvals";
import { type Call, readAsks } from "../src/lib/asks";
import { sentence, values } from "../src/lib/calls";

function asked(more: Record<string, unknown> = {}): Approval {
  return {
    id: "step_1",
    run_id: "run_1",
    step: "gate",
    workflow: "refund",
    version: 1,
    attempt: 1,
    asks: { message: "Pay?", calls: [] },
    digest: "d",
    created_by: "ann",
    since: "2026-01-01T00:00:00Z",
    kind: "approval",
    mine: true,
    ...more,
  } as unknown as Approval;
}

function call(more: Record<string, unknown>): Call {
  const read = readAsks({ calls: [{ step: "s", ...more }] }).calls[0];
  if (!read) throw new Error("no call");
  return read;
}

const known = { step: "pay", kind: "tool", tool: "pay", input: {}, digest: "d" };
const open = { step: "tell", kind: "http", not_yet_known: true, unknown: ["/body"] };

function both(more: Record<string, unknown>, asks: unknown): [string, string] {
  const one = asked({ ...more, asks });
  const read = readAsks(asks);
  return [ifApproved(one, read), ifDenied(one, read)];
}

describe("an answer in words", () => {
  it("says what follows, and what it does not cover", () => {
    expect(both({}, { calls: [] })).toEqual([
      "The run continues. No call waits for this answer.",
      "Unless the workflow handles a denial, its run ends as cancelled.",
    ]);
    expect(both({}, { calls: [known, open, { ...open, step: "x" }] })).toEqual([
      "One call is made exactly as shown. 2 calls may follow that are not covered, because not all of them is known.",
      "None of these calls is made. Unless the workflow handles a denial, its run ends as cancelled.",
    ]);
    expect(both({}, { calls: [known], on_denial: [known] })[1]).toBe(
      "The workflow handles it. These calls may be made:",
    );
    expect(both({}, { calls: [known], policy: "payments" })).toEqual([
      "The call that waits is made, exactly as shown.",
      "The call is not made, and its step fails.",
    ]);
  });

  it("says what one of several approvals is worth", () => {
    const [first, deny] = both({ approvals: 2 }, { calls: [known] });
    expect(first).toBe(
      "This is approval 1 of 2; nothing happens until all are given. One call is made exactly as shown.",
    );
    expect(deny).toContain("One denial is enough. ");
    expect(both({ approvals: 2, approved_by: ["bob"] }, { calls: [] })[0]).toContain(
      "This is the last of 2 approvals.",
    );
  });

  it("alarms only if silence approves", () => {
    const until = "2026-01-02T00:00:00Z";
    expect(withoutAnswer(asked({ until, on_timeout: "approve" }))).toEqual({
      words: "Without an answer it counts as approved",
      alarming: true,
    });
    expect(withoutAnswer(asked({ until, on_timeout: "deny" })).alarming).toBe(false);
    expect(withoutAnswer(asked({ on_timeout: "approve" })).words).toBe(
      "Without an answer it waits as long as the run lasts",
    );
  });

  it("names the person or the agent who asks", () => {
    expect(asker("ann")).toBe("ann");
    expect(asker("ann", { user: "ann", how: "schedule" })).toBe("ann, by a schedule");
    expect(asker("ann", { user: "ann", how: "request", key: { id: "key_1", name: "ci", agent: false } })).toBe(
      "ann with the key ci",
    );
    expect(asker("ann", { user: "ann", how: "request", key: { id: "key_1", name: "builder", agent: true } })).toBe(
      "agent key builder of ann",
    );
  });
});

describe("the inbox", () => {
  it("counts what the user can still answer", () => {
    expect(answerable(asked(), "bob")).toBe(true);
    expect(answerable(asked({ approved_by: ["bob"] }), "bob")).toBe(false);
    expect(answerable(asked({ mine: false }), "bob")).toBe(false);
  });

  it("is filtered by side and text", () => {
    const all = [
      asked(),
      asked({ id: "b", mine: false, workflow: "deploy" }),
      asked({ id: "c", approved_by: ["bob"] }),
    ];
    const ids = (side: "mine" | "others" | "all", text: string) => chosen(all, side, text, "bob").map((one) => one.id);
    expect(ids("mine", "")).toEqual(["step_1"]);
    expect(ids("others", "")).toEqual(["b", "c"]);
    expect(ids("all", " DEPLOY ")).toEqual(["b"]);
    expect(ids("all", "nothing like it")).toEqual([]);
  });
});

describe("a call", () => {
  it("is a sentence", () => {
    expect(sentence(call({ kind: "http", input: { url: "https://x/y", method: "POST" } }))).toBe(
      "Sends POST https://x/y",
    );
    expect(sentence(call({ kind: "tool", tool: "mail.send" }))).toBe("Calls the tool mail.send");
    expect(sentence(call({ kind: "workflow", workflow: "w" }))).toBe("Starts the workflow w");
    expect(sentence(call({ kind: "query", input: { connection: "crm" } }))).toBe("Queries the database crm");
  });

  it("lists its values flat and marks what is not known", () => {
    const list = values(
      call({
        kind: "http",
        not_yet_known: true,
        unknown: ["/body/a~1b", "/headers"],
        input: {
          url: "https://x",
          method: "POST",
          headers: { x: "{{h}}" },
          body: { "a/b": "{{t}}", sum: 3, tags: ["x", 1], list: [{ n: null }], none: {}, zero: [] },
        },
      }),
    );
    expect(list.map((one) => [one.name, one.text, one.unknown])).toEqual([
      ["headers", '{"x":"{{h}}"}', true],
      ["body.a/b", "{{t}}", true],
      ["body.sum", "3", false],
      ["body.tags", "x, 1", false],
      ["body.list[0].n", "null", false],
      ["body.none", "nothing", false],
      ["body.zero", "an empty list", false],
    ]);
  });

  it("shows the arguments of a tool under their own names, and hidden characters", () => {
    const input = { tool: "pay", args: { to: "bank\u200b", cents: 7 } };
    expect(values(call({ kind: "tool", tool: "pay", input }))).toEqual([
      { name: "to", text: "bank⟨U+200B⟩", unknown: false },
      { name: "cents", text: "7", unknown: false },
    ]);
  });
});
