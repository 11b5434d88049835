// Something secret that is shown once: copy it now.
import { useState } from "react";

export function Once({ label, secret, done }: { label: string; secret: string; done: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(secret);
    setCopied(true);
  };
  return (
    <div className="stack">
      <p>{label} is shown here and never again. Keep it somewhere safe.</p>
      <pre className="value" tabIndex={0}>
        {secret}
      </pre>
      <div className="row">
        <button type="button" className="main" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
        <button type="button" onClick={done}>
          I have it
        </button>
      </div>
    </div>
  );
}
