// A JSON value to read and copy. A long value is cut until it is expanded.
import { useMemo, useState } from "react";

const SHOWN = 20_000;

export function Value({ value, label }: { value: unknown; label: string }) {
  const [all, setAll] = useState(false);
  const [copied, setCopied] = useState(false);
  const text = useMemo(
    () => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing")),
    [value],
  );
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <div className="stack">
      <div className="row between">
        <h3>{label}</h3>
        <button type="button" className="link small" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <pre className="value" tabIndex={0} role="group" aria-label={label}>
        {all ? text : text.slice(0, SHOWN)}
      </pre>
      {!all && text.length > SHOWN && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {Math.round(text.length / 1024)} KB
        </button>
      )}
    </div>
  );
}
