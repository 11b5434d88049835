// A JSON value as a tree: parts fold, every value can be copied, and so can the path that a template needs.
import { useState } from "react";
import { join, size } from "../lib/json";

/** Children that are shown at once, and depth that is open at first. */
const SHOWN = 100;
const OPEN_DEPTH = 4;
const OPEN_CHILDREN = 30;

interface Props {
  value: unknown;
  /** What paths begin with. */
  root: string;
}

export function JsonTree({ value, root }: Props) {
  if (!isParent(value)) return <Leaf value={value} name={undefined} path={root} />;
  return (
    <ul className="json">
      <Children value={value} path={root} depth={0} />
    </ul>
  );
}

function isParent(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function Children({ value, path, depth }: { value: object; path: string; depth: number }) {
  const [shown, setShown] = useState(SHOWN);
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? value.map((one, at) => [at, one])
    : Object.entries(value);
  if (entries.length === 0) return <li className="dim">{Array.isArray(value) ? "[]" : "{}"}</li>;
  return (
    <>
      {entries.slice(0, shown).map(([key, one]) => (
        <li key={key}>
          {isParent(one) ? (
            <Branch name={key} value={one} path={join(path, key)} depth={depth + 1} />
          ) : (
            <Leaf name={key} value={one} path={join(path, key)} />
          )}
        </li>
      ))}
      {entries.length > shown && (
        <li>
          <button type="button" className="link small" onClick={() => setShown(shown + 10 * SHOWN)}>
            Show more of {entries.length}
          </button>
        </li>
      )}
    </>
  );
}

function Branch({ name, value, path, depth }: { name: string | number; value: object; path: string; depth: number }) {
  const [open, setOpen] = useState(depth < OPEN_DEPTH && Object.keys(value).length <= OPEN_CHILDREN);
  return (
    <>
      <div className="json-row">
        <button type="button" className="json-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span> <span className="json-key">{name}</span>{" "}
          <span className="dim">{size(value)}</span>
        </button>
        <CopyPath path={path} />
      </div>
      {open && (
        <ul className="json">
          <Children value={value} path={path} depth={depth} />
        </ul>
      )}
    </>
  );
}

function Leaf({ name, value, path }: { name: string | number | undefined; value: unknown; path: string }) {
  return (
    <div className="json-row">
      <span className="json-leaf">
        {name !== undefined && <span className="json-key">{name}: </span>}
        <span className={`json-${value === null ? "null" : typeof value}`}>{JSON.stringify(value) ?? "nothing"}</span>
      </span>
      <CopyPath path={path} />
    </div>
  );
}

function CopyPath({ path }: { path: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(path);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" className="json-copy" onClick={() => void copy()} aria-label={`Copy the path ${path}`}>
      {copied ? "Copied" : "Path"}
    </button>
  );
}
