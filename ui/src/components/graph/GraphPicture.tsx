// A graph as a picture: boxes for steps, frames for loops, live states if a run is shown. Loaded when first needed.
import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  type Viewport,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import "../../styles/graph.css";
import { memo, useMemo } from "react";
import type { Graph } from "../../api/queries";
import { counted, type Folded, heat } from "../../lib/fold";
import type { Change } from "../../lib/graphDiff";
import { wayIn, wayOut } from "../../lib/handles";
import type { Boxes } from "../../lib/layout";
import { sign, tone, word } from "../../lib/status";
import { ways } from "../../lib/taken";
import { useTheme } from "../../lib/theme";
import { useLayout } from "../../lib/useLayout";
import { Loading } from "../Loading";
import { Took, When } from "../Status";

export interface PictureProps {
  graph: Graph;
  /** States by path; absent if the graph shows a definition and not a run. */
  folded?: Map<string, Folded>;
  changes?: Map<string, Change>;
  /** When a waiting step continues by itself, by path. */
  waits?: Map<string, Wait>;
  /** The run has ended, so what was not reached never will be. */
  over?: boolean;
  selected?: string | undefined;
  onSelect?: (path: string) => void;
}

export interface Wait {
  for: string;
  until: string;
}

interface Drawn {
  graph: Graph;
  boxes: Boxes;
  folded: Map<string, Folded> | undefined;
  changes: Map<string, Change> | undefined;
  waits: Map<string, Wait> | undefined;
  over: boolean;
  selected: string | undefined;
  onSelect: ((path: string) => void) | undefined;
}

interface StepData extends Record<string, unknown> {
  name: string;
  path: string;
  kind: string;
  detail: string;
  scope: boolean;
  folded: Folded | undefined;
  change: Change | undefined;
  wait: Wait | undefined;
  heat: number | undefined;
  onSelect: ((path: string) => void) | undefined;
}

type StepNode = Node<StepData, "step">;

/** As wide as the library makes them. */
const HANDLE = 6;
/** Above this many boxes only the visible ones are rendered. */
const MANY = 120;

export default function GraphPicture(props: PictureProps) {
  const { graph, folded, changes, waits, over = false, selected, onSelect } = props;
  const shape = useMemo(() => {
    const path = (at: number) => graph.nodes[at]?.path ?? "";
    return {
      nodes: graph.nodes.map((node) => ({
        id: node.path,
        ...(node.parent == null ? {} : { parent: path(node.parent) }),
      })),
      edges: graph.edges.map((edge) => ({
        from: path(edge.from),
        to: path(edge.to),
        back: edge.style === "back",
        label: edge.label,
      })),
    };
  }, [graph]);
  const boxes = useLayout(shape);
  return boxes ? <Picture {...{ graph, boxes, folded, changes, waits, over, selected, onSelect }} /> : <Loading />;
}

function Picture({ graph, boxes, folded, changes, waits, over, selected, onSelect }: Drawn) {
  const { dark } = useTheme();
  const large = graph.nodes.length > MANY;
  const scopes = useMemo(() => new Set(graph.nodes.map((node) => node.parent)), [graph]);
  const warm = useMemo(() => {
    const paths = graph.nodes.filter((_, at) => scopes.has(at)).map((node) => node.path);
    return folded ? heat(folded, new Set(paths)) : undefined;
  }, [graph, scopes, folded]);
  const nodes = useMemo(
    () =>
      inOrder(graph).map((at): StepNode => {
        const node = graph.nodes[at] ?? { name: "", path: "", kind: "pass" as const, detail: "", parent: null };
        const box = boxes.get(node.path) ?? { x: 0, y: 0, width: 0, height: 0 };
        const parent = node.parent == null ? undefined : graph.nodes[node.parent]?.path;
        return {
          id: node.path,
          type: "step",
          position: { x: box.x, y: box.y },
          width: box.width,
          height: box.height,
          // Without these every box would be drawn once more to be measured, including those out of view.
          measured: { width: box.width, height: box.height },
          handles: [wayIn(box, HANDLE), wayOut(box, HANDLE)],
          ...(parent === undefined ? {} : { parentId: parent }),
          selected: node.path === selected,
          data: {
            name: node.name,
            path: node.path,
            kind: node.kind,
            detail: node.detail,
            scope: scopes.has(at),
            folded: folded?.get(node.path),
            change: changes?.get(node.path),
            wait: waits?.get(node.path),
            heat: warm?.get(node.path),
            onSelect,
          },
        };
      }),
    [graph, boxes, scopes, folded, changes, waits, warm, selected, onSelect],
  );
  const edges = useMemo(() => edgesOf(graph, folded, over), [graph, folded, over]);
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={TYPES}
      colorMode={dark ? "dark" : "light"}
      fitView={!large}
      fitViewOptions={{ maxZoom: 1.1, minZoom: 0.1, padding: 0.12 }}
      // A large graph opens at a step: its middle may be empty, and then nothing would be drawn to be fitted.
      {...(large ? { defaultViewport: viewOn(telling(graph, folded, selected), graph, boxes) } : {})}
      minZoom={0.05}
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      onlyRenderVisibleElements={large}
      preventScrolling={false}
      zoomOnScroll={false}
      panOnScroll={false}
    >
      <Background gap={22} />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}

