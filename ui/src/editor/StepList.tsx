// The steps as a list: the same as the canvas, as accessible text.

import { Status } from "../components/Status";
import { KIND_NAMES, summary } from "./canvas/kindLook";
import type { Fault, Model } from "./model/types";
import type { StepState } from "./run/states";
import type { Selection } from "./selection";
import { sentence } from "./text/faults";

interface Props {
  model: Model;
  faults: ReadonlyMap<string, readonly Fault[]>;
  states: ReadonlyMap<string, StepState>;
  selection: Selection;
  onSelect: (step: string) => void;
}

export function StepList({ model, faults, states, selection, onSelect }: Props) {
  const name = (id: string) => {
    const step = model.steps.find((one) => one.id === id);
    return step?.label ?? step?.name ?? id;
  };
  const depth = (id: string) => id.split("/").length - 1;
  return (
    <div className="table-box step-list">
      <table>
        <thead>
          <tr>
            <th>Step</th>
            <th>What it does</th>
            <th>Then</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {model.steps.map((step) => {
            const state = states.get(step.id);
            const out = model.edges.filter((edge) => edge.from === step.id);
            return (
              <tr key={step.id} aria-current={selection.steps.has(step.id)}>
                <td className={`depth-${Math.min(depth(step.id), 3)}`}>
                  <button type="button" className="link" onClick={() => onSelect(step.id)}>
                    {step.label ?? step.name}
                  </button>
                </td>
                <td>
                  {KIND_NAMES[step.kind]} <span className="dim">{summary(step)}</span>
                </td>
                <td className="dim">
                  {out.map((edge) => (edge.label ? `${name(edge.to)} (${edge.label})` : name(edge.to))).join(", ") ||
                    "the end"}
                </td>
                <td>
                  {state && <Status status={state.status} note={state.note} />}
                  {(faults.get(step.id) ?? []).map((fault, n) => (
                    <p key={n} className="bad small">
                      {sentence(fault)}
                    </p>
                  ))}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
