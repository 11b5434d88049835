// Runs a workflow: a form generated from its input schema.
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, part, type Schemas } from "../../api/client";
import type { Workflow } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { useSchemaForm } from "../../components/SchemaForm";
import { Trouble } from "../../components/Trouble";
import type { Json } from "../../lib/schema";

export function RunDialog({ workflow, onClose }: { workflow: Workflow; onClose: () => void }) {
  const navigate = useNavigate();
  const form = useSchemaForm(workflow.input_schema, undefined, "Input");
  const start = useMutation({
    mutationFn: (input: Json) =>
      api<Schemas["Triggered"]>(`/workflows/${part(workflow.name)}/trigger`, { method: "POST", body: input }),
    onSuccess: (made) => navigate({ to: "/runs/$run", params: { run: made.run_id } }),
  });
  const send = () => {
    const input = form.take();
    if (input !== undefined) start.mutate(input);
  };
  return (
    <Dialog title={`Run ${workflow.name}`} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        {form.view}
        {start.error && <Trouble error={start.error} />}
        <div className="row">
          <button type="submit" className="main" disabled={start.isPending}>
            Start
          </button>
          <button type="button" onClick={onClose}>
            Go back
          </button>
        </div>
      </form>
    </Dialog>
  );
}
