// An edge that leads back: it goes around the steps at the right instead of through them.

import { BaseEdge, type EdgeProps } from "@xyflow/react";
import { NODE } from "../../lib/layout";

const ASIDE = NODE.width / 2 + 34;
const DOWN = 20;
const ROUND = 10;

export function BackEdge({ sourceX, sourceY, targetX, targetY, label, markerEnd, labelStyle, style }: EdgeProps) {
  const right = Math.max(sourceX, targetX) + ASIDE;
  const low = sourceY + DOWN;
  const high = targetY - DOWN;
  const path = [
    `M ${sourceX} ${sourceY} V ${low - ROUND} Q ${sourceX} ${low} ${sourceX + ROUND} ${low}`,
    `H ${right - ROUND} Q ${right} ${low} ${right} ${low - ROUND}`,
    `V ${high + ROUND} Q ${right} ${high} ${right - ROUND} ${high}`,
    `H ${targetX + ROUND} Q ${targetX} ${high} ${targetX} ${high + ROUND} V ${targetY}`,
  ].join(" ");
  return <BaseEdge path={path} label={label} labelX={right} labelY={(low + high) / 2} {...(markerEnd === undefined ? {} : { markerEnd })} {...(labelStyle ? { labelStyle } : {})} {...(style ? { style } : {})} />;
}
