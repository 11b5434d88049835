// Why a run is not finished: what it waits for, since when, until when, and what will move it on.
import { Link } from "@tanstack/react-router";
import type { Run } from "../../api/queries";
import { When } from "../../components/Status";
import { readAsks, silence } from "../../lib/asks";

const SHOWN = 5;

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

export function WaitingFor({ run }: { run: Run }) {
  const all = run.waiting_for;
  if (all.length === 0) return null;
  return (
    <section className="note waiting" aria-label="Why it is not finished">
      <h2>Why it is not finished</h2>
      <ul className="plain-list">
        {all.slice(0, SHOWN).map((one) => (
          <li key={`${one.step} ${one.for}`}>
            <strong>{one.step || "The run"}</strong> {WORDS[one.for] ?? `waits: ${one.for}`}
            {one.since && (
              <>
                {" "}
                (since <When at={one.since} />)
              </>
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
            <span className="dim">. Moved on by {one.moved_on_by}.</span>{" "}
            {(one.for === "approval" || one.for === "verdict") && (
              <Link to="/approvals" search={{ ask: run.tasks[one.step]?.id ?? "" }}>
                Answer
              </Link>
            )}
          </li>
        ))}
      </ul>
      {(run.warnings ?? []).map((warning) => (
        <p key={`${warning.step} ${warning.message}`}>
          Warning: {warning.step}: {warning.message}.
        </p>
      ))}
      {all.length > SHOWN && <p className="dim">and {all.length - SHOWN} more</p>}
    </section>
  );
}
