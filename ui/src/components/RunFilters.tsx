// The filters of the list of runs. They are part of the address, so that a list can be shared.
import { useEffect, useId, useState } from "react";
import type { RunFilter } from "../api/queries";
import { RANGES, within } from "../lib/runFilters";
import { RUN_STATUSES, word } from "../lib/status";

interface Props {
  filter: RunFilter;
  onChange: (filter: RunFilter) => void;
  workflows: string[];
}

/** Shown on phones too. */
const ALWAYS = ["status", "workflow"];

const GROUPS: [string, string][] = [
  ["running,queued,paused,scheduled", "not finished"],
  ["failed,timeout", "failed or timed out"],
];

export function RunFilters({ filter, onChange, workflows }: Props) {
  const id = useId();
  // On a phone a filter that is set is never hidden.
  const [open, setOpen] = useState(() => Object.keys(filter).some((name) => !ALWAYS.includes(name)));
  const set = (name: keyof RunFilter, value: string | boolean) => {
    const next: RunFilter = { ...filter, [name]: value };
    if (value === "" || value === false) delete next[name];
    onChange(next);
  };
  return (
    <search className="filters run-filters" data-open={open}>
      <button type="button" className="filters-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Fewer filters" : "More filters"}
      </button>
      <div className="field">
        <label htmlFor={`${id}s`}>Status</label>
        <select id={`${id}s`} value={filter.status ?? ""} onChange={(event) => set("status", event.target.value)}>
          <option value="">any</option>
          {GROUPS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
          {RUN_STATUSES.map((status) => (
            <option key={status} value={status}>
              {word(status)}
            </option>
          ))}
        </select>
      </div>
      <div className="field">
        <label htmlFor={`${id}w`}>Workflow</label>
        <select id={`${id}w`} value={filter.workflow ?? ""} onChange={(event) => set("workflow", event.target.value)}>
          <option value="">any</option>
          {filter.workflow && !workflows.includes(filter.workflow) && (
            <option value={filter.workflow}>{filter.workflow}</option>
          )}
          {workflows.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <Typed
        label="Search"
        placeholder="id, person or label"
        value={filter.q ?? ""}
        onChange={(text) => set("q", text)}
      />
      <Typed
        label="Started by"
        placeholder="user"
        value={filter.created_by ?? ""}
        onChange={(text) => set("created_by", text)}
      />
      <Typed
        label="Label"
        placeholder="name=value"
        value={filter.label ?? ""}
        onChange={(text) => (text === "" || text.includes("=")) && set("label", text)}
      />
      <div className="field">
        <label htmlFor={`${id}f`}>Created since</label>
        <input
          id={`${id}f`}
          type="datetime-local"
          value={filter.since ? local(filter.since) : ""}
          onChange={(event) => set("since", event.target.value ? new Date(event.target.value).toISOString() : "")}
        />
      </div>
      <div className="field">
        <label htmlFor={`${id}u`}>Created before</label>
        <input
          id={`${id}u`}
          type="datetime-local"
          value={filter.until ? local(filter.until) : ""}
          onChange={(event) => set("until", event.target.value ? new Date(event.target.value).toISOString() : "")}
        />
      </div>
      <fieldset className="ranges" aria-label="Created in the last">
        {RANGES.map(([name, ms]) => (
          <button key={name} type="button" onClick={() => onChange(within(filter, ms, Date.now()))}>
            {name}
          </button>
        ))}
      </fieldset>
      <label className="check">
        <input
          type="checkbox"
          checked={filter.tests ?? false}
          onChange={(event) => set("tests", event.target.checked)}
        />
        Test runs
      </label>
      {Object.keys(filter).length > 0 && (
        <button type="button" onClick={() => onChange({})}>
          Clear
        </button>
      )}
    </search>
  );
}

/** Queries only when typing pauses. */
function Typed({
  label,
  value,
  placeholder,
  onChange,
}: {
  label: string;
  value: string;
  placeholder: string;
  onChange: (text: string) => void;
}) {
  const id = useId();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), 350);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        value={text}
        placeholder={placeholder}
        onChange={(event) => setText(event.target.value)}
      />
    </div>
  );
}

function local(at: string): string {
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
