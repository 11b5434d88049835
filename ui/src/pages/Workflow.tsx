// One workflow: its graph, its versions, what starts it, its recent runs, and a form to run it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import { useState } from "react";
import { api, part } from "../api/client";
import {
  queries,
  runsOf,
  type Workflow as WorkflowView,
  workflowGraph,
  workflow as workflowQuery,
} from "../api/queries";
import { Confirm } from "../components/Confirm";
import { GraphView } from "../components/graph/GraphView";
import { Got } from "../components/Loading";
import { RunTable } from "../components/RunTable";
import { When } from "../components/Status";
import { Toggle } from "../components/Toggle";
import { Trouble } from "../components/Trouble";
import { useMay } from "../lib/rights";
import { useTabInView } from "../lib/useTabInView";
import { RunDialog } from "./workflow/RunDialog";
import { Triggers } from "./workflow/Triggers";
import { Versions } from "./workflow/Versions";

export default function Workflow() {
  const { name } = useParams({ from: "/workflows/$name" });
  const query = useQuery({ ...workflowQuery(name), staleTime: 0 });
  return <Got query={query}>{(workflow) => <Page workflow={workflow} />}</Got>;
}

function Page({ workflow }: { workflow: WorkflowView }) {
  const { view = "graph" } = useSearch({ from: "/workflows/$name" });
  const navigate = useNavigate({ from: "/workflows/$name" });
  const [running, setRunning] = useState(false);
  const may = useMay();
  const tabs = useTabInView<HTMLDivElement>(view);
  const show = (next: string) => void navigate({ search: { view: next }, replace: true });
  return (
    <>
      <div className="head">
        <div className="stack">
          <div className="row wrap">
            <h1>{workflow.name}</h1>
            {!workflow.enabled && <span className="badge tone-idle">disabled</span>}
            {workflow.paused && <span className="badge tone-wait">paused</span>}
          </div>
          {workflow.description && <p>{workflow.description}</p>}
          <p className="small dim">
            version {workflow.version} by {workflow.created_by}, <When at={workflow.inserted_at} /> · {workflow.dialect}{" "}
            · started by {workflow.triggers.join(", ")}
          </p>
          {Object.keys(workflow.labels).length > 0 && (
            <p className="row wrap">
              {Object.entries(workflow.labels).map(([name, value]) => (
                <span key={name} className="tag">
                  {name}={value}
                </span>
              ))}
            </p>
          )}
        </div>
        <div className="row wrap">
          {may("workflow.define") && <Switches workflow={workflow} />}
          {may("workflow.define") && (
            <Link to="/workflows/$name/edit" params={{ name: workflow.name }} className="button">
              Edit
            </Link>
          )}
          {may("workflow.run") && (
            <button type="button" className="main" disabled={!workflow.enabled} onClick={() => setRunning(true)}>
              Run…
            </button>
          )}
        </div>
      </div>
      {running && <RunDialog workflow={workflow} onClose={() => setRunning(false)} />}
      <Tabs.Root value={view} onValueChange={show} className="stack">
        <Tabs.List ref={tabs} className="tabs" aria-label="Views">
          <Tabs.Trigger value="graph">Graph</Tabs.Trigger>
          <Tabs.Trigger value="runs">Runs</Tabs.Trigger>
          <Tabs.Trigger value="triggers">Triggers</Tabs.Trigger>
          <Tabs.Trigger value="versions">Versions</Tabs.Trigger>
          <Tabs.Trigger value="source">Definition</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="graph">
          <Drawn workflow={workflow} />
        </Tabs.Content>
        <Tabs.Content value="runs">
          <Recent workflow={workflow} />
        </Tabs.Content>
        <Tabs.Content value="triggers">
          <Triggers workflow={workflow} />
        </Tabs.Content>
        <Tabs.Content value="versions">
          <Versions workflow={workflow} />
        </Tabs.Content>
        <Tabs.Content value="source" className="stack">
          <section className="card">
            <pre className="value tall" tabIndex={0} role="group" aria-label="Definition">
              {workflow.source}
            </pre>
            {may("workflow.define") && (
              <div>
                <Delete workflow={workflow} />
              </div>
            )}
          </section>
        </Tabs.Content>
      </Tabs.Root>
    </>
  );
}

function Switches({ workflow }: { workflow: WorkflowView }) {
  const done = async () => {
    await queries.invalidateQueries({ queryKey: ["workflow", workflow.name] });
    await queries.invalidateQueries({ queryKey: ["workflows"] });
  };
  const path = `/workflows/${part(workflow.name)}`;
  const enable = useMutation({
    mutationFn: (enabled: boolean) => api(path, { method: "PATCH", body: { enabled } }),
    onSettled: done,
  });
  const pause = useMutation({
    mutationFn: () => api(`${path}/${workflow.paused ? "resume" : "pause"}`, { method: "POST" }),
    onSettled: done,
  });
  const error = enable.error ?? pause.error;
  return (
    <>
      <span className="row">
        <Toggle
          label="Enabled"
          on={workflow.enabled}
          disabled={enable.isPending}
          onChange={(on) => enable.mutate(on)}
        />
        Enabled
      </span>
      <button
        type="button"
        title={workflow.paused ? "Start new runs again" : "Accept new runs and hold them"}
        disabled={pause.isPending}
        onClick={() => pause.mutate()}
      >
        {workflow.paused ? "Resume" : "Pause"}
      </button>
      {error && <Trouble error={error} />}
    </>
  );
}

function Drawn({ workflow }: { workflow: WorkflowView }) {
  const graph = useQuery(workflowGraph(workflow.name, workflow.version));
  return <Got query={graph}>{(known) => <GraphView graph={known} />}</Got>;
}

function Recent({ workflow }: { workflow: WorkflowView }) {
  const query = useQuery(runsOf({ workflow: workflow.name }, 20));
  return (
    <section className="card flush">
      <Got query={query}>
        {(got) =>
          got.runs.length === 0 ? (
            <p className="empty">It has not run yet.</p>
          ) : (
            <>
              <RunTable runs={got.runs} withWorkflow={false} />
              <p className="card-foot">
                <Link to="/runs" search={{ workflow: workflow.name }}>
                  All its runs
                </Link>
              </p>
            </>
          )
        }
      </Got>
    </section>
  );
}

function Delete({ workflow }: { workflow: WorkflowView }) {
  const navigate = useNavigate();
  const act = async () => {
    await api(`/workflows/${part(workflow.name)}`, { method: "DELETE" });
    await navigate({ to: "/workflows" });
  };
  return (
    <Confirm label="Delete…" title={`Delete ${workflow.name}`} act={act}>
      <p>
        Nothing starts it any more, and its webhook addresses stop working. Runs continue to their end and stay visible.
      </p>
    </Confirm>
  );
}
