// The fields of a form generated from a JSON Schema. Stateless: see `useSchemaForm`.
import { type ReactNode, useId, useMemo, useState } from "react";
import { begin, type Field, type Filled, fieldsOf, finish, type Json, readJson } from "../lib/schema";

export interface FormState {
  /** The value, or undefined if it is invalid; then the faults are shown. */
  take: () => Json | undefined;
  view: ReactNode;
}

/** A form for the schema, or a JSON field if there is none. `given` is the initial value. */
export function useSchemaForm(schema: unknown, given: Json | undefined, label: string): FormState {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [filled, setFilled] = useState<Filled>(() => begin(fields ?? [], given));
  const [raw, setRaw] = useState(() => JSON.stringify(given ?? {}, null, 2));
  const [asJson, setAsJson] = useState(!fields);
  const [faults, setFaults] = useState<Record<string, string>>({});
  const id = useId();

  const take = (): Json | undefined => {
    if (asJson || !fields) {
      const read = readJson(raw);
      setFaults(read.fault ? { "": read.fault } : {});
      return read.fault ? undefined : (read.value ?? null);
    }
    const done = finish(fields, filled, given);
    setFaults(done.faults);
    return Object.keys(done.faults).length > 0 ? undefined : done.value;
  };

  const toggle = () => {
    if (!fields) return;
    if (asJson) {
      const read = readJson(raw);
      if (read.fault) return setFaults({ "": read.fault });
      setFilled(begin(fields, read.value));
    } else {
      setRaw(JSON.stringify(finish(fields, filled, given).value, null, 2));
    }
    setFaults({});
    setAsJson(!asJson);
  };

  const view = (
    <div className="stack">
      {asJson || !fields ? (
        <div className="field">
          <label htmlFor={id}>{label}, as JSON</label>
          <textarea
            id={id}
            className="code"
            spellCheck={false}
            value={raw}
            onChange={(event) => setRaw(event.target.value)}
          />
          {faults[""] && <span className="fault">{faults[""]}</span>}
        </div>
      ) : (
        <Fields fields={fields} filled={filled} onChange={setFilled} faults={faults} path="" />
      )}
      {fields && fields.length > 0 && (
        <div>
          <button type="button" className="link small" onClick={toggle}>
            {asJson ? "Fill in a form instead" : "Write JSON instead"}
          </button>
        </div>
      )}
      {fields?.length === 0 && !asJson && <p className="dim">There is nothing to fill in.</p>}
    </div>
  );
  return { take, view };
}

interface FieldsProps {
  fields: Field[];
  filled: Filled;
  onChange: (filled: Filled) => void;
  faults: Record<string, string>;
  path: string;
}

function Fields({ fields, filled, onChange, faults, path }: FieldsProps) {
  return (
    <>
      {fields.map((field) => {
        const at = path ? `${path}.${field.name}` : field.name;
        const set = (value: string | boolean | Filled) => onChange({ ...filled, [field.name]: value });
        if (field.kind === "group") {
          const inner = filled[field.name];
          return (
            <fieldset key={field.name}>
              <legend>{field.label}</legend>
              {field.help && <p className="dim small">{field.help}</p>}
              <Fields
                fields={field.fields ?? []}
                filled={typeof inner === "object" ? inner : {}}
                onChange={set}
                faults={faults}
                path={at}
              />
            </fieldset>
          );
        }
        return <One key={field.name} field={field} value={filled[field.name]} set={set} fault={faults[at]} />;
      })}
    </>
  );
}

interface OneProps {
  field: Field;
  value: string | boolean | Filled | undefined;
  set: (value: string | boolean) => void;
  fault: string | undefined;
}

function One({ field, value, set, fault }: OneProps) {
  const id = useId();
  const text = typeof value === "string" ? value : "";
  const common = {
    id,
    "aria-describedby": `${id}-help`,
    "aria-invalid": fault !== undefined,
    required: field.required,
  };
  const hints = (
    <span id={`${id}-help`}>
      {field.help && <span className="dim small">{field.help}</span>}
      {fault && <span className="fault"> {fault}</span>}
    </span>
  );
  if (field.kind === "yes-no") {
    return (
      <div className="field">
        <span className="check">
          <input
            {...common}
            required={false}
            type="checkbox"
            checked={value === true}
            onChange={(event) => set(event.target.checked)}
          />
          <label htmlFor={id}>{field.label}</label>
        </span>
        {hints}
      </div>
    );
  }
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.label}
        {field.required ? "" : " (optional)"}
      </label>
      {field.kind === "choice" ? (
        <select {...common} value={text} onChange={(event) => set(event.target.value)}>
          {!field.required && <option value="">–</option>}
          {(field.choices ?? []).map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {typeof choice === "string" ? choice : JSON.stringify(choice)}
            </option>
          ))}
        </select>
      ) : field.kind === "long" || field.kind === "json" ? (
        <textarea
          {...common}
          className={field.kind === "json" ? "code" : ""}
          placeholder={field.kind === "json" ? "JSON" : ""}
          value={text}
          onChange={(event) => set(event.target.value)}
        />
      ) : (
        <input
          {...common}
          type={field.kind === "text" ? (field.input ?? "text") : "text"}
          inputMode={field.kind === "number" ? "decimal" : field.kind === "whole" ? "numeric" : undefined}
          value={text}
          onChange={(event) => set(event.target.value)}
        />
      )}
      {hints}
    </div>
  );
}
