// The organisation's plan, and how much of it is used.
import { useQuery } from "@tanstack/react-query";
import { api, type Schemas } from "../../api/client";
import { Got } from "../../components/Loading";

export function Plan() {
  const query = useQuery({ queryKey: ["usage"], queryFn: () => api<Schemas["Usage"]>("/usage"), staleTime: 0 });
  return (
    <Got query={query}>
      {(usage) => {
        const { limits, plan, name } = usage.organisation;
        return (
          <section className="card">
            <h2>
              {name}: plan {plan}
            </h2>
            <Use label="Workflows" used={usage.workflows} most={limits.workflows} />
            <Use label="Unfinished runs" used={usage.open_runs} most={limits.concurrent_runs} />
            <Use
              label={`Steps executed in ${usage.month}`}
              used={usage.executions}
              most={limits.executions_per_month}
            />
            <p>
              Steps of one workflow: at most {limits.tasks_per_workflow?.toLocaleString() ?? "as many as you like"}.
              Schedules: {limits.cron === false ? "not allowed" : "allowed"}.
            </p>
          </section>
        );
      }}
    </Got>
  );
}

function Use({ label, used, most }: { label: string; used: number; most: number | null | undefined }) {
  return (
    <div className="stack">
      <div className="row between">
        <span>{label}</span>
        <span className="nowrap">
          <strong>{used.toLocaleString()}</strong>{" "}
          {most == null ? <span className="dim">without a limit</span> : `of ${most.toLocaleString()}`}
        </span>
      </div>
      {most != null && <progress value={used} max={Math.max(most, 1)} aria-label={label} />}
    </div>
  );
}
