// The facts of a run's log as sentences. The step is named beside the sentence, so it begins with what happened.
import type { RunEvent } from "../api/queries";
import { word } from "./status";
import { full } from "./time";

export interface Sentence {
  step: string | undefined;
  says: string;
  tone: "good" | "bad" | "wait" | "idle";
}

const WAITS: Record<string, string> = {
  executor: "Is called",
  sleep: "Sleeps",
  webhook: "Waits for a call from outside",
  gate: "Asks for an approval",
  child: "Starts another workflow and waits for it",
  scope: "Begins",
};

const AGAIN: Record<string, string> = {
  retry: "Is tried again",
  worker_lost: "Is called again, because the process that called it was lost",
  worker_stopped: "Is called again, because the process that called it was stopped",
  asked: "Is called again, because the call asked for it",
  approved: "Is called, now that it is approved",
  deferred: "Is called, after it was put off",
};

const SKIPPED: Record<string, string> = {
  condition: "Skipped: its condition is not met",
  not_taken: "Skipped: the run took another way",
  upstream_failed: "Skipped: a step before it did not succeed",
};

export function sentence(event: RunEvent): Sentence {
  const step = "step" in event && event.step ? event.step : undefined;
  const tell = (says: string, tone: Sentence["tone"] = "idle"): Sentence => ({ step, says, tone });
  const until = (at: string | null | undefined) => (at ? ` until ${full(at)}` : "");
  const attempt = (n: number) => (n > 1 ? ` (attempt ${n})` : "");
  switch (event.type) {
    case "created":
      return tell(`Created by ${event.by}`);
    case "scheduled":
      return tell(`Scheduled for ${full(event.due)}`, "wait");
    case "due":
      return tell("The scheduled time has come");
    case "started":
      return tell("The run begins");
    case "entered": {
      const count = event.count == null ? "" : `: ${event.count} ${event.count === 1 ? "item" : "items"}`;
      return tell(
        `${WAITS[event.wait] ?? `Waits: ${event.wait}`}${count}${attempt(event.attempt)}${until(event.until)}`,
      );
    }
    case "retrying":
      return tell(
        `Attempt ${event.attempt} failed: ${event.failure.message}. The next follows at ${full(event.due)}`,
        "wait",
      );
    case "again":
      return tell(`${AGAIN[event.reason] ?? "Is called again"}${attempt(event.attempt)}${until(event.until)}`);
    case "held":
      return tell(
        `The call is held until it is approved${event.until ? `, at most${until(event.until)}` : ""}`,
        "wait",
      );
    case "unsure":
      return tell("Whether the call happened is not known: a person decides", "wait");
    case "opened":
      return tell(`Item ${event.index} begins`);
    case "closed":
      return tell(
        `Item ${event.index} ${event.end === "success" ? "succeeded" : word(event.end)}`,
        event.end === "success" ? "idle" : "bad",
      );
    case "finished": {
      if (event.status === "success") return tell("Succeeded", "good");
      const why = event.failure ? `: ${event.failure.message}` : "";
      return tell(`${capital(word(event.status))}${why}`, "bad");
    }
    case "skipped":
      return tell(SKIPPED[event.reason] ?? "Skipped");
    case "kept":
      return tell("A message for it arrived early and is kept");
    case "approved":
      return tell(`Approved by ${event.by}`, "good");
    case "changed":
      return tell(`${event.by} changed the call that is held`, "wait");
    case "escalated":
      return tell(`No answer in time: more people are asked${until(event.until)}`, "wait");
    case "overridden":
      return tell(`${event.by} set its result${event.comment ? `: ${event.comment}` : ""}`, "wait");
    case "ended": {
      const by = event.by ? ` by ${event.by}` : "";
      const why = event.failure ? `: ${event.failure.message}` : "";
      return tell(`The run ended: ${word(event.status)}${by}${why}`, event.status === "completed" ? "good" : "bad");
    }
    case "retried":
      return tell(`Retried by ${event.by}: ${steps(event.reset.length + event.reopened.length)} again`);
    case "adopted":
      return tell(`Continued by ${event.by} under version ${event.workflow_version}`);
  }
}

function steps(count: number): string {
  return count === 1 ? "one step runs" : `${count} steps run`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
