// What an approver has to know, in words: who asks, what an answer leads to, what silence means. Pure.
import type { Schemas } from "../api/client";
import type { Approval } from "../api/queries";
import type { Asks } from "./asks";
import { question } from "./notices";

type StartedBy = Schemas["StartedBy"];

/** Whether this user's answer is still wanted: they may answer, and have not done so. */
export function answerable(asked: Approval, user: string | undefined): boolean {
  return asked.mine && !(user !== undefined && (asked.approved_by ?? []).includes(user));
}

/** Who asks: a person, a schedule, or an agent's key of a person. The run knows more than the question. */
export function asker(by: string, started?: StartedBy | null): string {
  const key = started?.key;
  const how = started ? HOW[started.how] : undefined;
  if (key?.agent) return `agent key ${key.name ?? key.id} of ${by}`;
  return [key ? `${by} with the key ${key.name ?? key.id}` : by, how].filter(Boolean).join(", ");
}

const HOW: Partial<Record<string, string>> = {
  schedule: "by a schedule",
  webhook: "by a webhook",
  run: "by another run",
  test: "in a test run",
};

/** What an approval leads to. */
export function ifApproved(asked: Approval, asks: Asks): string {
  return [turn(asked), allowed(asks)].filter(Boolean).join(" ");
}

/** What the next approval is worth where several are needed. */
function turn(asked: Approval): string {
  const needed = asked.approvals ?? 1;
  const given = (asked.approved_by ?? []).length;
  if (needed <= 1) return "";
  if (given + 1 >= needed) return `This is the last of ${needed} approvals.`;
  return `This is approval ${given + 1} of ${needed}; nothing happens until all are given.`;
}

function allowed(asks: Asks): string {
  if (asks.policy) return "The call that waits is made, exactly as shown.";
  const covered = asks.calls.filter((call) => !call.unknown && !call.tooLarge).length;
  const open = asks.calls.length - covered;
  if (asks.calls.length === 0) return "The run continues. No call waits for this answer.";
  const parts: string[] = [];
  if (covered > 0) parts.push(`${covered === 1 ? "One call is" : `${covered} calls are`} made exactly as shown.`);
  if (open > 0)
    parts.push(
      `${open === 1 ? "One call" : `${open} calls`} may follow that ${open === 1 ? "is" : "are"} not covered, because not all of ${open === 1 ? "it" : "them"} is known.`,
    );
  return parts.join(" ");
}

/** What a denial leads to. */
export function ifDenied(asked: Approval, asks: Asks): string {
  const enough = (asked.approvals ?? 1) > 1 ? "One denial is enough. " : "";
  if (asks.onDenial.length > 0) return `${enough}The workflow handles it. These calls may be made:`;
  if (asks.policy) return `${enough}The call is not made, and its step fails.`;
  const calls = asks.calls.length > 0 ? "None of these calls is made. " : "";
  return `${enough}${calls}Unless the workflow handles a denial, its run ends as cancelled.`;
}

export interface Silence {
  words: string;
  /** Approval by silence is what an approver must not overlook. */
  alarming: boolean;
}

/** What happens without an answer; `words` are continued by a time if there is a deadline. */
export function withoutAnswer(asked: Approval): Silence {
  if (asked.kind === "verdict" || !asked.until)
    return { words: "Without an answer it waits as long as the run lasts", alarming: false };
  const approves = asked.on_timeout === "approve";
  return { words: `Without an answer it counts as ${approves ? "approved" : "denied"}`, alarming: approves };
}

export type Side = "mine" | "others" | "all";

/** The open questions of one side that contain the text. */
export function chosen(all: Approval[], side: Side, text: string, user: string | undefined): Approval[] {
  const wanted = text.trim().toLowerCase();
  return all.filter((one) => {
    if (side !== "all" && answerable(one, user) !== (side === "mine")) return false;
    const words = [question(one), one.workflow, one.step, one.created_by, one.run_id].join("\n").toLowerCase();
    return wanted === "" || words.includes(wanted);
  });
}
