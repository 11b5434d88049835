// The edges into and out of a step, and a way to connect it without a mouse.

import { useId, useState } from "react";
import type { Change, Edge, Model, Step } from "../model/types";

interface Props {
  model: Model;
  step: Step;
  disabled: boolean;
  onChange: (change: Change) => void;
  onSelect: (step: string) => void;
}

export function Connections({ model, step, disabled, onChange, onSelect }: Props) {
  const id = useId();
  const [outlet, setOutlet] = useState("");
  const into = model.edges.filter((edge) => edge.to === step.id);
  const out = model.edges.filter((edge) => edge.from === step.id);
  // In a large graph the options are rendered only when the field is used.
  const [open, setOpen] = useState(false);
  const others = open ? model.steps.filter((one) => one.parent === step.parent && one.kind !== "start") : [];
  const chosen = step.outlets.some((one) => one.id === outlet) ? outlet : (step.outlets[0]?.id ?? "");
  const name = (of: string) => {
    const one = model.steps.find((other) => other.id === of);
    return one?.label ?? one?.name ?? of;
  };
  const row = (edge: Edge, other: string) => (
    <li key={edge.id} className="row">
      <button type="button" className="link" onClick={() => onSelect(other)}>
        {name(other)}
      </button>
      {edge.label && <span className="dim small">{edge.label}</span>}
      {!edge.derived && (
        <button
          type="button"
          className="quiet cut"
          disabled={disabled}
          aria-label={`Disconnect ${name(edge.from)} from ${name(edge.to)}`}
          onClick={() => onChange({ type: "disconnect", edge: edge.id })}
        >
          ✕
        </button>
      )}
    </li>
  );
  return (
    <section className="stack" aria-label="Connections">
      {into.length > 0 && (
        <div>
          <h3>After</h3>
          <ul className="plain-list">{into.map((edge) => row(edge, edge.from))}</ul>
        </div>
      )}
      {out.length > 0 && (
        <div>
          <h3>Then</h3>
          <ul className="plain-list">{out.map((edge) => row(edge, edge.to))}</ul>
        </div>
      )}
      {step.outlets.length > 0 && (
        <div className="field">
          <label htmlFor={id}>Connect to</label>
          <div className="row">
            {step.outlets.length > 1 && (
              <select
                aria-label="From which outlet"
                value={chosen}
                disabled={disabled}
                onChange={(event) => setOutlet(event.target.value)}
              >
                {step.outlets.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.label}
                  </option>
                ))}
              </select>
            )}
            <select
              id={id}
              value=""
              disabled={disabled}
              onFocus={() => setOpen(true)}
              onPointerEnter={() => setOpen(true)}
              onChange={(event) => onChange({ type: "connect", from: step.id, to: event.target.value, outlet: chosen })}
            >
              <option value="">choose a step…</option>
              {others.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.label ?? one.name}
                </option>
              ))}
            </select>
          </div>
        </div>
      )}
    </section>
  );
}
