// A graph as a picture, or as an accessible list of the same steps.
import { lazy, Suspense, useState } from "react";
import { counted } from "../../lib/fold";
import { word } from "../../lib/status";
import { Loading } from "../Loading";
import { Status } from "../Status";
import type { PictureProps } from "./GraphPicture";

const GraphPicture = lazy(() => import("./GraphPicture"));

export function GraphView(props: PictureProps) {
  const [list, setList] = useState(false);
  const { graph } = props;
  return (
    <section className="card flush" aria-label={`Graph of ${graph.name}`}>
      <div className="card-head">
        <h2>{props.folded ? "Steps" : "Graph"}</h2>
        <button type="button" className="link small" aria-pressed={list} onClick={() => setList(!list)}>
          {list ? "Show as a picture" : "Show as a list"}
        </button>
      </div>
      {list ? (
        <GraphList {...props} />
      ) : (
        <div className="graph">
          <Suspense fallback={<Loading />}>
            <GraphPicture {...props} />
          </Suspense>
        </div>
      )}
    </section>
  );
}

function GraphList({ graph, folded, changes, onSelect }: PictureProps) {
  const into = new Map<number, string[]>();
  for (const edge of graph.edges) {
    const from = graph.nodes[edge.from]?.name ?? "";
    const text = edge.label ? `${from} (${edge.label})` : from;
    into.set(edge.to, [...(into.get(edge.to) ?? []), text]);
  }
  return (
    <div className="table-box" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Step</th>
            <th>Kind</th>
            <th>After</th>
            <th>{folded ? "Status" : "Inside"}</th>
          </tr>
        </thead>
        <tbody>
          {graph.nodes.map((node, at) => {
            const state = folded?.get(node.path);
            const change = changes?.get(node.path);
            return (
              <tr key={node.path}>
                <td>
                  {onSelect ? (
                    <button type="button" className="link" onClick={() => onSelect(node.path)}>
                      {node.name}
                    </button>
                  ) : (
                    node.name
                  )}
                  {change && change !== "same" && <span className="tag">{change}</span>}
                </td>
                <td>
                  {node.kind} <span className="dim">{node.detail}</span>
                </td>
                <td className="dim">{into.get(at)?.join(", ") ?? "the start"}</td>
                <td>
                  {state && <Status status={state.status} />}{" "}
                  {state && state.count > 1 && <span className="dim">{counted(state, word)}</span>}
                  {!folded && node.parent != null && <span className="dim">{graph.nodes[node.parent]?.name}</span>}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
