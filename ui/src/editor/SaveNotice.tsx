// What became of saving, in words, and what can be done when somebody else was faster.

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
          There is a workflow called <strong>{outcome.name}</strong> already, and this text was not made from it. Give
          yours another name, or make it the next version of that one.
        </p>
        <div className="row wrap">
          <Link className="button" to="/workflows/$name" params={{ name: outcome.name }} target="_blank">
            Look at it
          </Link>
          <button
            type="button"
            className="danger"
            onClick={() => onOverwrite({ name: outcome.name, version: 0, tag: "*", source: "" })}
          >
            Make it the next version
          </button>
          <button type="button" onClick={onClose}>
            Go on editing
          </button>
        </div>
      </div>
    );
  }
  const { theirs } = outcome;
  return (
    <div className="note waiting notice stack" role="alert">
      <p>
        Not saved: somebody else saved version {theirs.version} of <strong>{theirs.name}</strong> while you were
        editing. Nothing of either is lost.
      </p>
      <div className="row wrap">
        <button type="button" onClick={() => onTakeTheirs(theirs)}>
          Show theirs here (undo brings yours back)
        </button>
        <button type="button" className="danger" onClick={() => onOverwrite(theirs)}>
          Save mine after theirs
        </button>
        <button type="button" onClick={onClose}>
          Go on editing
        </button>
      </div>
    </div>
  );
}
