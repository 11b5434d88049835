// One question: what exactly will happen, the form, approve or deny.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, part } from "../../api/client";
import { type Approval, me, queries } from "../../api/queries";
import { useSchemaForm } from "../../components/SchemaForm";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import { type Asks, type Call, hasSecrets, readAsks, silence } from "../../lib/asks";
import { question } from "../../lib/notices";

export function Ask({ asked }: { asked: Approval }) {
  const asks = useMemo(() => readAsks(asked.asks), [asked.asks]);
  return (
    <article className="card" id={asked.id} aria-label={question(asked)}>
      <div className="card-head">
        <h2 className="question">{question(asked)}</h2>
        <span className="badge tone-wait">
          {asked.until ? (
            <>
              without an answer it {silence(asked.on_timeout)} <When at={asked.until} />
            </>
          ) : (
            "without an answer it waits as long as the run lasts"
          )}
        </span>
      </div>
      <p className="small dim">
        <Link to="/workflows/$name" params={{ name: asked.workflow }}>
          {asked.workflow}
        </Link>{" "}
        ·{" "}
        <Link to="/runs/$run" params={{ run: asked.run_id }} search={{ step: asked.step }}>
          {asked.step}
        </Link>{" "}
        · run by {asked.created_by} · asked <When at={asked.since} />
      </p>
      {asks.policy && <p className="note">The policy {asks.policy} holds this call until it is approved.</p>}
      <Who asked={asked} asks={asks} />
      {(asked.warnings ?? []).map((warning) => (
        <p className="note" key={warning}>
          Warning: {warning}.
        </p>
      ))}
      <Calls title="What will happen if it is approved" calls={asks.calls} more={asks.moreCalls} />
      <Calls title="What may happen if it is denied" calls={asks.onDenial} more={asks.moreOnDenial} />
      {hasSecrets([...asks.calls, ...asks.onDenial]) && (
        <p className="small dim">
          Secrets appear by name. Their values are filled in when a call is made, and may change until then; a policy
          that requires approval asks again if they do.
        </p>
      )}
      <Mine asked={asked} form={asks.form} />
      {asked.digest && (
        <details className="small">
          <summary>Digest of what is shown</summary>
          <code className="digest">{asked.digest}</code>
          <p className="dim">
            Your answer names this digest. If anything here changes before you answer, the answer is refused.
          </p>
        </details>
      )}
    </article>
  );
}

/** Who may answer, how many answers are needed, and the escalation. */
function Who({ asked, asks }: { asked: Approval; asks: Asks }) {
  const approved = asked.approved_by ?? [];
  const needed = asked.approvals ?? 1;
  const others = asks.escalateTo.join(", ");
  const who = asked.escalated ? [...asks.approvers, ...asks.escalateTo] : asks.approvers;
  return (
    <dl className="facts small">
      <dt>May answer</dt>
      <dd>
        {who.join(", ") || "anyone who may approve"}
        {!asks.allowSelf && `, but not ${asked.created_by}, who started the run`}
      </dd>
      {needed > 1 && (
        <>
          <dt>Approved</dt>
          <dd>
            {approved.length} of {needed}
            {approved.length > 0 && `: ${approved.join(", ")}`}. One denial is enough to deny.
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

function Mine({ asked, form }: { asked: Approval; form: unknown }) {
  const who = useQuery(me);
  if (!asked.mine) return <p className="dim">You may view this one, but not answer it.</p>;
  if (who.data && asked.approved_by?.includes(who.data.user))
    return <p>You have approved. The run continues when enough others have.</p>;
  return <Answer asked={asked} form={form} />;
}

function Calls({ title, calls, more }: { title: string; calls: Call[]; more: boolean }) {
  if (calls.length === 0) return null;
  return (
    <div className="stack">
      <h3>{calls.length === 1 ? title : `${title}: ${calls.length} calls`}</h3>
      {calls.map((call) => (
        <details key={call.step} open={calls.length <= 3}>
          <summary>
            <strong>{call.step}</strong>{" "}
            <span className="dim">{[call.kind, call.about].filter(Boolean).join(" ")}</span>
          </summary>
          {call.alsoIfApproved && <p className="dim">It may also happen if it is approved.</p>}
          {call.unknown && (
            <p className="dim">
              Not everything about it is known yet, so an approval does not cover it.
              {call.unknownParts.length > 0 && ` Not yet known: ${call.unknownParts.join(", ")}`}
            </p>
          )}
          {call.tooLarge && (
            <p className="dim">Its arguments are too long to show, so an approval does not cover it.</p>
          )}
          {call.input !== undefined && <Value label={`Arguments of ${call.step}`} value={call.input} />}
          {call.digest && (
            <p className="small dim">
              Digest <code className="digest">{call.digest}</code>
            </p>
          )}
        </details>
      ))}
      {more && (
        <p className="note">There are more calls than are listed here. An approval does not cover the others.</p>
      )}
    </div>
  );
}

function Answer({ asked, form }: { asked: Approval; form: unknown }) {
  const filled = useSchemaForm(form, undefined, "Data");
  const [comment, setComment] = useState("");
  const answer = useMutation({
    mutationFn: ({ verb, data }: { verb: "approve" | "deny"; data?: unknown }) =>
      api(`/runs/${part(asked.run_id)}/steps/${part(asked.step)}/${verb}`, {
        method: "POST",
        body: {
          ...(comment ? { comment } : {}),
          ...(data === undefined ? {} : { data }),
          ...(asked.digest ? { digest: asked.digest } : {}),
        },
      }),
    // Even after a refusal the displayed data may be out of date.
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  const approve = () => {
    if (!form) return answer.mutate({ verb: "approve" });
    const data = filled.take();
    if (data !== undefined) answer.mutate({ verb: "approve", data });
  };
  return (
    <div className="stack">
      {Boolean(form) && filled.view}
      <label className="field">
        <span className="label">Comment (optional)</span>
        <input type="text" value={comment} onChange={(event) => setComment(event.target.value)} />
      </label>
      {answer.error && <Trouble error={answer.error} />}
      <div className="row answer">
        <button type="button" className="main" disabled={answer.isPending || answer.isSuccess} onClick={approve}>
          Approve
        </button>
        <button
          type="button"
          className="danger"
          disabled={answer.isPending || answer.isSuccess}
          onClick={() => answer.mutate({ verb: "deny" })}
        >
          Deny
        </button>
      </div>
    </div>
  );
}