/** The step that is shown first: the open one, one that failed or waits, or the first. */
function telling(graph: Graph, folded: Map<string, Folded> | undefined, selected: string | undefined): string {
  const paths = graph.nodes.map((node) => node.path);
  if (selected !== undefined && paths.includes(selected)) return selected;
  const is = (wanted: string) => paths.find((path) => tone(folded?.get(path)?.status ?? "") === wanted);
  return is("bad") ?? is("wait") ?? is("busy") ?? paths[0] ?? "";
}

/** A view with this step in its upper part, for a pane of any size. */
function viewOn(path: string, graph: Graph, boxes: Boxes): Viewport {
  const zoom = 0.6;
  let [x, y] = [(boxes.get(path)?.width ?? 0) / 2, 0];
  for (let at = graph.nodes.findIndex((node) => node.path === path); at >= 0; at = graph.nodes[at]?.parent ?? -1) {
    const box = boxes.get(graph.nodes[at]?.path ?? "");
    x += box?.x ?? 0;
    y += box?.y ?? 0;
  }
  return { x: 280 - x * zoom, y: 60 - y * zoom, zoom };
}

/** Frames come before their content. */
function inOrder(graph: Graph): number[] {
  const depth = (at: number): number => {
    const parent = graph.nodes[at]?.parent;
    return parent == null ? 0 : 1 + depth(parent);
  };
  const depths = graph.nodes.map((_, at) => depth(at));
  return graph.nodes.map((_, at) => at).sort((a, b) => (depths[a] ?? 0) - (depths[b] ?? 0) || a - b);
}

function edgesOf(graph: Graph, folded: Map<string, Folded> | undefined, over: boolean): Edge[] {
  const way = folded ? ways(graph, folded, over) : [];
  return graph.edges.map((edge, at) => {
    const [source, target] = [graph.nodes[edge.from]?.path ?? "", graph.nodes[edge.to]?.path ?? ""];
    const moving = folded !== undefined && tone(folded.get(target)?.status ?? "") === "busy";
    return {
      id: String(at),
      source,
      target,
      className: `edge-${edge.style}${way[at] ? ` way-${way[at]}` : ""}`,
      zIndex: way[at] === "taken" ? 1 : 0,
      animated: moving,
      type: edge.style === "back" ? "default" : "smoothstep",
      markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
      ...(edge.label ? { label: edge.label.length > 40 ? `${edge.label.slice(0, 39)}…` : edge.label } : {}),
    };
  });
}

const CHANGES: Record<Change, string> = { same: "", added: "new", removed: "removed", changed: "changed" };

/** A run has many events, and most concern few steps: only those steps are redrawn. */
const StepBox = memo(function StepBox({ data, selected }: NodeProps<StepNode>) {
  const { folded, change } = data;
  const status = folded?.status;
  const many = folded && folded.count > 1 ? counted(folded, word) : undefined;
  const inner = (
    <>
      <span className="box-top">
        {status && (
          <span className={`box-sign tone-${tone(status)}`} aria-hidden="true">
            {sign(status)}
          </span>
        )}
        <span className="box-name">{data.name}</span>
        {status && !many && <span className="hidden-label">{word(status)}</span>}
        {folded && folded.count > 1 && <span className="box-count">×{folded.count}</span>}
        {folded?.count === 1 && folded.attempt > 1 && (
          <span className="box-count" title={`${folded.attempt} attempts`}>
            ↻{folded.attempt}
          </span>
        )}
        {folded?.began && (
          <span className="box-count">
            <Took from={folded.began} to={folded.ended} />
          </span>
        )}
        {change && change !== "same" && <span className="box-count">{CHANGES[change]}</span>}
      </span>
      <span className="box-detail">
        {data.wait && (
          <span className="box-wait-until">
            {data.wait.for === "retry" ? "next attempt " : "until "}
            <When at={data.wait.until} /> ·{" "}
          </span>
        )}
        {data.kind}
        {many ? ` · ${many}` : data.detail ? ` · ${data.detail}` : ""}
      </span>
    </>
  );
  const name = [
    "box",
    data.scope ? "box-scope" : "",
    status ? `box-${tone(status)}` : "",
    change ? `box-${change}` : "",
    selected ? "box-selected" : "",
  ];
  return (
    <div className={name.filter(Boolean).join(" ")}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      {data.onSelect ? (
        <button
          type="button"
          className="box-inner nodrag"
          onClick={() => data.onSelect?.(data.path)}
          aria-pressed={selected}
        >
          {inner}
        </button>
      ) : (
        <div className="box-inner">{inner}</div>
      )}
      {data.heat !== undefined && (
        <span className="box-heat" style={{ width: `${Math.round(data.heat * 100)}%` }} aria-hidden="true" />
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
}, sameLook);

function sameLook(a: NodeProps<StepNode>, b: NodeProps<StepNode>): boolean {
  const look = ({ data, selected }: NodeProps<StepNode>) => {
    const { folded, onSelect, ...rest } = data;
    return JSON.stringify([
      rest,
      selected,
      folded && [folded.status, folded.attempt, folded.began, folded.ended, counted(folded, word)],
    ]);
  };
  return a.data.onSelect === b.data.onSelect && look(a) === look(b);
}

const TYPES = { step: StepBox };
