// The side panel while no single step is selected: what can be done, and with which keys.

import { Fragment } from "react";
import type { Model } from "../model/types";

const KEYS: readonly (readonly [string, string])[] = [
  ["Tab", "goes from step to step"],
  ["Enter", "selects one"],
  ["Shift+click", "selects several"],
  ["Delete", "removes them"],
  ["Ctrl+C, Ctrl+V", "copies and pastes"],
  ["Ctrl+Z, Ctrl+Y", "undoes and redoes"],
  ["Ctrl+Enter", "starts a test run"],
  ["Ctrl+S", "saves"],
];

export function EmptyPanel({ model, selected }: { model: Model; selected: number }) {
  return (
    <div className="panel-inner">
      <h2>{selected > 1 ? `${selected} steps are selected` : "Nothing is selected"}</h2>
      <p className="dim small">
        {model.steps.length === 1 ? "One step" : `${model.steps.length} steps`}. Select one to see and change what it
        does. A new step goes after the selected one; draw from the dot at the bottom of a step to the top of another to
        connect them.
      </p>
      <dl className="keys">
        {KEYS.map(([key, does]) => (
          <Fragment key={key}>
            <dt>{key}</dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
    </div>
  );
}
