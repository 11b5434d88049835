// Approve or deny, in two deliberate steps. An answer is shown as given once the server has it: nothing is undone later.
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, part } from "../../api/client";
import { type Approval, queries } from "../../api/queries";
import { useSchemaForm } from "../../components/SchemaForm";
import { Trouble } from "../../components/Trouble";
import { remember } from "../../lib/answered";
import { useSettled } from "../../lib/useSettled";

type Verb = "approve" | "deny";

export function Answer({ asked, form, user }: { asked: Approval; form: unknown; user: string }) {
  const filled = useSchemaForm(form, undefined, "Data");
  const [comment, setComment] = useState("");
  const [wanted, setWanted] = useState<{ verb: Verb; data?: unknown }>();
  const confirm = useRef<HTMLDivElement>(null);
  const settled = useSettled(`${asked.id} ${wanted?.verb ?? ""}`);
  useEffect(() => {
    if (wanted) confirm.current?.focus();
  }, [wanted]);
  const answer = useMutation({
    mutationFn: ({ verb, data }: { verb: Verb; data?: unknown }) =>
      api(`/runs/${part(asked.run_id)}/steps/${part(asked.step)}/${verb}`, {
        method: "POST",
        body: {
          ...(comment ? { comment } : {}),
          ...(data === undefined ? {} : { data }),
          ...(asked.digest ? { digest: asked.digest } : {}),
        },
      }),
    onSuccess: (_, { verb }) => {
      const at = new Date().toISOString();
      remember({ asked, user, answer: verb === "approve" ? "approved" : "denied", comment, at });
    },
    onError: () => setWanted(undefined),
    // Even after a refusal the displayed data may be out of date.
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  const choose = (verb: Verb) => {
    answer.reset();
    if (verb === "deny" || !form) return setWanted({ verb });
    const data = filled.take();
    if (data !== undefined) setWanted({ verb, data });
  };
  const busy = answer.isPending || answer.isSuccess;
  return (
    <div className="answer-box stack">
      {answer.error && <Trouble error={answer.error} />}
      <div className="stack" hidden={wanted !== undefined}>
        {Boolean(form) && filled.view}
        <label className="field">
          <span className="label">Comment (optional)</span>
          <input type="text" value={comment} onChange={(event) => setComment(event.target.value)} />
        </label>
        <div className="answer">
          <button type="button" className="danger" disabled={!settled} onClick={() => choose("deny")}>
            Deny
          </button>
          <button type="button" className="main" disabled={!settled} onClick={() => choose("approve")}>
            Approve
          </button>
        </div>
      </div>
      {wanted && (
        <div className="confirm stack" ref={confirm} tabIndex={-1} role="group" aria-label="Confirm your answer">
          <p>
            {wanted.verb === "approve"
              ? "You approve what is shown above. Once given, the answer is final."
              : "You deny it. Once given, the answer is final."}
          </p>
          {/* “Go back” stands where the first button was: a second click in the same place decides nothing. */}
          <div className={`answer ${wanted.verb === "approve" ? "answer-turned" : ""}`}>
            <button type="button" disabled={busy} onClick={() => setWanted(undefined)}>
              Go back
            </button>
            <button
              type="button"
              className={wanted.verb === "approve" ? "main" : "danger"}
              disabled={busy || !settled}
              onClick={() => answer.mutate(wanted)}
            >
              {wanted.verb === "approve" ? "Yes, approve" : "Yes, deny"}
            </button>
          </div>
        </div>
      )}
    </div>
  );
}
