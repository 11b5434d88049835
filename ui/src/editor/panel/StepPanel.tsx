// The side panel of one step: its name, its faults, its state in the test run, its fields, its connections.

import { useId } from "react";
import { KIND_HELP, KIND_NAMES, KindIcon } from "../canvas/kindLook";
import type { Change, Fault, Model, Step } from "../model/types";
import type { StepState } from "../run/states";
import type { TestRun } from "../run/useTestRun";
import { fieldOf, sentence } from "../text/faults";
import type { Known } from "../text/offers";
import { Connections } from "./Connections";
import { FieldRow, PlainInput } from "./FieldRow";
import { type FieldGroup, type FieldSpec, groupsFor } from "./fields";
import { RunPart } from "./RunPart";
import { valueAt } from "./values";

interface Props {
  model: Model;
  step: Step;
  faults: readonly Fault[];
  state: StepState | undefined;
  test: TestRun;
  disabled: boolean;
  known: () => Known;
  onChange: (change: Change) => boolean;
  onSelect: (step: string | undefined) => void;
  onShowText: (offset: number) => void;
}

export function StepPanel({
  model,
  step,
  faults,
  state,
  test,
  disabled,
  known,
  onChange,
  onSelect,
  onShowText,
}: Props) {
  const id = useId();
  const rename = (name: string) => {
    if (!onChange({ type: "rename", step: step.id, name: name.trim() })) return;
    const first = model.dialect === "flow" && step.id === "start";
    onSelect(first ? step.id : step.parent === undefined ? name.trim() : `${step.parent}/${name.trim()}`);
  };
  // A fault is shown at its field if the panel has it, else at the top.
  const groups = model.dialect ? groupsFor(step, model.dialect) : [];
  const specs = groups.flatMap((one) => one.fields);
  const about = (spec: FieldSpec) =>
    faults.filter((fault) => spec.path.every((key, n) => fieldOf(step, fault)[n] === key));
  const loose = faults.filter((fault) => !specs.some((spec) => about(spec).includes(fault)));
  const group = ({ title, folded, fields }: FieldGroup) => {
    const rows = fields.map((spec) => (
      <FieldRow
        key={spec.path.join(".")}
        spec={spec}
        step={step}
        language={model.language}
        disabled={disabled}
        said={about(spec).map(sentence)}
        known={known}
        onSet={(of, value) => {
          if (JSON.stringify(valueAt(step.fields, of.path)) !== JSON.stringify(value))
            onChange({ type: "setField", step: step.id, field: of.path, value });
        }}
      />
    ));
    const set = fields.some((spec) => valueAt(step.fields, spec.path) !== undefined || about(spec).length > 0);
    if (!folded) {
      return (
        <section key={title} className="stack" aria-label={title}>
          {rows}
        </section>
      );
    }
    return (
      <details key={title} open={set}>
        <summary>{title}</summary>
        <div className="stack">{rows}</div>
      </details>
    );
  };
  return (
    <div className="panel-inner" key={step.id}>
      <div className="panel-head">
        <KindIcon kind={step.kind} />
        <h2 className="grow">{KIND_NAMES[step.kind]}</h2>
        <button type="button" className="quiet" onClick={() => onSelect(undefined)} aria-label="Close the panel">
          ✕
        </button>
      </div>
      <p className="dim small">{KIND_HELP[step.kind]}</p>
      {loose.length > 0 && (
        <ul className="panel-faults" aria-label="Problems">
          {loose.map((fault, n) => (
            <li key={n}>
              {sentence(fault)}{" "}
              <button type="button" className="link small" onClick={() => onShowText(fault.start)}>
                show
              </button>
            </li>
          ))}
        </ul>
      )}
      {state && <RunPart state={state} test={test} />}
      <div className="field">
        <label htmlFor={id}>Name</label>
        <PlainInput id={id} text={step.name} disabled={disabled} onCommit={rename} />
      </div>
      {groups.map(group)}
      <Connections model={model} step={step} disabled={disabled} onChange={onChange} onSelect={onSelect} />
      <div className="row wrap">
        <button type="button" onClick={() => onShowText(step.range.start)}>
          Show in the text
        </button>
        <button
          type="button"
          className="danger"
          disabled={disabled}
          onClick={() => {
            if (onChange({ type: "removeStep", step: step.id })) onSelect(undefined);
          }}
        >
          Remove
        </button>
      </div>
    </div>
  );
}
