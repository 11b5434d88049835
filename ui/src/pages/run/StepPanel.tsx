// A step of a run: its input, output and attempts. For a step inside a loop, first a choice of the pass or item.
import { useState } from "react";
import type { Run } from "../../api/queries";
import { Status, Took, When } from "../../components/Status";
import { Value } from "../../components/Value";
import { counted, fold } from "../../lib/fold";
import { word } from "../../lib/status";
import { StepActions } from "./StepActions";

interface Props {
  run: Run;
  /** A path, or a pattern such as `each[].charge`, which matches many. */
  step: string;
  select: (path: string | undefined) => void;
}

const SHOWN = 100;

export function StepPanel({ run, step, select }: Props) {
  return (
    <section className="card step-panel" aria-label={`Step ${step}`}>
      <div className="card-head">
        <h2 className="mono">{step}</h2>
        <button type="button" className="quiet" onClick={() => select(undefined)} aria-label="Close the step">
          ✕
        </button>
      </div>
      {step.includes("[]") ? (
        <Many run={run} pattern={step} select={select} />
      ) : (
        <One run={run} path={step} select={select} />
      )}
    </section>
  );
}

function Many({ run, pattern, select }: { run: Run; pattern: string; select: (path: string) => void }) {
  const [only, setOnly] = useState("");
  const [shown, setShown] = useState(SHOWN);
  const folded = fold(run.tasks).get(pattern);
  if (!folded) return <p className="dim">This step has not been reached.</p>;
  const paths = folded.paths.filter((path) => only === "" || run.tasks[path]?.status === only);
  return (
    <>
      <p>
        {folded.count} times: {counted(folded, word)}.
      </p>
      <label className="row small">
        Show
        <select value={only} onChange={(event) => setOnly(event.target.value)}>
          <option value="">all</option>
          {Object.keys(folded.by).map((status) => (
            <option key={status} value={status}>
              {word(status)}
            </option>
          ))}
        </select>
      </label>
      <ul className="plain-list">
        {paths.slice(0, shown).map((path) => (
          <li key={path} className="row between">
            <button type="button" className="link mono" onClick={() => select(path)}>
              {path}
            </button>
            <Status status={run.tasks[path]?.status ?? ""} />
          </li>
        ))}
      </ul>
      {paths.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN)}>
          Show {Math.min(SHOWN, paths.length - shown)} more of {paths.length - shown}
        </button>
      )}
    </>
  );
}

function One({ run, path, select }: { run: Run; path: string; select: (path: string) => void }) {
  const step = run.tasks[path];
  const pattern = path.replace(/\[\d+\]/g, "[]");
  if (!step) return <p className="dim">This step has not been reached.</p>;
  return (
    <>
      <dl className="facts">
        <dt>Status</dt>
        <dd>
          <Status status={step.status} {...(step.status_code ? { note: String(step.status_code) } : {})} />
        </dd>
        <dt>Kind</dt>
        <dd>{step.kind}</dd>
        <dt>Began</dt>
        <dd>
          <When at={step.started_at} />
        </dd>
        <dt>Took</dt>
        <dd>
          <Took from={step.started_at} to={step.finished_at} />
        </dd>
        <dt>Attempt</dt>
        <dd>{step.attempt}</dd>
      </dl>
      {pattern !== path && (
        <button type="button" className="link small" onClick={() => select(pattern)}>
          All of {pattern}
        </button>
      )}
      <StepActions step={step} run={run} path={path} />
      {step.error && (
        <div className="trouble">
          <p className="trouble-title">{step.error.message}</p>
          <p className="small">
            Code <code>{step.error.code}</code>
          </p>
        </div>
      )}
      {step.input !== null && step.input !== undefined && <Value label="Input" value={step.input} />}
      {step.output !== null && step.output !== undefined && (
        <Value label={step.is_truncated ? "Output (cut off: it was too long to keep)" : "Output"} value={step.output} />
      )}
      {step.attempts && step.attempts.length > 0 && (
        <>
          <h3>Attempts</h3>
          {step.attempts.map((attempt) => (
            <details key={attempt.attempt}>
              <summary>
                {attempt.attempt}: <Status status={attempt.status} />{" "}
                <Took from={attempt.started_at} to={attempt.finished_at} />
              </summary>
              <div className="stack">
                {attempt.error && <Value label={`Error of attempt ${attempt.attempt}`} value={attempt.error} />}
                {attempt.output !== null && attempt.output !== undefined && (
                  <Value label={`Output of attempt ${attempt.attempt}`} value={attempt.output} />
                )}
              </div>
            </details>
          ))}
        </>
      )}
    </>
  );
}
