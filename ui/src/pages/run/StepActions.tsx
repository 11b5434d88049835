// Actions on a waiting step, and those of an administrator on a stuck one.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, part } from "../../api/client";
import { me, queries, type Run, type Step } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { useSchemaForm } from "../../components/SchemaForm";
import { Trouble } from "../../components/Trouble";

interface Props {
  step: Step;
  run: Run;
  path: string;
}

export function StepActions({ step, run, path }: Props) {
  const waits = run.waiting_for.find((one) => one.step === path);
  const who = useQuery(me);
  const [finishing, setFinishing] = useState(false);
  const ready = useMutation({
    mutationFn: () => api(`/steps/${part(step.id)}/ready`, { method: "POST" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["run", run.id] }),
  });
  if (!waits) return null;
  const words: Record<string, string> = {
    sleep: "Wake it now",
    retry: "Try again now",
    webhook: "Continue without the call",
  };
  const label = words[waits.for];
  const admin = who.data?.grants.includes("admin") ?? false;
  return (
    <>
      <div className="row wrap">
        {(waits.for === "approval" || waits.for === "verdict") && (
          <Link to="/approvals" search={{ ask: step.id }} className="button main">
            Answer
          </Link>
        )}
        {label && (
          <button type="button" disabled={ready.isPending} onClick={() => ready.mutate()}>
            {label}
          </button>
        )}
        {admin && waits.for !== "approval" && waits.for !== "verdict" && (
          <button type="button" onClick={() => setFinishing(true)}>
            End it by hand…
          </button>
        )}
      </div>
      {ready.error && <Trouble error={ready.error} />}
      {finishing && <Finish run={run} path={path} onClose={() => setFinishing(false)} />}
    </>
  );
}

function Finish({ run, path, onClose }: { run: Run; path: string; onClose: () => void }) {
  const [failed, setFailed] = useState(false);
  const [error, setError] = useState("");
  const [comment, setComment] = useState("");
  const form = useSchemaForm(undefined, {}, "Result");
  const act = useMutation({
    mutationFn: (body: unknown) => api(`/runs/${part(run.id)}/steps/${part(path)}/finish`, { method: "POST", body }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["run", run.id] });
      onClose();
    },
  });
  const send = () => {
    const why = comment ? { comment } : {};
    if (failed) return act.mutate({ error, ...why });
    const output = form.take();
    if (output !== undefined) act.mutate({ output, ...why });
  };
  return (
    <Dialog title={`End ${path} by hand`} onClose={onClose}>
      <p>The step is stopped. The log and the audit trail record who did it.</p>
      <label className="check">
        <input type="checkbox" checked={failed} onChange={(event) => setFailed(event.target.checked)} /> It failed
      </label>
      {failed ? (
        <label className="field">
          <span className="label">What went wrong</span>
          <input type="text" value={error} onChange={(event) => setError(event.target.value)} />
        </label>
      ) : (
        form.view
      )}
      <label className="field">
        <span className="label">Why (optional)</span>
        <input type="text" value={comment} onChange={(event) => setComment(event.target.value)} />
      </label>
      {act.error && <Trouble error={act.error} />}
      <div className="row">
        <button type="button" className="main" onClick={send} disabled={act.isPending || (failed && !error)}>
          End it
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
}
