// Calculates where the edges of a box start and end, so that boxes out of view need not be drawn to be measured.
import { type NodeHandle, Position } from "@xyflow/react";

export interface Size {
  width: number;
  height: number;
}

/** In the middle of the upper edge. */
export function wayIn(box: Size, size: number): NodeHandle {
  return {
    type: "target",
    position: Position.Top,
    x: box.width / 2 - size / 2,
    y: -size / 2,
    width: size,
    height: size,
  };
}

/** On the lower edge, `at` percent from the left. */
export function wayOut(box: Size, size: number, at = 50, id: string | null = null): NodeHandle {
  return {
    type: "source",
    position: Position.Bottom,
    id,
    x: (box.width * at) / 100 - size / 2,
    y: box.height - size / 2,
    width: size,
    height: size,
  };
}
