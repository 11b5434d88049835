// A JSON value to read and copy: as a tree or as text. A long text is cut until it is expanded, and can be saved.
import { useMemo, useState } from "react";
import { JsonTree } from "./JsonTree";

const SHOWN = 20_000;

interface Props {
  value: unknown;
  label: string;
  /** What the paths of its parts begin with, such as `tasks.charge.body`. */
  path?: string;
}

export function Value({ value, label, path = "$" }: Props) {
  const [all, setAll] = useState(false);
  const [copied, setCopied] = useState(false);
  const isTree = typeof value === "object" && value !== null;
  const [asText, setAsText] = useState(!isTree);
  const text = useMemo(
    () => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing")),
    [value],
  );
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  const save = () => {
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `${label.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <div className="stack value-box">
      <div className="row between">
        <h3>{label}</h3>
        <span className="row small">
          {isTree && (
            <button type="button" className="link" aria-pressed={asText} onClick={() => setAsText(!asText)}>
              {asText ? "Tree" : "Text"}
              <span className="hidden-label">: {label}</span>
            </button>
          )}
          {text.length > SHOWN && (
            <button type="button" className="link" onClick={save}>
              Save<span className="hidden-label">: {label}</span>
            </button>
          )}
          <button type="button" className="link" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
            {copied ? "Copied" : "Copy"}
          </button>
        </span>
      </div>
      {isTree && !asText ? (
        <div className="value" tabIndex={0} role="group" aria-label={label}>
          <JsonTree value={value} root={path} />
        </div>
      ) : (
        <pre className="value" tabIndex={0} role="group" aria-label={label}>
          {all ? text : text.slice(0, SHOWN)}
        </pre>
      )}
      {asText && !all && text.length > SHOWN && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {Math.round(text.length / 1024)} KB
        </button>
      )}
    </div>
  );
}
