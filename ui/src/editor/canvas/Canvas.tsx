// The definition as a graph that can be changed: steps are dragged in, connected, selected, moved and removed.

import {
  Background,
  type Connection,
  Controls,
  type EdgeChange,
  type Edge as FlowEdge,
  MarkerType,
  type NodeChange,
  ReactFlow,
  type ReactFlowInstance,
  useReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import "../../styles/graph.css";
import { type DragEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { tone } from "../../lib/status";
import { useTheme } from "../../lib/theme";
import type { Change, Fault, Kind, Model, Point } from "../model/types";
import type { StepState } from "../run/states";
import type { Selection } from "../selection";
import { BackEdge } from "./BackEdge";
import { backEdges, rightOf } from "./boxes";
import { handlesOf, StepBox, type StepNode, spoken } from "./StepNode";
import type { Placed } from "./useBoxes";

export const DRAG_TYPE = "application/x-stepwell-kind";
/** Above this many steps only the visible ones are rendered. */
const MANY = 60;
const TYPES = { step: StepBox };
const EDGES = { back: BackEdge };
const NONE: readonly Fault[] = [];
const FIT = { maxZoom: 1.1, minZoom: 0.1, padding: 0.14 };

export interface CanvasProps {
  model: Model;
  placed: Placed;
  faults: ReadonlyMap<string, readonly Fault[]>;
  states: ReadonlyMap<string, StepState>;
  selection: Selection;
  editable: boolean;
  /** Changes when the canvas is resized. */
  room: string;
  onSelect: (selection: Selection) => void;
  onChange: (change: Change) => void;
  onAdd: (kind: Kind, at: { point: Point; parent: string | undefined }) => void;
}

export function Canvas({
  model,
  placed,
  faults,
  states,
  selection,
  editable,
  room,
  onSelect,
  onChange,
  onAdd,
}: CanvasProps) {
  const { dark } = useTheme();
  const flow = useReactFlow<StepNode>();
  const { boxes, written } = placed;
  const [dragged, setDragged] = useState<ReadonlyMap<string, Point>>(new Map());
  const many = model.steps.length > MANY;
  const draggable = editable && model.dialect === "graph";

  // Kept apart from selection and movement, so that only the affected steps are redrawn.
  const datas = useMemo(() => {
    const scopes = new Set(model.steps.map((step) => step.parent));
    return new Map(
      model.steps.map((step) => {
        const data = {
          step,
          faults: faults.get(step.id) ?? NONE,
          state: states.get(step.id),
          scope: scopes.has(step.id),
          connectable: editable,
        };
        return [step.id, { data, ariaLabel: spoken(data) }];
      }),
    );
  }, [model, faults, states, editable]);

  const placedNodes = useMemo(() => {
    const list: StepNode[] = [];
    for (const step of model.steps) {
      const box = boxes.get(step.id);
      const made = datas.get(step.id);
      if (!box || !made || (step.parent !== undefined && !boxes.has(step.parent))) continue;
      list.push({
        id: step.id,
        type: "step",
        position: { x: box.x, y: box.y },
        width: box.width,
        height: box.height,
        // Without these every node would be drawn once more to be measured, including hundreds out of view.
        measured: { width: box.width, height: box.height },
        handles: handlesOf(step, box),
        ...(step.parent === undefined ? {} : { parentId: step.parent }),
        ...made,
      });
    }
    return list;
  }, [model, boxes, datas]);

  // Nodes that are neither selected nor moved keep their identity, so they are not redrawn.
  const nodes = useMemo(
    () =>
      placedNodes.map((node) => {
        const position = dragged.get(node.id);
        const selected = selection.steps.has(node.id);
        return position || selected ? { ...node, selected, position: position ?? node.position } : node;
      }),
    [placedNodes, dragged, selection.steps],
  );

  const back = useMemo(() => backEdges(model), [model]);
  const drawnEdges = useMemo(
    () =>
      model.edges.map((edge): FlowEdge => {
        const bad = edge.outlet === "error" || edge.outlet === "denied";
        const names = [bad ? "edge-error" : back.has(edge.id) ? "edge-back" : "", edge.derived ? "edge-derived" : ""];
        const label = edge.label && edge.label.length > 34 ? `${edge.label.slice(0, 33)}…` : edge.label;
        return {
          id: edge.id,
          source: edge.from,
          target: edge.to,
          sourceHandle: edge.outlet,
          ...(back.has(edge.id)
            ? { type: "back", data: { right: rightOf(boxes, edge.from, edge.to) } }
            : { type: "smoothstep" }),
          className: names.filter(Boolean).join(" "),
          animated: tone(states.get(edge.to)?.status ?? "") === "busy",
          markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
          ariaLabel: `from ${edge.from} to ${edge.to}${edge.label ? `, ${edge.label}` : ""}`,
          ...(label ? { label } : {}),
        };
      }),
    [model, back, boxes, states],
  );
  const edges = useMemo(
    () => drawnEdges.map((edge) => (edge.id === selection.edge ? { ...edge, selected: true } : edge)),
    [drawnEdges, selection.edge],
  );

  const onNodesChange = useCallback(
    (changes: NodeChange<StepNode>[]) => {
      const selects = changes.filter((one) => one.type === "select");
      if (selects.length > 0) {
        const steps = new Set(selection.steps);
        for (const one of selects) {
          if (one.selected) steps.add(one.id);
          else steps.delete(one.id);
        }
        onSelect({ steps, edge: steps.size > 0 ? null : selection.edge });
      }
      const moves = changes.filter((one) => one.type === "position" && one.position !== undefined);
      if (moves.length === 0 || !draggable) return;
      setDragged((before) => {
        const after = new Map(before);
        for (const one of moves) if (one.type === "position" && one.position) after.set(one.id, one.position);
        return after;
      });
    },
    [draggable, onSelect, selection],
  );

  const onEdgesChange = useCallback(
    (changes: EdgeChange[]) => {
      for (const one of changes) {
        if (one.type === "select" && one.selected) onSelect({ steps: new Set(), edge: one.id });
        else if (one.type === "select" && selection.edge === one.id) onSelect({ ...selection, edge: null });
      }
    },
    [onSelect, selection],
  );

  /** The first move writes all positions: a single position has no meaning. */
  const settle = useCallback(() => {
    if (dragged.size === 0) return;
    const moved = written ? [...dragged.keys()] : model.steps.map((step) => step.id);
    const steps = moved.flatMap((step) => {
      const position = dragged.get(step) ?? boxes.get(step);
      return position ? [{ step, position: { x: position.x, y: position.y } }] : [];
    });
    onChange({ type: "move", steps });
  }, [boxes, dragged, model, onChange, written]);

  // Once the text has the positions, nothing is being dragged.
  // biome-ignore lint/correctness/useExhaustiveDependencies: new boxes are the signal
  useEffect(() => setDragged(new Map()), [boxes]);

  // A new layout is shown whole. A large or hand-placed one stays where it is, unless the selection is out of view: after
  // a drag nothing may jump.
  const pane = useRef<HTMLDivElement>(null);
  const [first] = selection.steps;
  const shown = useRef({ boxes, room });
  useEffect(() => {
    if (shown.current.boxes === boxes && shown.current.room === room) return;
    shown.current = { boxes, room };
    const timer = setTimeout(() => {
      if (!many && !written) return void flow.fitView({ ...FIT, duration: 200 });
      if (first !== undefined && !inView(flow, pane.current, first))
        void flow.fitView({
          ...FIT,
          nodes: [{ id: first }],
          minZoom: flow.getZoom(),
          maxZoom: flow.getZoom(),
          duration: 200,
        });
    }, 30);
    return () => clearTimeout(timer);
  }, [boxes, first, flow, many, room, written]);

  const connect = useCallback(
    ({ source, target, sourceHandle }: Connection) =>
      onChange({ type: "connect", from: source, to: target, outlet: sourceHandle ?? "next" }),
    [onChange],
  );

  const drop = useCallback(
    (event: DragEvent) => {
      const kind = event.dataTransfer.getData(DRAG_TYPE) as Kind | "";
      if (kind === "" || !editable) return;
      event.preventDefault();
      const point = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
      const over = flow.getIntersectingNodes({ x: point.x, y: point.y, width: 1, height: 1 }) as StepNode[];
      const parent = over.filter((node) => node.data.scope).at(-1)?.id;
      onAdd(kind, { point: { x: point.x - 105, y: point.y - 31 }, parent });
    },
    [editable, flow, onAdd],
  );

  return (
    <ReactFlow
      ref={pane}
      nodes={nodes}
      edges={edges}
      nodeTypes={TYPES}
      edgeTypes={EDGES}
      colorMode={dark ? "dark" : "light"}
      onNodesChange={onNodesChange}
      onEdgesChange={onEdgesChange}
      onNodeDragStop={settle}
      onSelectionDragStop={settle}
      onConnect={connect}
      onPaneClick={() => onSelect({ steps: new Set(), edge: null })}
      onDrop={drop}
      onDragOver={(event) => event.preventDefault()}
      nodesDraggable={draggable}
      nodesConnectable={editable}
      onlyRenderVisibleElements={many}
      connectionRadius={36}
      deleteKeyCode={null}
      minZoom={0.05}
      fitView
      fitViewOptions={many ? { ...FIT, minZoom: 0.35 } : FIT}
      elevateNodesOnSelect={false}
    >
      <Background gap={22} />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}

/** Whether the whole step is within the canvas. */
function inView(flow: ReactFlowInstance<StepNode>, pane: HTMLElement | null, id: string): boolean {
  const node = flow.getInternalNode(id);
  const room = pane?.getBoundingClientRect();
  if (!node || !room) return false;
  const { x, y } = node.internals.positionAbsolute;
  const { width = 0, height = 0 } = node.measured;
  const from = flow.flowToScreenPosition({ x, y });
  const to = flow.flowToScreenPosition({ x: x + width, y: y + height });
  return from.x >= room.left && from.y >= room.top && to.x <= room.right && to.y <= room.bottom;
}
