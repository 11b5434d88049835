// Positions on the canvas.

import { expect, test } from "vitest";
import { parse } from "../model/model";
import { arrange, backEdges, freePlace, shapeOf, writtenBoxes } from "./boxes";

const LOOP = parse(
  "name: f\nflow:\n  start: {tool: a, next: b}\n  b: {tool: b, branch: [{if: result == more, then: start}, {then: c}]}\n  c: {tool: c}\n",
);

test("the back edge is found", () => expect([...backEdges(LOOP)]).toEqual(["b:branch:0>start"]));

test("later steps are placed below", () => {
  const boxes = arrange(shapeOf(LOOP));
  expect(["start", "b", "c"].map((id) => boxes.get(id)?.y)).toEqual(
    [...["start", "b", "c"].map((id) => boxes.get(id)?.y ?? 0)].sort((a, b) => a - b),
  );
});

test("positions from the text are used only if all exist and differ", () => {
  const node = (id: string, x?: number) =>
    `  - {id: ${id}, type: tool${x === undefined ? "" : `, position: {x: ${x}, y: 0}`}}\n`;
  const graph = (...nodes: string[]) => parse(`name: g\nnodes:\n${nodes.join("")}edges: []\n`);
  expect(writtenBoxes(graph(node("a", 0), node("b", 300)))?.get("b")?.x).toBe(300);
  expect(writtenBoxes(graph(node("a", 0), node("b", 0)))).toBeNull();
  expect(writtenBoxes(graph(node("a", 0), node("b")))).toBeNull();
});

test("a new node gets a free position", () => {
  const boxes = new Map([
    ["a", { x: 0, y: 0, width: 210, height: 62 }],
    ["b", { x: 0, y: 118, width: 210, height: 62 }],
  ]);
  expect(freePlace(boxes, "a")).toEqual({ x: 246, y: 118 });
  expect(freePlace(boxes, undefined)).toEqual({ x: 0, y: 236 });
});
