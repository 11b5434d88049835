// The side panel of one connection.

import type { Change, Edge, Model } from "../model/types";
import { NOTHING, only, type Selection } from "../selection";

interface Props {
  model: Model;
  edge: Edge;
  disabled: boolean;
  onChange: (change: Change) => boolean;
  onSelect: (selection: Selection) => void;
  onShowText: (offset: number) => void;
}

export function EdgePanel({ model, edge, disabled, onChange, onSelect, onShowText }: Props) {
  const name = (id: string) => {
    const step = model.steps.find((one) => one.id === id);
    return step?.label ?? step?.name ?? id;
  };
  return (
    <div className="panel-inner">
      <div className="panel-head">
        <h2 className="grow">Connection</h2>
        <button type="button" className="quiet" onClick={() => onSelect(NOTHING)} aria-label="Close the panel">
          ✕
        </button>
      </div>
      <p>
        From{" "}
        <button type="button" className="link" onClick={() => onSelect(only(edge.from))}>
          {name(edge.from)}
        </button>{" "}
        to{" "}
        <button type="button" className="link" onClick={() => onSelect(only(edge.to))}>
          {name(edge.to)}
        </button>
      </p>
      {edge.label && <p className="dim">{edge.label}</p>}
      {edge.derived && <p className="dim">It comes from the join of a fork, and is removed with it.</p>}
      <div className="row wrap">
        <button type="button" onClick={() => onShowText(edge.range.start)}>
          Show in the text
        </button>
        {!edge.derived && (
          <button
            type="button"
            className="danger"
            disabled={disabled}
            onClick={() => {
              if (onChange({ type: "disconnect", edge: edge.id })) onSelect(NOTHING);
            }}
          >
            Remove
          </button>
        )}
      </div>
    </div>
  );
}
