// Input and output of a step in the test run, and the answer to a waiting gate.

import { useState } from "react";
import { Status, Took } from "../../components/Status";
import { Value } from "../../components/Value";
import type { StepState } from "../run/states";
import type { TestRun } from "../run/useTestRun";

/** Passes of a long loop that the list offers at most. */
const SHOWN = 200;

export function RunPart({ state, test }: { state: StepState; test: TestRun }) {
  const [path, setPath] = useState<string | null>(null);
  const one =
    state.each.find((each) => each.path === path) ??
    state.each.findLast((each) => each.step.status === state.status) ??
    state.each[0];
  if (!one) return null;
  const { step } = one;
  return (
    <section className="stack run-part" aria-label="In the test run">
      <div className="row between">
        <Status status={step.status} />
        <span className="dim small">
          {step.attempt > 1 && <>attempt {step.attempt}, </>}
          <Took from={step.started_at} to={step.finished_at} />
        </span>
      </div>
      {state.each.length > 1 && (
        <label className="field">
          <span className="label">
            Of {state.each.length}: {state.note}
          </span>
          <select value={one.path} onChange={(event) => setPath(event.target.value)}>
            {state.each.slice(0, SHOWN).map((each) => (
              <option key={each.path} value={each.path}>
                {each.path} ({each.step.status})
              </option>
            ))}
          </select>
        </label>
      )}
      {step.kind === "approval" && step.status === "waiting" && (
        <div className="row">
          <button type="button" className="main" disabled={test.busy} onClick={() => void test.answer(one.path, true)}>
            Approve
          </button>
          <button
            type="button"
            className="danger"
            disabled={test.busy}
            onClick={() => void test.answer(one.path, false)}
          >
            Deny
          </button>
        </div>
      )}
      {step.error && (
        <div className="trouble">
          <p className="trouble-title">{step.error.message}</p>
          <p className="small">
            <code>{step.error.code}</code>
          </p>
        </div>
      )}
      {step.input !== undefined && step.input !== null && <Value label="Input" value={step.input} />}
      {step.output !== undefined && step.output !== null && <Value label="Output" value={step.output} />}
    </section>
  );
}
