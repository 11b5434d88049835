// Positions of steps on the canvas: from the text if they are usable, else from the layout.

import { type Box, type Boxes, layout, NODE, type Shape } from "../../lib/layout";
import type { Model } from "../model/types";

/** What the layout depends on. */
export function shapeOf(model: Model): Shape {
  const back = backEdges(model);
  return {
    nodes: model.steps.map(({ id, parent }) => (parent === undefined ? { id } : { id, parent })),
    edges: model.edges.map(({ id, from, to, label }) => ({
      from,
      to,
      ...(back.has(id) ? { back: true } : {}),
      ...(label ? { label: label.slice(0, 24) } : {}),
    })),
  };
}

/** Edges that lead back to a step on their own path. */
export function backEdges(model: Model): Set<string> {
  const leaving = new Map<string, { id: string; to: string }[]>();
  for (const edge of model.edges) leaving.set(edge.from, [...(leaving.get(edge.from) ?? []), edge]);
  const into = new Set(model.edges.map((edge) => edge.to));
  const back = new Set<string>();
  const done = new Set<string>();
  const open = new Set<string>();
  const walk = (start: string) => {
    const stack = [{ id: start, next: 0 }];
    open.add(start);
    while (stack.length > 0) {
      const top = stack[stack.length - 1] as { id: string; next: number };
      const edge = (leaving.get(top.id) ?? [])[top.next];
      top.next += 1;
      if (!edge) {
        open.delete(top.id);
        done.add(top.id);
        stack.pop();
      } else if (open.has(edge.to)) {
        back.add(edge.id);
      } else if (!done.has(edge.to)) {
        open.add(edge.to);
        stack.push({ id: edge.to, next: 0 });
      }
    }
  };
  const first = model.steps.filter((step) => step.kind === "start" || step.id === "start" || !into.has(step.id));
  for (const step of [...first, ...model.steps]) if (!done.has(step.id)) walk(step.id);
  return back;
}

/** Positions from the text are used if every node has one and no two nodes share one. */
export function writtenBoxes(model: Model): Boxes | null {
  if (model.dialect !== "graph" || model.steps.length === 0) return null;
  const boxes = new Map<string, Box>();
  const seen = new Set<string>();
  for (const { id, position } of model.steps) {
    if (!position) continue;
    seen.add(`${Math.round(position.x)} ${Math.round(position.y)}`);
    boxes.set(id, { ...position, ...NODE });
  }
  return boxes.size === model.steps.length && seen.size === boxes.size ? boxes : null;
}

/** The right edge of the boxes between two boxes. */
export function rightOf(boxes: Boxes, one: string, other: string): number {
  const [a, b] = [boxes.get(one), boxes.get(other)];
  if (!a || !b) return 0;
  const [top, bottom] = [Math.min(a.y, b.y), Math.max(a.y + a.height, b.y + b.height)];
  let right = Math.max(a.x + a.width, b.x + b.width);
  const [from, to] = [Math.min(a.x, b.x), right];
  // Only boxes in the way: steps far to the side are ignored.
  for (const box of boxes.values()) {
    if (box.y < bottom && box.y + box.height > top && box.x < to && box.x + box.width > from)
      right = Math.max(right, box.x + box.width);
  }
  return right;
}

export function arrange(shape: Shape): Boxes {
  return layout(shape.nodes, shape.edges);
}

/** A free position for a new node: below `after`, or below everything. */
export function freePlace(boxes: Boxes, after: string | undefined): { x: number; y: number } {
  const all = [...boxes.values()];
  const from = after === undefined ? undefined : boxes.get(after);
  let { x, y } = from
    ? { x: from.x, y: from.y + from.height + 56 }
    : { x: 0, y: all.reduce((most, box) => Math.max(most, box.y + box.height + 56), 0) };
  const taken = () =>
    all.some((box) => Math.abs(box.x - x) < NODE.width + 20 && Math.abs(box.y - y) < NODE.height + 20);
  while (taken()) x += NODE.width + 36;
  return { x: Math.round(x), y: Math.round(y) };
}
