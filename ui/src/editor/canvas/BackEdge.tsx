// An edge that leads back: it goes around the right side of the steps instead of through them.

import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import { NODE } from "../../lib/layout";

const ASIDE = NODE.width / 2 + 34;
const DOWN = 20;
const GAP = 26;
const ROUND = 10;

/** `right` is the right edge of the steps beside the path. */
export type BackEdgeOf = Edge<{ right: number }, "back">;

export function BackEdge({
  sourceX,
  sourceY,
  targetX,
  targetY,
  label,
  markerEnd,
  labelStyle,
  style,
  data,
}: EdgeProps<BackEdgeOf>) {
  const right = Math.max(sourceX + ASIDE, targetX + ASIDE, (data?.right ?? 0) + GAP);
  const low = sourceY + DOWN;
  const high = targetY - DOWN;
  const path = [
    `M ${sourceX} ${sourceY} V ${low - ROUND} Q ${sourceX} ${low} ${sourceX + ROUND} ${low}`,
    `H ${right - ROUND} Q ${right} ${low} ${right} ${low - ROUND}`,
    `V ${high + ROUND} Q ${right} ${high} ${right - ROUND} ${high}`,
    `H ${targetX + ROUND} Q ${targetX} ${high} ${targetX} ${high + ROUND} V ${targetY}`,
  ].join(" ");
  return (
    <BaseEdge
      path={path}
      label={label}
      labelX={right}
      labelY={(low + high) / 2}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      {...(labelStyle ? { labelStyle } : {})}
      {...(style ? { style } : {})}
    />
  );
}
