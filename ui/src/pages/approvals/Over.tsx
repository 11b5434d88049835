// What remains of a question that is answered: the acknowledgement of one's own answer, or what became of it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Approval, run } from "../../api/queries";
import { Status, When } from "../../components/Status";
import type { Given } from "../../lib/answered";
import { question } from "../../lib/notices";
import { visible } from "../../lib/servers";
import { full } from "../../lib/time";

const SAID: Record<string, string> = { approved: "You approved this", denied: "You denied this" };

export function Acknowledged({ given, next }: { given: Given; next: (() => void) | undefined }) {
  const { asked } = given;
  const title = visible(question(asked));
  return (
    <article className="card ask" aria-label={title}>
      <p className={`given given-${given.answer}`} role="status">
        <strong>
          <span aria-hidden="true">{given.answer === "denied" ? "✕" : "✓"}</span>{" "}
          {SAID[given.answer] ?? `Your answer: ${given.answer}`}
        </strong>
        <span>
          {full(given.at)} (<When at={given.at} />)
        </span>
      </p>
      <h2 className="question">{title}</h2>
      {given.comment && <p>Your comment: {visible(given.comment)}</p>}
      <Then asked={asked} />
      {next && (
        <div>
          <button type="button" onClick={next}>
            Next question
          </button>
        </div>
      )}
    </article>
  );
}

/** A question that was open when the page showed it, and then was not. */
export function Gone({ asked, next }: { asked: Approval; next: (() => void) | undefined }) {
  const title = visible(question(asked));
  return (
    <article className="card ask" aria-label={title}>
      <p className="given" role="status">
        <strong>This is no longer asked.</strong>{" "}
        <span>Someone else answered it, its time passed, or its run ended.</span>
      </p>
      <h2 className="question">{title}</h2>
      <Then asked={asked} />
      {next && (
        <div>
          <button type="button" onClick={next}>
            Next question
          </button>
        </div>
      )}
    </article>
  );
}

/** The state of the gate and of its run now. */
function Then({ asked }: { asked: Approval }) {
  const now = useQuery({ ...run(asked.run_id), retry: false });
  const step = now.data?.tasks[asked.step];
  const output = (step?.output ?? {}) as { decision?: unknown; by?: unknown };
  const needed = asked.approvals ?? 1;
  const waits = step?.status === "waiting" && needed > 1;
  return (
    <dl className="facts small">
      <dt>The question</dt>
      <dd>
        {waits ? (
          "waits for more approvals"
        ) : typeof output.decision === "string" ? (
          `${output.decision}${typeof output.by === "string" ? ` by ${output.by}` : ""}`
        ) : step ? (
          <Status status={step.status} />
        ) : (
          "–"
        )}
      </dd>
      <dt>The run</dt>
      <dd>
        {now.data && <Status status={now.data.status} />}{" "}
        <Link to="/runs/$run" params={{ run: asked.run_id }} search={{ step: asked.step }}>
          {asked.workflow}, step {asked.step}
        </Link>
      </dd>
    </dl>
  );
}
