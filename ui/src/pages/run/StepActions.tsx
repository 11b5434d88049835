// Actions on a waiting step, and those of an administrator on a stuck one.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, part } from "../../api/client";
import { queries, type Run, type Step } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { useSchemaForm } from "../../components/SchemaForm";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { useMay } from "../../lib/rights";
import { full } from "../../lib/time";
import { MoveOn } from "./MoveOn";

interface Props {
  step: Step;
  run: Run;
  path: string;
}

export function StepActions({ step, run, path }: Props) {
  const waits = run.waiting_for.find((one) => one.step === path);
  const may = useMay();
  const [finishing, setFinishing] = useState(false);
  if (!waits) return null;
  const stuck = waits.for !== "approval" && waits.for !== "verdict";
  return (
    <>
      <div className="row wrap">
        <MoveOn run={run} waiting={waits} />
        {may("admin") && stuck && (
          <button type="button" onClick={() => setFinishing(true)}>
            End it by hand…
          </button>
        )}
      </div>
      {waits.until && stuck && (
        <p className="note waiting small">
          {waits.for === "retry" ? `Attempt ${step.attempt + 1} follows ` : "It continues "}
          <When at={waits.until} /> <span className="dim">({full(waits.until)})</span>
        </p>
      )}
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
