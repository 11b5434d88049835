// Actions on a run: cancel it, retry it, run it again with another input.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, part, type Schemas } from "../../api/client";
import { queries, type Run, workflow } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { Loading } from "../../components/Loading";
import { useSchemaForm } from "../../components/SchemaForm";
import { Trouble } from "../../components/Trouble";
import { useMay } from "../../lib/rights";
import type { Json } from "../../lib/schema";
import { isOver, isRetryable } from "../../lib/status";

type Which = "cancel" | "retry" | "rerun";

export function Actions({ run }: { run: Run }) {
  const [open, setOpen] = useState<Which>();
  const close = () => setOpen(undefined);
  const may = useMay();
  if (!may("workflow.run")) return null;
  return (
    <div className="row wrap">
      {!isOver(run.status) && (
        <button type="button" className="danger" onClick={() => setOpen("cancel")}>
          Cancel…
        </button>
      )}
      {isRetryable(run.status) && !run.erased_at && (
        <button type="button" className="main" onClick={() => setOpen("retry")}>
          Retry…
        </button>
      )}
      {!run.test && !run.erased_at && (
        <button type="button" onClick={() => setOpen("rerun")}>
          Run again…
        </button>
      )}
      {open === "cancel" && <Cancel run={run} onClose={close} />}
      {open === "retry" && <Retry run={run} onClose={close} />}
      {open === "rerun" && <Rerun run={run} onClose={close} />}
    </div>
  );
}

interface Props {
  run: Run;
  onClose: () => void;
}

function useAct(run: Run, onDone: () => void) {
  return useMutation({
    mutationFn: ({ verb, body }: { verb: string; body?: unknown }) =>
      api<Run>(`/runs/${part(run.id)}/${verb}`, { method: "POST", body: body ?? {} }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["run", run.id] });
      onDone();
    },
  });
}

function Cancel({ run, onClose }: Props) {
  const [reason, setReason] = useState("");
  const act = useAct(run, onClose);
  return (
    <Dialog title="Cancel this run" onClose={onClose}>
      <p>
        Running steps are stopped, and the rest does not start. Child runs are cancelled too. You can retry the run
        later.
      </p>
      <label className="field">
        <span className="label">Why (optional)</span>
        <input type="text" value={reason} onChange={(event) => setReason(event.target.value)} />
      </label>
      {act.error && <Trouble error={act.error} />}
      <div className="row">
        <button
          type="button"
          className="danger"
          disabled={act.isPending}
          onClick={() => act.mutate({ verb: "cancel", body: reason ? { reason } : {} })}
        >
          Cancel the run
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
}

function Retry({ run, onClose }: Props) {
  const [newest, setNewest] = useState(false);
  const act = useAct(run, onClose);
  const now = useQuery({ ...workflow(run.workflow), retry: false });
  const newer = now.data && now.data.version > run.workflow_version;
  const preview = useQuery({
    queryKey: ["retry", run.id, run.version, newest],
    queryFn: () => api<Schemas["RetryPreview"]>(`/runs/${part(run.id)}/retry?newest=${newest}`),
    retry: false,
  });
  return (
    <Dialog title="Retry this run" onClose={onClose}>
      <fieldset>
        <legend>Version</legend>
        <label className="check">
          <input type="radio" name="version" checked={!newest} onChange={() => setNewest(false)} />
          The run’s own, {run.workflow_version}
        </label>
        <label className="check">
          <input type="radio" name="version" checked={newest} disabled={!newer} onChange={() => setNewest(true)} />
          {newer ? `The newest, ${now.data?.version}` : "The newest is the run’s version"}
        </label>
      </fieldset>
      {preview.data && <Stands stands={preview.data.stands} again={preview.data.again} />}
      {preview.isPending && <Loading />}
      {preview.error && <Trouble error={preview.error} />}
      {act.error && <Trouble error={act.error} />}
      <div className="row">
        <button
          type="button"
          className="main"
          disabled={act.isPending || !preview.data}
          onClick={() => act.mutate({ verb: "retry", body: { newest } })}
        >
          Retry
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
}

/** The steps that are kept, and those that run again. */
function Stands({ stands, again }: { stands: string[]; again: string[] }) {
  return (
    <div className="columns">
      <Names title={`Kept (${stands.length})`} names={stands} none="Nothing: everything runs again." />
      <Names title={`Runs again (${again.length})`} names={again} none="Nothing." />
    </div>
  );
}

function Names({ title, names, none }: { title: string; names: string[]; none: string }) {
  return (
    <div className="stack">
      <h3>{title}</h3>
      {names.length === 0 && <p className="dim">{none}</p>}
      <ul className="plain-list mono">
        {names.slice(0, 20).map((name) => (
          <li key={name}>{name}</li>
        ))}
        {names.length > 20 && <li>and {names.length - 20} more</li>}
      </ul>
    </div>
  );
}

function Rerun({ run, onClose }: Props) {
  const now = useQuery({ ...workflow(run.workflow), retry: false });
  if (now.isPending) return null;
  return <RerunForm run={run} schema={now.data?.input_schema} onClose={onClose} />;
}

function RerunForm({ run, schema, onClose }: Props & { schema: unknown }) {
  const navigate = useNavigate();
  const form = useSchemaForm(schema, run.input as Json, "Input");
  const act = useMutation({
    mutationFn: (input: Json) =>
      api<{ id?: string; run_id?: string }>(`/runs/${part(run.id)}/rerun`, { method: "POST", body: input }),
    onSuccess: async (made) => {
      onClose();
      const id = made.run_id ?? made.id;
      if (id) await navigate({ to: "/runs/$run", params: { run: id } });
    },
  });
  const send = () => {
    const input = form.take();
    if (input !== undefined) act.mutate(input);
  };
  return (
    <Dialog title="Run again" onClose={onClose}>
      <p>Starts a fresh run of the workflow’s newest version. This one stays as it is.</p>
      {form.view}
      {act.error && <Trouble error={act.error} />}
      <div className="row">
        <button type="button" className="main" disabled={act.isPending} onClick={send}>
          Start
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
}
