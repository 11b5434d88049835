// The button that moves a waiting step on, if there is one and this user may press it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, part, type Schemas } from "../../api/client";
import { approvals, me, queries, type Run } from "../../api/queries";
import { Trouble } from "../../components/Trouble";
import { answerable } from "../../lib/approvals";
import { useMay } from "../../lib/rights";

type Waiting = Schemas["Waiting"];

const SIGNALS: Record<string, string> = {
  sleep: "Wake it now",
  retry: "Try again now",
  webhook: "Continue without the call",
};

export function MoveOn({ run, waiting }: { run: Run; waiting: Waiting }) {
  const may = useMay();
  const who = useQuery(me);
  const asked = useQuery(approvals);
  const step = run.tasks[waiting.step];
  const signal = useMutation({
    mutationFn: () => api(`/steps/${part(step?.id ?? "")}/ready`, { method: "POST" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["run", run.id] }),
  });
  const release = useMutation({
    mutationFn: () => api(`/runs/${part(run.id)}/release`, { method: "POST", body: {} }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["run", run.id] }),
  });
  if (waiting.for === "quarantine")
    return may("admin") ? (
      <>
        <button type="button" disabled={release.isPending} onClick={() => release.mutate()}>
          Release it
        </button>
        {release.error && <Trouble error={release.error} />}
      </>
    ) : null;
  if (!step) return null;
  if (waiting.for === "approval" || waiting.for === "verdict") {
    const open = asked.data?.find((one) => one.id === step.id);
    if (open && !answerable(open, who.data?.user)) return null;
    return (
      <Link to="/approvals" search={{ ask: step.id }} className="button main">
        Answer
      </Link>
    );
  }
  if (waiting.for === "child" && step.child_run_id)
    return (
      <Link to="/runs/$run" params={{ run: step.child_run_id }} className="button">
        Open the child run
      </Link>
    );
  const label = SIGNALS[waiting.for];
  if (!label || !may("workflow.run")) return null;
  return (
    <>
      <button type="button" disabled={signal.isPending} onClick={() => signal.mutate()}>
        {label}
      </button>
      {signal.error && <Trouble error={signal.error} />}
    </>
  );
}
