// One field of a step, with the control that suits its type.

import { useId, useMemo, useState } from "react";
import type { Json, Language, Step } from "../model/types";
import type { Known } from "../text/offers";
import type { FieldSpec } from "./fields";
import { SmallEditor } from "./SmallEditor";
import { flagFor, isOn, shown, typed, valueAt } from "./values";

interface Props {
  spec: FieldSpec;
  step: Step;
  language: Language;
  disabled: boolean;
  /** The fault of this field. */
  said: string[];
  known: () => Known;
  onSet: (spec: FieldSpec, value: Json | undefined) => void;
}

export function FieldRow({ spec, step, language, disabled, said, known, onSet }: Props) {
  const id = useId();
  const value = valueAt(step.fields, spec.path);
  const text = useMemo(() => shown(value, spec.type, language), [value, spec.type, language]);
  const [fault, setFault] = useState<string | null>(null);
  const commit = (text: string) => {
    const read = typed(text, spec.type);
    setFault("fault" in read ? read.fault : null);
    if ("value" in read) onSet(spec, read.value);
  };
  const help = (
    <span id={`${id}-help`} className="dim small">
      {spec.help}
      {[...(fault === null ? [] : [fault]), ...said].map((one) => (
        <span key={one} className="fault">
          {" "}
          {one}
        </span>
      ))}
    </span>
  );
  if (spec.type === "flag") {
    return (
      <div className="field">
        <span className="check">
          <input
            id={id}
            type="checkbox"
            disabled={disabled}
            checked={isOn(value, spec.usual)}
            onChange={(event) => onSet(spec, flagFor(event.target.checked, spec.usual))}
          />
          <label htmlFor={id}>{spec.label}</label>
        </span>
        {help}
      </div>
    );
  }
  if (spec.type === "choice") {
    const now = typeof value === "string" ? value : "";
    const choices = spec.choices ?? [];
    const match = choices.find((choice) => choice.toLowerCase() === now.toLowerCase());
    return (
      <div className="field">
        <label htmlFor={id}>{spec.label}</label>
        <select
          id={id}
          disabled={disabled}
          aria-describedby={`${id}-help`}
          value={match ?? now}
          onChange={(event) => onSet(spec, event.target.value || undefined)}
        >
          <option value="">as usual</option>
          {match === undefined && now !== "" && <option value={now}>{now}</option>}
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
        {help}
      </div>
    );
  }
  if (spec.type === "text" || spec.type === "number") {
    return (
      <div className="field">
        <label htmlFor={id}>{spec.label}</label>
        <PlainInput
          id={id}
          text={text}
          number={spec.type === "number"}
          disabled={disabled}
          placeholder={spec.placeholder ?? ""}
          onCommit={commit}
        />
        {help}
      </div>
    );
  }
  return (
    <div className="field">
      <span className="label">{spec.label}</span>
      <SmallEditor
        label={spec.label}
        value={text}
        type={spec.type}
        step={step.id}
        disabled={disabled}
        known={known}
        onCommit={commit}
      />
      {help}
    </div>
  );
}

interface PlainProps {
  id: string;
  text: string;
  number?: boolean;
  disabled: boolean;
  placeholder?: string;
  onCommit: (text: string) => void;
}

/** Committed with Enter or on blur; Escape restores the previous value. */
export function PlainInput({ id, text, number, disabled, placeholder, onCommit }: PlainProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const commit = () => {
    if (draft !== null && draft !== text) onCommit(draft);
    setDraft(null);
  };
  return (
    <input
      id={id}
      type="text"
      inputMode={number ? "decimal" : undefined}
      disabled={disabled}
      placeholder={placeholder}
      aria-describedby={`${id}-help`}
      value={draft ?? text}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        if (event.key === "Escape") setDraft(null);
      }}
    />
  );
}
