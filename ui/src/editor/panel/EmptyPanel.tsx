// The side panel while no single step is selected: the possible actions and their keys.

import { Fragment } from "react";
import type { Model } from "../model/types";

const KEYS: readonly (readonly [string, string])[] = [
  ["Tab", "moves from step to step"],
  ["Enter", "selects a step"],
  ["Shift+click", "selects several steps"],
  ["Delete", "removes the selection"],
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
        {model.steps.length === 1 ? "One step" : `${model.steps.length} steps`}. Select one to view and edit it. A new
        step goes after the selected one. To connect two steps, draw from the dot at the bottom of one to the top of the
        other.
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
