// One question on one card: what an answer leads to, who asks, who else answers, what silence means, and the answer.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { type Approval, run } from "../../api/queries";
import { When } from "../../components/Status";
import { answerable, asker, withoutAnswer } from "../../lib/approvals";
import { type Asks, readAsks } from "../../lib/asks";
import { question } from "../../lib/notices";
import { visible } from "../../lib/servers";
import { full } from "../../lib/time";
import { Answer } from "./Answer";
import { Outcomes } from "./Outcomes";

export function Ask({ asked, user }: { asked: Approval; user: string }) {
  const asks = useMemo(() => readAsks(asked.asks), [asked.asks]);
  const title = visible(question(asked));
  return (
    <article className="card ask" id={asked.id} aria-label={title}>
      <header className="stack">
        <p className="small dim">
          <Link to="/workflows/$name" params={{ name: asked.workflow }}>
            {asked.workflow}
          </Link>{" "}
          ·{" "}
          <Link to="/runs/$run" params={{ run: asked.run_id }} search={{ step: asked.step }}>
            step {asked.step}
          </Link>{" "}
          · asked <When at={asked.since} />
        </p>
        <h2 className="question">{title}</h2>
        <SilenceLine asked={asked} />
      </header>
      {asks.policy && <p className="note">The policy {asks.policy} holds this call until it is approved.</p>}
      <Outcomes asked={asked} asks={asks} />
      <Who asked={asked} asks={asks} user={user} />
      {(asked.warnings ?? []).length > 0 && (
        <ul className="note waiting small warnings" aria-label="Warnings">
          {(asked.warnings ?? []).map((warning) => (
            <li key={warning}>Warning: {warning}.</li>
          ))}
        </ul>
      )}
      {asked.digest && (
        <details className="small">
          <summary>Digest of what is shown</summary>
          <code className="digest">{asked.digest}</code>
          <p className="dim">
            Your answer names this digest. If anything here changes before you answer, the answer is refused.
          </p>
        </details>
      )}
      {answerable(asked, user) ? (
        <Answer key={`${asked.digest} ${asked.attempt}`} asked={asked} form={asks.form} user={user} />
      ) : asked.mine ? (
        <p className="note">You have approved. The run continues when enough others have.</p>
      ) : (
        <p className="dim">You may view this one, but not answer it.</p>
      )}
    </article>
  );
}

export function SilenceLine({ asked }: { asked: Approval }) {
  const { words, alarming } = withoutAnswer(asked);
  return (
    <p className={`silence ${alarming ? "silence-alarm" : ""}`}>
      <span aria-hidden="true">{alarming ? "⚠" : "◷"}</span>{" "}
      <span>
        {words}
        {asked.until && (
          <>
            {" "}
            <When at={asked.until} /> <span className="dim">({full(asked.until)})</span>
          </>
        )}
        .
      </span>
    </p>
  );
}

/** Who asks, who may answer, who has, and the escalation. */
function Who({ asked, asks, user }: { asked: Approval; asks: Asks; user: string }) {
  const approved = asked.approved_by ?? [];
  const needed = asked.approvals ?? 1;
  const others = asks.escalateTo.join(", ");
  // Approvers who may not read the run see the name only.
  const from = useQuery({ ...run(asked.run_id), retry: false });
  const who = asked.escalated ? [...asks.approvers, ...asks.escalateTo] : asks.approvers;
  return (
    <dl className="facts small">
      <dt>Who asks</dt>
      <dd>{asker(asked.created_by, from.data?.started_by)}</dd>
      <dt>May answer</dt>
      <dd>
        {who.join(", ") || "anyone who may approve"}
        {!asks.allowSelf && `, but not ${asked.created_by}, who started the run`}
      </dd>
      {(needed > 1 || approved.length > 0) && (
        <>
          <dt>Has approved</dt>
          <dd>
            {approved.length} of {needed}
            {approved.length > 0 && `: ${approved.map((one) => (one === user ? `${one} (you)` : one)).join(", ")}`}
          </dd>
        </>
      )}
      {others && (
        <>
          <dt>Escalation</dt>
          <dd>
            {asked.escalated ? (
              `there was no answer in time, so ${others} may also answer`
            ) : (
              <>
                {others} may also answer, <When at={asked.escalates_at} />
              </>
            )}
          </dd>
        </>
      )}
    </dl>
  );
}
