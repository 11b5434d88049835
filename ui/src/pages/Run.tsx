// One run, live: its graph, its timeline, its log, its input and output, and its actions.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import { useCallback, useMemo } from "react";
import { type Run as RunView, runGraph, run as runQuery } from "../api/queries";
import { GraphView } from "../components/graph/GraphView";
import { Got } from "../components/Loading";
import { Status, Took, When } from "../components/Status";
import { Value } from "../components/Value";
import { fold } from "../lib/fold";
import { isOver } from "../lib/status";
import { useTabInView } from "../lib/useTabInView";
import { Actions } from "./run/Actions";
import { Children } from "./run/Children";
import { Events } from "./run/Events";
import { StepPanel } from "./run/StepPanel";
import { TimelineView } from "./run/TimelineView";
import { WaitingFor } from "./run/WaitingFor";

export default function Run() {
  const { run: id } = useParams({ from: "/runs/$run" });
  const query = useQuery({ ...runQuery(id), staleTime: 0 });
  return <Got query={query}>{(run) => <Page run={run} />}</Got>;
}

function Page({ run }: { run: RunView }) {
  const { view = "steps", step } = useSearch({ from: "/runs/$run" });
  const navigate = useNavigate({ from: "/runs/$run" });
  const tabs = useTabInView<HTMLDivElement>(view);
  const show = (next: string) => void navigate({ search: (before) => ({ ...before, view: next }), replace: true });
  const select = useCallback(
    (path: string | undefined) =>
      void navigate({
        search: (before) =>
          path === undefined ? { ...(before.view ? { view: before.view } : {}) } : { ...before, step: path },
        replace: true,
      }),
    [navigate],
  );
  return (
    <>
      <div className="head">
        <div className="stack">
          <div className="row wrap">
            <h1>
              <Link to="/workflows/$name" params={{ name: run.workflow }}>
                {run.workflow}
              </Link>
            </h1>
            <Status status={run.status} />
            {run.test && <span className="tag">test run</span>}
          </div>
          <p className="small dim">
            <code>{run.id}</code> · version {run.workflow_version} · by {run.created_by} · <When at={run.created_at} />
            {run.started_at && (
              <>
                {" "}
                · {run.finished_at ? "took" : "for"} <Took from={run.started_at} to={run.finished_at} />
              </>
            )}
            {run.generation > 0 && (
              <>
                {" "}
                · retried {run.generation} {run.generation === 1 ? "time" : "times"}
              </>
            )}
          </p>
          {run.parent && (
            <p className="small">
              Started by{" "}
              <Link to="/runs/$run" params={{ run: run.parent.run_id }} search={{ step: run.parent.step }}>
                the step {run.parent.step} of another run
              </Link>
            </p>
          )}
          {Object.keys(run.labels).length > 0 && (
            <p className="row wrap">
              {Object.entries(run.labels).map(([name, value]) => (
                <Link key={name} to="/runs" search={{ label: `${name}=${value}` }} className="tag">
                  {name}={value}
                </Link>
              ))}
            </p>
          )}
        </div>
        <Actions run={run} />
      </div>
      {run.error && (
        <div className="trouble" role="alert">
          <p className="trouble-title">{run.error.message}</p>
          <p className="small">
            Code <code>{run.error.code}</code>
          </p>
        </div>
      )}
      {!isOver(run.status) && <WaitingFor run={run} />}
      <Tabs.Root value={view} onValueChange={show} className="stack">
        <Tabs.List ref={tabs} className="tabs" aria-label="Views">
          <Tabs.Trigger value="steps">Steps</Tabs.Trigger>
          <Tabs.Trigger value="timeline">Timeline</Tabs.Trigger>
          <Tabs.Trigger value="data">Input and output</Tabs.Trigger>
          <Tabs.Trigger value="events">Log</Tabs.Trigger>
          <Tabs.Trigger value="children">Child runs</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="steps" className="stack">
          <Steps run={run} step={step} select={select} />
        </Tabs.Content>
        <Tabs.Content value="timeline" className="stack">
          <TimelineView run={run} selected={step} onSelect={select} />
          {step && <StepPanel run={run} step={step} select={select} />}
        </Tabs.Content>
        <Tabs.Content value="data" className="stack">
          <section className="card">
            {run.erased_at && <p className="note">The payloads of this run were erased on request.</p>}
            <Value label="Input" value={run.input} />
            {run.output !== null && run.output !== undefined ? (
              <Value label="Output" value={run.output} />
            ) : (
              <p className="dim">{isOver(run.status) ? "No output." : "No output yet."}</p>
            )}
          </section>
        </Tabs.Content>
        <Tabs.Content value="events">
          <Events run={run.id} version={run.version} />
        </Tabs.Content>
        <Tabs.Content value="children">
          <Children run={run.id} />
        </Tabs.Content>
      </Tabs.Root>
    </>
  );
}

function Steps({
  run,
  step,
  select,
}: {
  run: RunView;
  step: string | undefined;
  select: (path: string | undefined) => void;
}) {
  const graph = useQuery(runGraph(run.id, run.workflow_version));
  const folded = useMemo(() => fold(run.tasks), [run.tasks]);
  const pattern = step?.replace(/\[\d+\]/g, "[]");
  return (
    <div className={step ? "run-split" : "stack"}>
      <Got query={graph}>
        {(known) => <GraphView graph={known} folded={folded} selected={pattern} onSelect={select} />}
      </Got>
      {step && <StepPanel run={run} step={step} select={select} />}
    </div>
  );
}
