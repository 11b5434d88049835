// All faults and warnings of the definition, each with a link to its position.

import type { Fault, Model } from "./model/types";
import { sentence, stepAt } from "./text/faults";

interface Props {
  faults: readonly Fault[];
  warnings: readonly Fault[];
  trouble: string | null;
  checked: boolean;
  model: Model;
  onShow: (offset: number) => void;
}

/** Faults shown at once. */
const SHOWN = 50;

export function Problems({ faults, warnings, trouble, checked, model, onShow }: Props) {
  if (trouble !== null) return <p className="problems bad">Not checked: {trouble}</p>;
  if (faults.length === 0 && warnings.length === 0) {
    return (
      <p className="problems dim" role="status">
        {checked ? "✓ Checked: no problems." : "Checking…"}
      </p>
    );
  }
  return (
    <div className="problems" role="status">
      {faults.length > 0 && <strong className="bad">{counted(faults.length, "fault")}</strong>}
      {faults.length > 0 && warnings.length > 0 && " "}
      {warnings.length > 0 && <strong>{counted(warnings.length, "warning")}</strong>}
      <ul className="plain-list">
        {[...faults, ...warnings].slice(0, SHOWN).map((fault, n) => {
          const step = stepAt(model, fault.start);
          return (
            <li key={n}>
              <button type="button" className="link small" onClick={() => onShow(fault.start)}>
                {step ?? fault.path ?? "the text"}
              </button>{" "}
              <span className="small">
                {fault.warning ? "Warning: " : ""}
                {sentence(fault)}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function counted(count: number, what: string): string {
  return count === 1 ? `One ${what}` : `${count} ${what}s`;
}
