// A short list of runs.
import { Link } from "@tanstack/react-router";
import type { RunSummary } from "../api/queries";
import { Status, Took, When } from "./Status";

interface Props {
  runs: RunSummary[];
  withWorkflow?: boolean;
  withCreator?: boolean;
}

export function RunTable({ runs, withWorkflow = true, withCreator = true }: Props) {
  return (
    <div className="table-box" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {withWorkflow && <th>Workflow</th>}
            <th>Run</th>
            <th>Status</th>
            <th>Created</th>
            <th className="wide-only">Took</th>
            {withCreator && <th className="wide-only">By</th>}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              {withWorkflow && (
                <td>
                  <Link to="/workflows/$name" params={{ name: run.workflow }}>
                    {run.workflow}
                  </Link>
                </td>
              )}
              <td>
                <Link to="/runs/$run" params={{ run: run.id }} className="mono nowrap">
                  …{run.id.slice(-8)}
                </Link>
              </td>
              <td>
                <Status status={run.status} />
              </td>
              <td>
                <When at={run.created_at} />
              </td>
              <td className="wide-only">
                <Took from={run.started_at} to={run.finished_at} />
              </td>
              {withCreator && <td className="wide-only">{run.created_by}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
