// The editor's buttons: undo, copy, tidy up, list or canvas, test run, save.

import type { ReactNode } from "react";

interface Props {
  title: string;
  note: string;
  canUndo: boolean;
  canRedo: boolean;
  selected: number;
  editable: boolean;
  isGraph: boolean;
  list: boolean;
  saving: boolean;
  testing: boolean;
  onUndo: () => void;
  onRedo: () => void;
  onCopy: () => void;
  onPaste: () => void;
  onRemove: () => void;
  onTidy: () => void;
  onList: () => void;
  onTest: () => void;
  onSave: () => void;
}

export function Toolbar(props: Props) {
  const { selected, editable } = props;
  return (
    <header className="editor-bar">
      <div className="editor-title">
        <h1>{props.title}</h1>
        <span className="dim small" role="status">
          {props.note}
        </span>
      </div>
      <div className="row wrap" role="toolbar" aria-label="Edit">
        <Tool label="Undo" keys="Ctrl+Z" disabled={!props.canUndo} onClick={props.onUndo}>
          ↶
        </Tool>
        <Tool label="Redo" keys="Ctrl+Y" disabled={!props.canRedo} onClick={props.onRedo}>
          ↷
        </Tool>
        <button type="button" disabled={selected === 0} onClick={props.onCopy} title="Copy the selected steps (Ctrl+C)">
          Copy
        </button>
        <button type="button" disabled={!editable} onClick={props.onPaste} title="Paste steps (Ctrl+V)">
          Paste
        </button>
        <button
          type="button"
          disabled={!editable || selected === 0}
          onClick={props.onRemove}
          title="Remove the selection (Delete)"
        >
          Remove
        </button>
        {props.isGraph && (
          <button
            type="button"
            disabled={!editable}
            onClick={props.onTidy}
            title="Lay out the nodes again and save their positions"
          >
            Tidy up
          </button>
        )}
        <button type="button" aria-pressed={props.list} onClick={props.onList}>
          {props.list ? "Show as a canvas" : "Show as a list"}
        </button>
        <button type="button" disabled={props.testing} onClick={props.onTest} title="Run the current text (Ctrl+Enter)">
          Test run
        </button>
        <button type="button" className="main" disabled={props.saving} onClick={props.onSave} title="Save (Ctrl+S)">
          {props.saving ? "Saving…" : "Save"}
        </button>
      </div>
    </header>
  );
}

function Tool({
  label,
  keys,
  disabled,
  onClick,
  children,
}: {
  label: string;
  keys: string;
  disabled: boolean;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      className="tool"
      aria-label={label}
      title={`${label} (${keys})`}
      disabled={disabled}
      onClick={onClick}
    >
      <span aria-hidden="true">{children}</span>
    </button>
  );
}
