// The outcome of saving, and the choices if someone else saved first.

import { Link } from "@tanstack/react-router";
import { Trouble } from "../components/Trouble";
import type { Base, Outcome } from "./useSave";

interface Props {
  outcome: Outcome;
  onOverwrite: (base: Base | undefined) => void;
  onTakeTheirs: (theirs: Base) => void;
  onClose: () => void;
}

export function SaveNotice({ outcome, onOverwrite, onTakeTheirs, onClose }: Props) {
  if (outcome.kind === "failed") {
    return (
      <div className="notice">
        <Trouble error={outcome.error} />
      </div>
    );
  }
  if (outcome.kind === "saved") {
    return (
      <div className="note notice row" role="status">
        <span className="grow">
          Saved as version {outcome.version} of{" "}
          <Link to="/workflows/$name" params={{ name: outcome.name }}>
            {outcome.name}
          </Link>
          .
        </span>
        <button type="button" className="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </div>
    );
  }
  if (outcome.kind === "exists") {
    return (
      <div className="note waiting notice stack" role="alert">
        <p>
          A workflow called <strong>{outcome.name}</strong> already exists, and this text was not based on it. Choose
          another name, or save this as its next version.
        </p>
        <div className="row wrap">
          <Link className="button" to="/workflows/$name" params={{ name: outcome.name }} target="_blank">
            Open it
          </Link>
          <button
            type="button"
            className="danger"
            onClick={() => onOverwrite({ name: outcome.name, version: 0, tag: "*", source: "" })}
          >
            Save as the next version
          </button>
          <button type="button" onClick={onClose}>
            Keep editing
          </button>
        </div>
      </div>
    );
  }
  const { theirs } = outcome;
  return (
    <div className="note waiting notice stack" role="alert">
      <p>
        Not saved: someone else saved version {theirs.version} of <strong>{theirs.name}</strong> while you were editing.
        Nothing is lost.
      </p>
      <div className="row wrap">
        <button type="button" onClick={() => onTakeTheirs(theirs)}>
          Show theirs here (undo brings yours back)
        </button>
        <button type="button" className="danger" onClick={() => onOverwrite(theirs)}>
          Save mine after theirs
        </button>
        <button type="button" onClick={onClose}>
          Keep editing
        </button>
      </div>
    </div>
  );
}
