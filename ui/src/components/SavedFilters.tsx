// Filters with a name: one click each, kept in this browser.
import { useState } from "react";
import type { RunFilter } from "../api/queries";
import { keepFilters, type Saved, savedFilters, withSaved } from "../lib/runFilters";

interface Props {
  filter: RunFilter;
  onChange: (filter: RunFilter) => void;
}

export function SavedFilters({ filter, onChange }: Props) {
  const [list, setList] = useState(savedFilters);
  const [name, setName] = useState<string>();
  const keep = (next: Saved[]) => {
    keepFilters(next);
    setList(next);
  };
  const isEmpty = Object.keys(filter).length === 0;
  const current = JSON.stringify(filter);
  const save = () => {
    const said = name?.trim();
    if (said) keep(withSaved(list, { name: said, filter }));
    setName(undefined);
  };
  if (isEmpty && list.length === 0) return null;
  return (
    <div className="row wrap saved-filters">
      {list.map((one) => (
        <span key={one.name} className="saved" data-current={JSON.stringify(one.filter) === current}>
          <button type="button" className="link" onClick={() => onChange(one.filter)}>
            {one.name}
          </button>
          <button
            type="button"
            className="quiet"
            aria-label={`Forget the filter ${one.name}`}
            onClick={() => keep(list.filter((other) => other.name !== one.name))}
          >
            ✕
          </button>
        </span>
      ))}
      {!isEmpty &&
        (name === undefined ? (
          <button type="button" className="link small" onClick={() => setName("")}>
            Save this filter…
          </button>
        ) : (
          <form
            className="row"
            onSubmit={(event) => {
              event.preventDefault();
              save();
            }}
          >
            <input
              type="text"
              aria-label="Name of the filter"
              value={name}
              maxLength={40}
              onChange={(event) => setName(event.target.value)}
            />
            <button type="submit">Save</button>
          </form>
        ))}
    </div>
  );
}
