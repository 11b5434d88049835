// A step of a run: its input, output and attempts. For a step inside a loop, first a choice of the pass or item.
import { Link } from "@tanstack/react-router";
import { Fragment, useMemo, useState } from "react";
import type { Run } from "../../api/queries";
import { Status, Took, When } from "../../components/Status";
import { Value } from "../../components/Value";
import { counted, fold, rank } from "../../lib/fold";
import { itemsOf } from "../../lib/items";
import { visible } from "../../lib/servers";
import { tone, word } from "../../lib/status";
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
  const statusOf = (path: string) => run.tasks[path]?.status ?? "";
  const paths = folded.paths
    .filter((path) => only === "" || statusOf(path) === only)
    .sort((a, b) => rank(statusOf(a)) - rank(statusOf(b)));
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
            {run.tasks[path]?.error && <span className="small dim cut grow">{run.tasks[path]?.error?.message}</span>}
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
        <dd>{step.kind.replaceAll("_", " ")}</dd>
        <dt>Began</dt>
        <dd>
          <When at={step.started_at} />
        </dd>
        <dt>Took</dt>
        <dd>
          <Took from={step.started_at} to={step.finished_at} />
        </dd>
        {step.attempt > 1 && (
          <>
            <dt>Attempts</dt>
            <dd>{step.attempt}</dd>
          </>
        )}
        {step.child_run_id && (
          <>
            <dt>Child run</dt>
            <dd>
              <Link to="/runs/$run" params={{ run: step.child_run_id }} className="mono">
                …{step.child_run_id.slice(-8)}
              </Link>
            </dd>
          </>
        )}
        {(step.approvals ?? []).length > 0 && (
          <>
            <dt>Approved by</dt>
            <dd>{(step.approvals ?? []).map((one) => one.by).join(", ")}</dd>
          </>
        )}
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
      <Items run={run} scope={path} select={select} />
      {step.input !== null && step.input !== undefined && <Value label="Input" value={step.input} />}
      {step.output !== null && step.output !== undefined && (
        <Value
          label={step.is_truncated ? "Output (cut off: it was too long to keep)" : "Output"}
          value={step.output}
          path={`tasks.${path}.body`}
        />
      )}
      <Headers headers={step.headers ?? {}} />
      <Lines lines={step.log ?? []} />
      {step.attempts && step.attempts.length > 0 && (
        <>
          <h3>Attempts</h3>
          {step.attempts.map((attempt) => (
            <details key={attempt.attempt}>
              <summary>
                {attempt.attempt}: <Status status={attempt.status} />{" "}
                <Took from={attempt.started_at} to={attempt.finished_at} />
                {attempt.error && <span className="small dim"> {attempt.error.message}</span>}
              </summary>
              <div className="stack">
                {attempt.error && <Value label={`Error of attempt ${attempt.attempt}`} value={attempt.error} />}
                {attempt.output !== null && attempt.output !== undefined && (
                  <Value label={`Output of attempt ${attempt.attempt}`} value={attempt.output} />
                )}
                <Lines lines={attempt.log ?? []} />
              </div>
            </details>
          ))}
        </>
      )}
    </>
  );
}

/** What a for_each or a loop contains: failed items first. */
function Items({ run, scope, select }: { run: Run; scope: string; select: (path: string) => void }) {
  const [shown, setShown] = useState(10);
  const items = useMemo(() => itemsOf(run.tasks, scope), [run.tasks, scope]);
  if (items.length === 0) return null;
  const failed = items.filter((one) => tone(one.status) === "bad").length;
  return (
    <section className="stack" aria-label="Items">
      <h3>
        {items.length} {items.length === 1 ? "item" : "items"}
        {failed > 0 && <span className="bad">, {failed} failed</span>}
      </h3>
      <ul className="plain-list">
        {items.slice(0, shown).map((item) => (
          <li key={item.index} className="row">
            <button type="button" className="link mono" onClick={() => select(item.path)}>
              {item.index}
            </button>
            <Status status={item.status} />
            {item.error && <span className="small dim cut grow">{item.error}</span>}
          </li>
        ))}
      </ul>
      {items.length > shown && (
        <button type="button" className="link small" onClick={() => setShown(shown + SHOWN)}>
          Show more of {items.length}
        </button>
      )}
    </section>
  );
}

function Headers({ headers }: { headers: Record<string, string> }) {
  const all = Object.entries(headers);
  if (all.length === 0) return null;
  return (
    <details>
      <summary>Response headers ({all.length})</summary>
      <dl className="facts small mono">
        {all.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{String(value)}</dd>
          </Fragment>
        ))}
      </dl>
    </details>
  );
}

const LEVELS: Record<string, string> = { error: "bad", warn: "wait" };

/** What the step wrote while it ran. */
function Lines({ lines }: { lines: { level: string; text: string }[] }) {
  const [text, setText] = useState("");
  if (lines.length === 0) return null;
  const shown = lines.filter((line) => line.text.toLowerCase().includes(text.toLowerCase()));
  return (
    <section className="stack" aria-label="Lines of the step">
      <div className="row between">
        <h3>Lines ({lines.length})</h3>
        {lines.length > 10 && (
          <input
            type="search"
            aria-label="Filter lines"
            placeholder="Filter"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </div>
      <pre className="value step-lines" tabIndex={0} role="group" aria-label="Lines">
        {shown.map((line, at) => (
          <span key={at} className={LEVELS[line.level] ? `line-${LEVELS[line.level]}` : ""}>
            {line.level.padEnd(5)} {visible(line.text)}
            {"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}
