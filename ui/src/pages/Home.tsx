// Home: running, failed and upcoming runs, and open approvals. Without a workflow: how to get started.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { approvals, me, runsOf, schedules, workflows } from "../api/queries";
import { Got } from "../components/Loading";
import { Plot } from "../components/Plot";
import { RunTable } from "../components/RunTable";
import { When } from "../components/Status";
import { Trouble } from "../components/Trouble";
import { answerable } from "../lib/approvals";
import { question } from "../lib/notices";
import { useNow } from "../lib/now";
import { slices } from "../lib/plot";
import { useMay } from "../lib/rights";
import { startSample } from "../lib/sample";
import "../styles/plot.css";

const DAY = 86_400_000;
/** Runs that the plot counts at most. */
const COUNTED = 1_000;

export default function Home() {
  const all = useQuery({ ...workflows, staleTime: 0 });
  return <Got query={all}>{(list) => (list.length === 0 ? <FirstRun /> : <Overview />)}</Got>;
}

export function FirstRun() {
  const navigate = useNavigate();
  const may = useMay();
  const start = useMutation({
    mutationFn: startSample,
    onSuccess: (run) => navigate({ to: "/runs/$run", params: { run } }),
  });
  return (
    <div className="card empty">
      <h1>Welcome to Stepwell</h1>
      <p>
        A workflow is a graph of steps: calls to tools and services, waits, and questions to people. Every decision is
        saved before it takes effect, so a run continues where it was even if the server crashes.
      </p>
      <p>The sample greets, sleeps three seconds, asks you whether to continue, and finishes. It needs no network.</p>
      <div className="row wrap" hidden={!may("workflow.define")}>
        <button type="button" className="main" disabled={start.isPending} onClick={() => start.mutate()}>
          Create and run the sample
        </button>
        <Link to="/workflows/new" className="button">
          Draw your own workflow
        </Link>
      </div>
      {start.error && <Trouble error={start.error} />}
      <p className="small">
        From a terminal: <code>stepwell apply -f FILE</code>, or see <a href="/docs">the API</a>.
      </p>
    </div>
  );
}

function Overview() {
  // Fixed when the page opens: a moving filter would be a new query every second.
  const [since] = useState(() => new Date(Math.floor((Date.now() - DAY) / 60_000) * 60_000).toISOString());
  const open = useQuery(runsOf({ status: "running,queued,paused" }, 8));
  const failed = useQuery(runsOf({ status: "failed,timeout", since }, 8));
  const day = useQuery(runsOf({ since }, COUNTED));
  const asked = useQuery(approvals);
  const next = useQuery(schedules);
  const now = useNow();
  const who = useQuery(me);
  const mine = (asked.data ?? []).filter((one) => answerable(one, who.data?.user));
  const coming = (next.data ?? [])
    .flatMap((one) => one.next.slice(0, 3).map((at) => ({ at, workflow: one.workflow })))
    .filter((one) => Date.parse(one.at) > now)
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
    .slice(0, 6);
  const failures = day.data?.runs.filter((run) => run.status === "failed" || run.status === "timeout").length ?? 0;
  const count = (query: typeof open, limit: number) =>
    query.data ? `${query.data.runs.length}${query.data.more ? "+" : ""}` : limit ? "–" : "";
  return (
    <>
      <h1>Home</h1>
      <div className="numbers">
        <Link className="number" to="/runs" search={{ status: "running,queued,paused" }}>
          <b>{count(open, 8)}</b> not finished
        </Link>
        <Link className="number" to="/runs" search={{ status: "failed,timeout" }}>
          <b>{day.data ? `${failures}${day.data.more ? "+" : ""}` : "–"}</b> failed in 24 hours
        </Link>
        <Link className="number" to="/approvals">
          <b>{asked.data ? mine.length : "–"}</b> {mine.length === 1 ? "waits" : "wait"} for you
        </Link>
        <div className="number">
          <b>{day.data ? `${day.data.runs.length}${day.data.more ? "+" : ""}` : "–"}</b> runs in 24 hours
        </div>
      </div>
      <section className="card">
        <div className="card-head">
          <h2>Runs of the last 24 hours</h2>
          {day.data?.more && <span className="small dim">the newest {COUNTED}</span>}
        </div>
        {day.data && (
          <Plot
            slices={slices(day.data.runs, now, DAY, 24)}
            label="Runs of the last 24 hours, by the hour in which they were created"
          />
        )}
      </section>
      <div className="columns">
        <section className="card flush">
          <div className="card-head">
            <h2>Not finished</h2>
          </div>
          <Got query={open}>
            {(got) =>
              got.runs.length > 0 ? (
                <RunTable runs={got.runs} withCreator={false} />
              ) : (
                <p className="empty">Nothing is running.</p>
              )
            }
          </Got>
        </section>
        <section className="card flush">
          <div className="card-head">
            <h2>Failed in the last 24 hours</h2>
          </div>
          <Got query={failed}>
            {(got) =>
              got.runs.length > 0 ? (
                <RunTable runs={got.runs} withCreator={false} />
              ) : (
                <p className="empty">Nothing failed.</p>
              )
            }
          </Got>
        </section>
        <section className="card">
          <h2>Waiting for you</h2>
          {mine.length === 0 && <p className="dim">Nothing is waiting for you.</p>}
          {mine.slice(0, 6).map((one) => (
            <Link key={one.id} to="/approvals" search={{ ask: one.id }}>
              {one.workflow}: {question(one)}
            </Link>
          ))}
        </section>
        <section className="card">
          <h2>Comes next</h2>
          {coming.length === 0 && (
            <p className="dim">Nothing is scheduled. A workflow with a cron trigger appears here.</p>
          )}
          {coming.map((one) => (
            <div className="row between" key={`${one.workflow} ${one.at}`}>
              <Link to="/workflows/$name" params={{ name: one.workflow }}>
                {one.workflow}
              </Link>
              <When at={one.at} />
            </div>
          ))}
        </section>
      </div>
    </>
  );
}
