// The versions of a workflow, and the changes between two versions: in the text and in the graph.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type Version, versions, type Workflow, workflowGraph } from "../../api/queries";
import { GraphView } from "../../components/graph/GraphView";
import { Got } from "../../components/Loading";
import { When } from "../../components/Status";
import { TextDiff } from "../../components/TextDiff";
import { bothGraphs } from "../../lib/graphDiff";

export function Versions({ workflow }: { workflow: Workflow }) {
  const query = useQuery({ ...versions(workflow.name), staleTime: 0 });
  return <Got query={query}>{(all) => <Compare workflow={workflow} all={all} />}</Got>;
}

function Compare({ workflow, all }: { workflow: Workflow; all: Version[] }) {
  const newest = all[0]?.version ?? 1;
  const [to, setTo] = useState(newest);
  const [from, setFrom] = useState(Math.max(newest - 1, 1));
  const [before, after] = [all.find((one) => one.version === from), all.find((one) => one.version === to)];
  return (
    <div className="stack">
      <section className="card flush">
        <div className="table-box" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Version</th>
                <th>Made</th>
                <th className="wide-only">By</th>
                <th>Compare</th>
              </tr>
            </thead>
            <tbody>
              {all.map((one) => (
                <tr key={one.version}>
                  <td>{one.version}</td>
                  <td>
                    <When at={one.created_at} />
                  </td>
                  <td className="wide-only">{one.created_by}</td>
                  <td>
                    <div className="row">
                      <label className="check">
                        <input
                          type="radio"
                          name="from"
                          checked={from === one.version}
                          onChange={() => setFrom(one.version)}
                        />{" "}
                        from
                      </label>
                      <label className="check">
                        <input
                          type="radio"
                          name="to"
                          checked={to === one.version}
                          onChange={() => setTo(one.version)}
                        />{" "}
                        to
                      </label>
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {before && after && from !== to && (
        <>
          <DrawnDiff name={workflow.name} from={from} to={to} />
          <TextDiff before={before.source} after={after.source} title={`Version ${from} to ${to}`} />
        </>
      )}
      {all.length === 1 && <p className="dim">There is only one version. You can compare it with the next one here.</p>}
    </div>
  );
}

function DrawnDiff({ name, from, to }: { name: string; from: number; to: number }) {
  const before = useQuery(workflowGraph(name, from));
  const after = useQuery(workflowGraph(name, to));
  const both = useMemo(
    () => (before.data && after.data ? bothGraphs(before.data, after.data) : undefined),
    [before.data, after.data],
  );
  return both ? (
    <GraphView graph={both.graph} changes={both.changes} />
  ) : (
    <Got query={before.data ? after : before}>{() => null}</Got>
  );
}
