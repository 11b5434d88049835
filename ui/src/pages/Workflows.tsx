// All workflows, with their last and next run and their switch.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, part } from "../api/client";
import { queries, runsOf, schedules, type WorkflowSummary, workflows } from "../api/queries";
import { Got } from "../components/Loading";
import { Status, When } from "../components/Status";
import { Toggle } from "../components/Toggle";
import { Trouble } from "../components/Trouble";
import { useMay } from "../lib/rights";
import { FirstRun } from "./Home";

/** Each workflow's last run is searched among this many newest runs. */
const RECENT = 500;

export default function Workflows() {
  const query = useQuery({ ...workflows, staleTime: 0 });
  const [wanted, setWanted] = useState("");
  const may = useMay();
  return (
    <Got query={query}>
      {(all) =>
        all.length === 0 ? (
          <FirstRun />
        ) : (
          <>
            <div className="head">
              <h1>Workflows</h1>
              <div className="row wrap">
                <input
                  type="search"
                  placeholder="Find by name or label"
                  aria-label="Find by name or label"
                  value={wanted}
                  onChange={(event) => setWanted(event.target.value)}
                />
                {may("workflow.define") && (
                  <Link to="/workflows/new" className="button main">
                    New workflow
                  </Link>
                )}
              </div>
            </div>
            <List all={all.filter((one) => fits(one, wanted))} />
          </>
        )
      }
    </Got>
  );
}

function fits(workflow: WorkflowSummary, wanted: string): boolean {
  const labels = Object.entries(workflow.labels).map(([name, value]) => `${name}=${value}`);
  const text = [workflow.name, workflow.description ?? "", ...labels].join("\n").toLowerCase();
  return text.includes(wanted.trim().toLowerCase());
}

function List({ all }: { all: WorkflowSummary[] }) {
  const recent = useQuery(runsOf({}, RECENT));
  const fires = useQuery(schedules);
  const may = useMay();
  const toggle = useMutation({
    mutationFn: ({ name, enabled }: { name: string; enabled: boolean }) =>
      api(`/workflows/${part(name)}`, { method: "PATCH", body: { enabled } }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["workflows"] }),
  });
  const last = new Map((recent.data?.runs ?? []).map((run) => [run.workflow_id, run] as const).reverse());
  const next = (name: string) =>
    (fires.data ?? [])
      .filter((one) => one.workflow === name)
      .flatMap((one) => one.next.slice(0, 1))
      .sort()[0];
  return (
    <section className="card flush">
      {toggle.error && <Trouble error={toggle.error} />}
      {all.length === 0 && <p className="empty">No workflow matches.</p>}
      <div className="table-box" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Last run</th>
              <th className="wide-only">Next run</th>
              <th className="wide-only">Started by</th>
              <th className="wide-only">Steps</th>
              <th>Enabled</th>
            </tr>
          </thead>
          <tbody>
            {all.map((one) => {
              const run = last.get(one.id);
              return (
                <tr key={one.id}>
                  <td>
                    <Link to="/workflows/$name" params={{ name: one.name }}>
                      <strong>{one.name}</strong>
                    </Link>{" "}
                    {one.paused && <span className="badge tone-wait">paused</span>}
                    {one.description && <div className="small dim">{one.description}</div>}
                    <div className="row wrap">
                      {Object.entries(one.labels).map(([name, value]) => (
                        <span key={name} className="tag">
                          {name}={value}
                        </span>
                      ))}
                    </div>
                  </td>
                  <td>
                    {run ? (
                      <span className="row last-run">
                        <Status status={run.status} />
                        <Link to="/runs/$run" params={{ run: run.id }}>
                          <When at={run.created_at} />
                        </Link>
                      </span>
                    ) : (
                      <span className="dim">{recent.data?.more ? "not lately" : "never"}</span>
                    )}
                  </td>
                  <td className="wide-only">
                    <When at={one.enabled ? next(one.name) : undefined} />
                  </td>
                  <td className="wide-only">{one.triggers.join(", ")}</td>
                  <td className="wide-only">{one.task_count}</td>
                  <td>
                    <Toggle
                      disabled={!may("workflow.define")}
                      label={`${one.name} is enabled`}
                      on={one.enabled}
                      onChange={(enabled) => toggle.mutate({ name: one.name, enabled })}
                    />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
