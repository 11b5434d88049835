// One run, live: its graph, its timeline, its log, its input and output, and its actions.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { type Run as RunView, runGraph, run as runQuery } from "../api/queries";
import { GraphView } from "../components/graph/GraphView";
import { Got } from "../components/Loading";
import { Panes } from "../components/Panes";
import { Status, Took, When } from "../components/Status";
import { Value } from "../components/Value";
import { asker } from "../lib/approvals";
import { fold } from "../lib/fold";
import { pattern } from "../lib/paths";
import { isOver } from "../lib/status";
import { useFill } from "../lib/useFill";
import { useTabInView } from "../lib/useTabInView";
import { useVeryWide, useWide } from "../lib/useWide";
import { Actions } from "./run/Actions";
import { Children } from "./run/Children";
import { Events } from "./run/Events";
import { StepPanel } from "./run/StepPanel";
import { TimelineView } from "./run/TimelineView";
import { WaitingFor } from "./run/WaitingFor";
import "../styles/bench.css";

export default function Run() {
  const { run: id } = useParams({ from: "/runs/$run" });
  const query = useQuery({ ...runQuery(id), staleTime: 0 });
  return <Got query={query}>{(got) => <Page run={got} />}</Got>;
}

function Page({ run }: { run: RunView }) {
  const { view = "steps", step } = useSearch({ from: "/runs/$run" });
  const navigate = useNavigate({ from: "/runs/$run" });
  const wide = useWide();
  // A wide page has the timeline beside the steps.
  const shown = wide && view === "timeline" ? "steps" : view;
  const tabs = useTabInView<HTMLDivElement>(shown);
  const show = (next: string) =>
    void navigate({ search: (before) => ({ ...before, view: next }), replace: true, resetScroll: false });
  const select = useCallback(
    (path: string | undefined) =>
      void navigate({
        search: (before) =>
          path === undefined ? { ...(before.view ? { view: before.view } : {}) } : { ...before, step: path },
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  /** From a view that has no room for a step. */
  const open = useCallback(
    (path: string | undefined) =>
      void navigate({ search: { view: "steps", ...(path ? { step: path } : {}) }, replace: true }),
    [navigate],
  );
  return (
    <>
      <div className="head">
        <div className="stack run-head">
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
            <code>{run.id}</code> · version {run.workflow_version} · by {asker(run.created_by, run.started_by)} ·{" "}
            <When at={run.created_at} />
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
      {!isOver(run.status) && <WaitingFor run={run} select={open} />}
      <Tabs.Root value={shown} onValueChange={show} className="stack">
        <Tabs.List ref={tabs} className="tabs" aria-label="Views">
          <Tabs.Trigger value="steps">Steps</Tabs.Trigger>
          {!wide && <Tabs.Trigger value="timeline">Timeline</Tabs.Trigger>}
          <Tabs.Trigger value="data">Input and output</Tabs.Trigger>
          <Tabs.Trigger value="events">Log</Tabs.Trigger>
          <Tabs.Trigger value="children">Child runs</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="steps" className="stack">
          {wide ? <Bench run={run} step={step} select={select} /> : <Steps run={run} step={step} select={select} />}
        </Tabs.Content>
        <Tabs.Content value="timeline" className="stack">
          <TimelineView run={run} selected={step} onSelect={select} />
          {step && <Below run={run} step={step} select={select} />}
        </Tabs.Content>
        <Tabs.Content value="data" className="stack">
          <section className="card">
            <RunData run={run} />
          </section>
        </Tabs.Content>
        <Tabs.Content value="events">
          <Events run={run} select={open} />
        </Tabs.Content>
        <Tabs.Content value="children">
          <Children run={run.id} />
        </Tabs.Content>
      </Tabs.Root>
    </>
  );
}

function RunData({ run }: { run: RunView }) {
  return (
    <>
      {run.erased_at && <p className="note">The payloads of this run were erased on request.</p>}
      <Value label="Input" value={run.input} path="input" />
      {run.output !== null && run.output !== undefined ? (
        <Value label="Output" value={run.output} />
      ) : (
        <p className="dim">{isOver(run.status) ? "No output." : "No output yet."}</p>
      )}
    </>
  );
}

interface Shown {
  run: RunView;
  step: string | undefined;
  select: (path: string | undefined) => void;
}

/** With room: graph, timeline and inspector side by side. */
function Bench({ run, step, select }: Shown) {
  const fill = useFill(520);
  const roomy = useVeryWide();
  const graph = <RunGraph run={run} step={step} select={select} />;
  const timeline = <TimelineView run={run} selected={step} onSelect={select} />;
  const inspector = step ? (
    <StepPanel run={run} step={step} select={select} />
  ) : (
    <section className="card step-panel" aria-label="The run">
      <p className="small dim">Choose a step in the graph or the timeline to see its input, output and attempts.</p>
      <RunData run={run} />
    </section>
  );
  return (
    <div className="bench" ref={fill}>
      {roomy ? (
        <Panes name="run-3" direction="row" begin={[0.36, 0.32, 0.32]} labels={["the graph", "the timeline"]}>
          {graph}
          {timeline}
          {inspector}
        </Panes>
      ) : (
        <Panes name="run-2" direction="row" begin={[0.6, 0.4]} labels={["the graph"]}>
          <Panes name="run-stack" direction="column" begin={[0.62, 0.38]} labels={["the graph"]}>
            {graph}
            {timeline}
          </Panes>
          {inspector}
        </Panes>
      )}
    </div>
  );
}

/** Without room: the step below what it was opened from, brought into view. */
function Steps({ run, step, select }: Shown) {
  return (
    <div className="stack">
      <RunGraph run={run} step={step} select={select} />
      {step && <Below run={run} step={step} select={select} />}
    </div>
  );
}

function Below({ run, step, select }: Shown & { step: string }) {
  const ref = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another step is the signal
  useEffect(() => {
    ref.current?.scrollIntoView({ block: "start" });
  }, [step]);
  return (
    <div ref={ref}>
      <StepPanel run={run} step={step} select={select} />
    </div>
  );
}

function RunGraph({ run, step, select }: Shown) {
  const graph = useQuery(runGraph(run.id, run.workflow_version));
  const folded = useMemo(() => fold(run.tasks), [run.tasks]);
  const waits = useMemo(() => {
    const timed = run.waiting_for.filter((one) => one.until && one.for !== "approval");
    return new Map(timed.map((one) => [pattern(one.step), { for: one.for, until: one.until ?? "" }]));
  }, [run.waiting_for]);
  return (
    <Got query={graph}>
      {(known) => (
        <GraphView
          graph={known}
          folded={folded}
          waits={waits}
          over={isOver(run.status)}
          selected={step === undefined ? undefined : pattern(step)}
          onSelect={select}
        />
      )}
    </Got>
  );
}
