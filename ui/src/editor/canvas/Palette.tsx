// The kinds of steps that can be added: with a click, after the selection, or by dragging.

import { palette } from "../model/kinds";
import type { DialectName, Kind } from "../model/types";
import { DRAG_TYPE } from "./Canvas";
import { KIND_HELP, KIND_NAMES, KIND_SHORT, KindIcon } from "./kindLook";

export function Palette({
  dialect,
  disabled,
  onAdd,
}: {
  dialect: DialectName;
  disabled: boolean;
  onAdd: (kind: Kind) => void;
}) {
  return (
    <div className="palette" role="toolbar" aria-label="Add a step">
      {palette(dialect).map((kind) => (
        <button
          key={kind}
          type="button"
          disabled={disabled}
          draggable={!disabled}
          title={`${KIND_NAMES[kind]}: ${KIND_HELP[kind]}`}
          onDragStart={(event) => {
            event.dataTransfer.setData(DRAG_TYPE, kind);
            event.dataTransfer.effectAllowed = "copy";
          }}
          onClick={() => onAdd(kind)}
        >
          <KindIcon kind={kind} />
          <span>{KIND_SHORT[kind]}</span>
        </button>
      ))}
    </div>
  );
}
