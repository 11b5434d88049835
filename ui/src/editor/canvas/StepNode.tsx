// One step on the canvas: its kind, what it does, its faults, its state in the test run, and its connection points.

import { Handle, type Node, type NodeHandle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { type Size, wayIn, wayOut } from "../../lib/handles";
import { sign, tone, word } from "../../lib/status";
import type { Fault, Outlet, Step } from "../model/types";
import type { StepState } from "../run/states";
import { sentence } from "../text/faults";
import { KIND_NAMES, KindIcon, summary } from "./kindLook";

export interface StepData extends Record<string, unknown> {
  step: Step;
  faults: readonly Fault[];
  state: StepState | undefined;
  /** Holds the steps of its body. */
  scope: boolean;
  connectable: boolean;
}

export type StepNode = Node<StepData, "step">;

export const StepBox = memo(function StepBox({ data, selected }: NodeProps<StepNode>) {
  const { step, faults, state, scope, connectable } = data;
  const names = ["box", "step-box"];
  if (scope) names.push("box-scope");
  if (state) names.push(`box-${tone(state.status)}`);
  if (faults.length > 0) names.push("step-faulty");
  if (step.disabled) names.push("step-off");
  if (selected) names.push("box-selected");
  return (
    <div className={names.join(" ")}>
      {step.kind !== "start" && <Handle type="target" position={Position.Top} isConnectable={connectable} />}
      <div className="box-inner">
        <span className="box-top">
          {state ? (
            <span className={`box-sign tone-${tone(state.status)}`} title={word(state.status)}>
              {sign(state.status)}
            </span>
          ) : (
            <KindIcon kind={step.kind} />
          )}
          <span className="box-name">{step.label ?? step.name}</span>
          {state && state.each.length > 1 && <span className="box-count">×{state.each.length}</span>}
          {faults.length > 0 && (
            <span className="step-fault" title={faults.map(sentence).join("\n")}>
              ! {faults.length > 1 ? faults.length : ""}
            </span>
          )}
        </span>
        <span className="box-detail">{state?.note || detail(step)}</span>
      </div>
      {step.outlets.map((outlet) => (
        <Handle
          key={outlet.id}
          id={outlet.id}
          type="source"
          position={Position.Bottom}
          isConnectable={connectable}
          className={outlet.bad ? "outlet-bad" : outlet.id === "branch:+" ? "outlet-add" : ""}
          style={{ left: `${placeOf(step.outlets, outlet)}%` }}
          title={outlet.label}
        />
      ))}
    </div>
  );
});

/** In percent of the width: outlets are spread evenly, error outlets are at the right. */
function placeOf(outlets: readonly Outlet[], outlet: Outlet): number {
  const [good, bad] = [outlets.filter((one) => !one.bad), outlets.filter((one) => one.bad)];
  if (outlet.bad) return 94 - 9 * (bad.length - 1 - bad.indexOf(outlet));
  const room = bad.length > 0 && good.length > 1 ? 82 : 100;
  return ((good.indexOf(outlet) + 1) * room) / (good.length + 1);
}

/** As wide as the style sheet makes them. */
const HANDLE = 11;

export function handlesOf(step: Step, box: Size): NodeHandle[] {
  const out = step.outlets.map((outlet) => wayOut(box, HANDLE, placeOf(step.outlets, outlet), outlet.id));
  return step.kind === "start" ? out : [wayIn(box, HANDLE), ...out];
}

function detail(step: Step): string {
  const does = summary(step);
  return does ? `${KIND_NAMES[step.kind]} · ${does}` : KIND_NAMES[step.kind];
}

/** For screen readers: everything the box shows. */
export function spoken({ step, faults, state }: Pick<StepData, "step" | "faults" | "state">): string {
  const parts = [step.label ?? step.name, KIND_NAMES[step.kind], summary(step)];
  if (state) parts.push(state.note || word(state.status));
  if (faults.length > 0)
    parts.push(`${faults.length === 1 ? "one fault" : `${faults.length} faults`}: ${faults.map(sentence).join("; ")}`);
  return parts.filter(Boolean).join(", ");
}
