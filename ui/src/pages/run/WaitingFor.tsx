// Why a run is not finished: what it waits for, since when, until when, and the button that moves it on.
import { useState } from "react";
import type { Run } from "../../api/queries";
import { When } from "../../components/Status";
import { readAsks, silence } from "../../lib/asks";
import { MoveOn } from "./MoveOn";

const SHOWN = 3;

const WORDS: Record<string, string> = {
  queue: "waits for its turn",
  executor: "is being executed",
  retry: "waits for its next attempt",
  sleep: "sleeps",
  webhook: "waits for a call from outside",
  approval: "waits for an answer",
  verdict: "waits for a person to report the outcome of a call",
  child: "waits for a child run",
  quarantine: "is quarantined",
  unreadable: "cannot be read",
};

interface Props {
  run: Run;
  select: (path: string | undefined) => void;
}

export function WaitingFor({ run, select }: Props) {
  const [all, setAll] = useState(false);
  const waiting = run.waiting_for;
  if (waiting.length === 0) return null;
  const shown = all ? waiting : waiting.slice(0, SHOWN);
  return (
    <section className="note waiting" aria-label="Why it is not finished">
      <h2 className="hidden-label">Why it is not finished</h2>
      <ul className="plain-list">
        {shown.map((one) => (
          <li key={`${one.step} ${one.for}`} className="row wrap between">
            <span>
              {one.step ? (
                <button type="button" className="link" onClick={() => select(one.step)}>
                  <strong>{one.step}</strong>
                </button>
              ) : (
                <strong>The run</strong>
              )}{" "}
              {WORDS[one.for] ?? `waits: ${one.for}`}
              {one.since && (
                <span className="dim">
                  {" "}
                  (since <When at={one.since} />)
                </span>
              )}
              {one.until && (
                <>
                  ;{" "}
                  {one.for === "approval"
                    ? `without an answer it ${silence(readAsks(run.tasks[one.step]?.input).onTimeout)}`
                    : "it continues automatically"}{" "}
                  <When at={one.until} />
                </>
              )}
              <span className="dim">. Moved on by {one.moved_on_by}.</span>
              {one.message && <span className="small dim waiting-why">{one.message}</span>}
            </span>
            <MoveOn run={run} waiting={one} />
          </li>
        ))}
      </ul>
      {(run.warnings ?? []).map((warning) => (
        <p key={`${warning.step} ${warning.message}`} className="small">
          Warning: {warning.step}: {warning.message}.
        </p>
      ))}
      {waiting.length > SHOWN && (
        <button type="button" className="link small" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `and ${waiting.length - SHOWN} more`}
        </button>
      )}
    </section>
  );
}
