// All faults of the definition, each with a link to its position.

import type { Fault, Model } from "./model/types";
import { sentence, stepAt } from "./text/faults";

interface Props {
  faults: readonly Fault[];
  trouble: string | null;
  checked: boolean;
  model: Model;
  onShow: (offset: number) => void;
}

/** Faults shown at once. */
const SHOWN = 50;

export function Problems({ faults, trouble, checked, model, onShow }: Props) {
  if (trouble !== null) return <p className="problems bad">Not checked: {trouble}</p>;
  if (faults.length === 0) {
    return (
      <p className="problems dim" role="status">
        {checked ? "✓ Checked: no problems." : "Checking…"}
      </p>
    );
  }
  return (
    <div className="problems" role="status">
      <strong className="bad">{faults.length === 1 ? "One fault" : `${faults.length} faults`}</strong>
      <ul className="plain-list">
        {faults.slice(0, SHOWN).map((fault, n) => {
          const step = stepAt(model, fault.start);
          return (
            <li key={n}>
              <button type="button" className="link small" onClick={() => onShow(fault.start)}>
                {step ?? fault.path ?? "the text"}
              </button>{" "}
              <span className="small">{sentence(fault)}</span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
