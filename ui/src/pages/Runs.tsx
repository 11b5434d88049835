// Runs: a filterable live list. Only the visible rows are rendered, so a hundred thousand scroll as smoothly as ten.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useState } from "react";
import { type RunFilter, type RunSummary, run, workflows } from "../api/queries";
import { BulkActions } from "../components/BulkActions";
import { Loading } from "../components/Loading";
import { RunFilters } from "../components/RunFilters";
import { SavedFilters } from "../components/SavedFilters";
import { Status, Took, When } from "../components/Status";
import { Trouble } from "../components/Trouble";
import { useMay } from "../lib/rights";
import { duration, ORDERS, type Order, sorted } from "../lib/runFilters";
import { tone } from "../lib/status";
import { useFill } from "../lib/useFill";
import { useRunList } from "../lib/useRunList";
import { useWide } from "../lib/useWide";
import "../styles/runs.css";

const ROW = 46;
/** Room for the foot of the list, and on phones for the navigation below it. */
const BELOW = 80;
const BELOW_ON_PHONES = 150;

export default function Runs() {
  const search = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const all = useQuery(workflows);
  const filter: RunFilter = search;
  const list = useRunList(filter);
  const may = useMay();
  const set = (next: RunFilter) => void navigate({ search: next, replace: true });
  return (
    <>
      <div className="head">
        <h1>Runs</h1>
        {may("workflow.run") && <BulkActions filter={filter} />}
      </div>
      <RunFilters filter={filter} onChange={set} workflows={(all.data ?? []).map((one) => one.name)} />
      <SavedFilters filter={filter} onChange={set} />
      {list.error !== undefined && <Trouble error={list.error} retry={list.retry} />}
      {list.next === undefined && list.error === undefined && <Loading />}
      {list.next !== undefined && list.runs.length === 0 && (
        <div className="card empty">
          <h2>No runs</h2>
          <p>
            {Object.keys(filter).length > 0
              ? "No run matches these filters."
              : "Start a workflow and its runs appear here."}
          </p>
          <Link to="/workflows" className="button">
            Go to workflows
          </Link>
        </div>
      )}
      {list.runs.length > 0 && <Rows runs={list.runs} hasMore={Boolean(list.next)} more={list.more} />}
    </>
  );
}

function Rows({ runs: loaded, hasMore, more }: { runs: RunSummary[]; hasMore: boolean; more: () => void }) {
  const box = useFill(320, useWide() ? BELOW : BELOW_ON_PHONES);
  const [order, setOrder] = useState<Order>("newest");
  const runs = useMemo(() => sorted(loaded, order, Date.now()), [loaded, order]);
  const longest = useMemo(() => {
    const now = Date.now();
    return loaded.reduce((most, run) => Math.max(most, run.finished_at ? (duration(run, now) ?? 0) : 0), 1);
  }, [loaded]);
  const rows = useVirtualizer({
    count: runs.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    getItemKey: (at) => runs[at]?.id ?? at,
  });
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= runs.length - 40) more();
  }, [hasMore, last, runs.length, more]);
  return (
    <section className="card flush" aria-label="Runs">
      <div
        className="runs-box"
        ref={box}
        role="table"
        aria-rowcount={hasMore ? -1 : runs.length + 1}
        tabIndex={0}
        aria-label="Runs"
      >
        <div className="runs-row runs-head" role="row">
          <span role="columnheader">Status</span>
          <span role="columnheader">Workflow</span>
          <span role="columnheader">Run</span>
          <span role="columnheader">Created</span>
          <span role="columnheader" className="wide-only">
            Took
          </span>
          <span role="columnheader" className="wide-only">
            By
          </span>
          <span role="columnheader" className="wide-only">
            Cause of failure, labels
          </span>
        </div>
        <div className="runs-all" role="rowgroup" style={{ height: rows.getTotalSize() }}>
          {items.map((item) => {
            const run = runs[item.index];
            return run && <Row key={run.id} run={run} top={item.start} index={item.index} longest={longest} />;
          })}
        </div>
      </div>
      <div className="card-foot small dim row wrap between">
        <span>
          {runs.length.toLocaleString()} {hasMore ? "so far; scroll for more" : runs.length === 1 ? "run" : "runs"}
        </span>
        <label className="row">
          <span className="nowrap">Sort{hasMore ? " what is loaded" : ""}</span>
          <select value={order} onChange={(event) => setOrder(event.target.value as Order)}>
            {ORDERS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
    </section>
  );
}

function Row({ run, top, index, longest }: { run: RunSummary; top: number; index: number; longest: number }) {
  const share = run.finished_at ? (duration(run, 0) ?? 0) / longest : undefined;
  return (
    <div
      className="runs-row"
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)`, height: ROW }}
    >
      <span role="cell">
        <Status status={run.status} />
      </span>
      <span role="cell" className="cut">
        <Link to="/workflows/$name" params={{ name: run.workflow }}>
          {run.workflow}
        </Link>
        {run.child && <span className="tag">child</span>}
      </span>
      <span role="cell">
        <Link to="/runs/$run" params={{ run: run.id }} className="mono" title={run.id}>
          …{run.id.slice(-8)}
        </Link>
      </span>
      <span role="cell">
        <When at={run.created_at} />
      </span>
      <span role="cell" className="wide-only run-took">
        <Took from={run.started_at} to={run.finished_at} />
        {share !== undefined && (
          <span className={`run-bar bar-${tone(run.status)}`} style={{ width: `${Math.max(share * 100, 1)}%` }} />
        )}
      </span>
      <span role="cell" className="wide-only cut">
        {run.created_by}
      </span>
      <span role="cell" className="wide-only cut dim">
        {tone(run.status) === "bad" && <Cause run={run.id} />}
        {Object.entries(run.labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(" ")}
      </span>
    </div>
  );
}

/** Lists do not have the error of a run: it is asked for when someone wants it, and then kept. */
function Cause({ run: id }: { run: string }) {
  const [asked, setAsked] = useState(false);
  const query = useQuery({ ...run(id), enabled: asked });
  const error = query.data?.error;
  if (!asked || query.isPending)
    return (
      <button type="button" className="link small" disabled={asked} onClick={() => setAsked(true)}>
        {asked ? "…" : "Why?"}
        <span className="hidden-label"> did …{id.slice(-8)} fail</span>
      </button>
    );
  return (
    <span className="bad" title={error?.message}>
      {error?.message ?? "no error is known"}{" "}
    </span>
  );
}
