// The test run under the canvas: its input, its state, and the buttons to stop and discard it.

import { useState } from "react";
import { Dialog } from "../../components/Dialog";
import { useSchemaForm } from "../../components/SchemaForm";
import { Status, Took } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import type { Json } from "../model/types";
import type { TestRun } from "./useTestRun";

export function RunBar({ test }: { test: TestRun }) {
  const { run } = test;
  const [open, setOpen] = useState(false);
  if (!test.shown && !test.error) return null;
  return (
    <div className="run-bar" role="region" aria-label="Test run">
      {test.error !== null && test.error !== undefined && <Trouble error={test.error} />}
      {test.shown && (
        <div className="row wrap">
          <strong>Test run</strong>
          <span role="status">{run ? <Status status={run.status} /> : "starting…"}</span>
          {run && <Took from={run.started_at} to={run.finished_at} />}
          {run?.error && <span className="bad">{run.error.message}</span>}
          <span className="grow" />
          {run?.output !== undefined && run.output !== null && (
            <button type="button" onClick={() => setOpen(true)}>
              Output
            </button>
          )}
          {test.going && (
            <button type="button" disabled={test.busy} onClick={() => void test.stop()}>
              Stop
            </button>
          )}
          <button type="button" disabled={test.busy} onClick={() => void test.discard()}>
            Discard
          </button>
        </div>
      )}
      {open && run && (
        <Dialog title="Output of the run" onClose={() => setOpen(false)}>
          <Value label="Output" value={run.output} />
        </Dialog>
      )}
    </div>
  );
}

interface StartProps {
  schema: Json | undefined;
  given: Json;
  busy: boolean;
  onStart: (input: Json) => void;
  onClose: () => void;
}

/** Asks for the input. Test runs are real: they make their calls. */
export function StartDialog({ schema, given, busy, onStart, onClose }: StartProps) {
  const form = useSchemaForm(schema, given, "Input");
  const start = () => {
    const input = form.take();
    if (input !== undefined) onStart(input);
  };
  return (
    <Dialog title="Test run" onClose={onClose}>
      <p className="dim">Runs the current text without saving it. It makes real calls.</p>
      {form.view}
      <div className="row">
        <button type="button" className="main" disabled={busy} onClick={start}>
          Run it
        </button>
        <button type="button" onClick={onClose}>
          Not now
        </button>
      </div>
    </Dialog>
  );
}
