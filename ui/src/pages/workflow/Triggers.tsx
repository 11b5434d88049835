// What starts a workflow: schedules with their next fires, webhook addresses, the API.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, part } from "../../api/client";
import { queries, type Schedule, schedule, type Workflow } from "../../api/queries";
import { Confirm } from "../../components/Confirm";
import { Got } from "../../components/Loading";
import { When } from "../../components/Status";
import { full } from "../../lib/time";

export function Triggers({ workflow }: { workflow: Workflow }) {
  const query = useQuery({ ...schedule(workflow.name), staleTime: 0 });
  const rotate = async () => {
    await api(`/workflows/${part(workflow.name)}/rotate-webhooks`, { method: "POST" });
    await queries.invalidateQueries({ queryKey: ["workflow", workflow.name] });
  };
  return (
    <div className="columns">
      <section className="card">
        <h2>Schedules</h2>
        <Got query={query}>
          {(all) => (
            <>
              {all.length === 0 && (
                <p className="dim">
                  None. A <code>cron</code> or <code>at</code> trigger in the definition starts it by itself.
                </p>
              )}
              {all.map((one) => (
                <Fires key={one.id} schedule={one} enabled={workflow.enabled} />
              ))}
            </>
          )}
        </Got>
      </section>
      <section className="card">
        <h2>Webhooks</h2>
        {(workflow.webhooks ?? []).length === 0 && (
          <p className="dim">
            None that you may see. A <code>webhook</code> trigger gives the workflow an address that others can call.
          </p>
        )}
        {(workflow.webhooks ?? []).map((url) => (
          <pre key={url} className="value">
            {url}
          </pre>
        ))}
        {(workflow.webhooks ?? []).length > 0 && (
          <div>
            <Confirm label="New addresses…" title="New webhook addresses" act={rotate}>
              <p>The old addresses stop working. Inform their callers.</p>
            </Confirm>
          </div>
        )}
      </section>
      <section className="card">
        <h2>From the command line and the API</h2>
        <pre className="value">{`curl -H "Authorization: Bearer $KEY" \\\n  ${window.location.origin}/api/v1/workflows/${workflow.name}/trigger -d '{}'`}</pre>
        <pre className="value">{`stepwell trigger ${workflow.name}`}</pre>
      </section>
    </div>
  );
}

function Fires({ schedule, enabled }: { schedule: Schedule; enabled: boolean }) {
  return (
    <div className="stack">
      <p>
        <code>{schedule.cron ?? "once"}</code> <span className="dim">{schedule.timezone}</span>
      </p>
      {schedule.last_error && <p className="bad">The last fire started no run: {schedule.last_error}</p>}
      {schedule.last && (
        <p className="small">
          Last: <When at={schedule.last} />{" "}
          {schedule.last_run_id && (
            <Link to="/runs/$run" params={{ run: schedule.last_run_id }}>
              the run
            </Link>
          )}
        </p>
      )}
      {!enabled && <p className="dim">It is disabled: nothing fires.</p>}
      <ol className="fires small">
        {schedule.next.map((at) => (
          <li key={at}>
            {full(at)}{" "}
            <span className="dim">
              (<When at={at} />)
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}
