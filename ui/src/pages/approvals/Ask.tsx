// One question: what exactly will happen, the form, approve or deny.
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, part } from "../../api/client";
import { type Approval, queries } from "../../api/queries";
import { useSchemaForm } from "../../components/SchemaForm";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import { type Call, readAsks } from "../../lib/asks";
import { question } from "../../lib/notices";

export function Ask({ asked }: { asked: Approval }) {
  const asks = useMemo(() => readAsks(asked.asks), [asked.asks]);
  return (
    <article className="card" id={asked.id} aria-label={question(asked)}>
      <div className="card-head">
        <h2 className="question">{question(asked)}</h2>
        {asked.until && (
          <span className="badge tone-wait">
            decided without an answer <When at={asked.until} />
          </span>
        )}
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
      {(asks.policy ?? asks.reason) && (
        <p className="note">
          A policy wants this approved{asks.policy ? `: ${asks.policy}` : ""}. {asks.reason}
        </p>
      )}
      {asks.approvers.length > 0 && <p className="small">May answer: {asks.approvers.join(", ")}</p>}
      {asks.required > 1 && (
        <p className="small">
          {asked.approved_by?.length ?? 0} of {asks.required} have approved{asked.approved_by?.length ? `: ${asked.approved_by.join(", ")}` : ""}. One denial is enough to deny.
        </p>
      )}
      <Calls calls={asks.calls} />
      {asked.mine ? <Answer asked={asked} form={asks.form} /> : <p className="dim">You may look, but not answer this one.</p>}
      {asked.digest && (
        <details className="small">
          <summary>Digest of what is shown</summary>
          <code className="digest">{asked.digest}</code>
          <p className="dim">The answer names it: if anything here changes before you answer, the answer is refused.</p>
        </details>
      )}
    </article>
  );
}

function Calls({ calls }: { calls: Call[] }) {
  if (calls.length === 0) return null;
  return (
    <div className="stack">
      <h3>{calls.length === 1 ? "What will happen" : `What will happen: ${calls.length} calls`}</h3>
      {calls.map((call) => (
        <details key={call.step} open={calls.length <= 3}>
          <summary>
            <strong>{call.step}</strong> <span className="dim">{[call.kind, call.about].filter(Boolean).join(" ")}</span>
          </summary>
          {call.unknown && <p className="dim">Its arguments depend on what is still to happen, so this approval does not cover them.</p>}
          {call.tooLarge && <p className="dim">Its arguments are too long to show; they are covered by the digest.</p>}
          {call.input !== undefined && <Value label={`Arguments of ${call.step}`} value={call.input} />}
          {call.digest && (
            <p className="small dim">
              Digest <code className="digest">{call.digest}</code>
            </p>
          )}
        </details>
      ))}
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
    // Refused or not, what is shown may be out of date.
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
        <button type="button" className="danger" disabled={answer.isPending || answer.isSuccess} onClick={() => answer.mutate({ verb: "deny" })}>
          Deny
        </button>
      </div>
    </div>
  );
}
