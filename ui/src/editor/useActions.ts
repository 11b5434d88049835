// Actions on the drawing as a whole: add after the selection, remove, copy, paste, tidy up.

import { useCallback } from "react";
import { arrange, freePlace, shapeOf } from "./canvas/boxes";
import type { Placed } from "./canvas/useBoxes";
import { copy, paste } from "./clipboard";
import { blank, FIRST_NAME } from "./model/kinds";
import { freshName } from "./model/model";
import type { Change, Kind, Model, Point } from "./model/types";
import { NOTHING, type Selection } from "./selection";
import type { Definition } from "./useDefinition";

export interface Actions {
  add: (kind: Kind, at?: { point: Point; parent: string | undefined }) => void;
  remove: () => void;
  copy: () => void;
  cut: () => void;
  paste: () => void;
  selectAll: () => void;
  tidy: () => void;
}

/** Fallback for browsers that deny access to the clipboard. */
let kept = "";

export function useActions(
  definition: Definition,
  placed: Placed,
  selection: Selection,
  select: (selection: Selection) => void,
): Actions {
  const { drawn: model, change } = definition;

  const add = useCallback(
    (kind: Kind, at?: { point: Point; parent: string | undefined }) => {
      if (!model.dialect) return;
      const [selected] = selection.steps.size === 1 ? selection.steps : [];
      const after = at ? undefined : model.steps.find((step) => step.id === selected);
      const parent = model.dialect === "graph" ? undefined : at ? at.parent : after?.parent;
      const name = freshName(model, FIRST_NAME[kind], parent);
      const id = parent === undefined ? name : `${parent}/${name}`;
      // A task lists what it follows itself.
      const needs = model.dialect === "tasks" || parent !== undefined ? after?.name : undefined;
      const fields = { ...(needs === undefined ? {} : { needs }), ...blank(kind, model.dialect) };
      const changes: Change[] = [
        {
          type: "addStep",
          name,
          kind,
          fields,
          ...(parent === undefined ? {} : { parent }),
          ...position(model, placed, at?.point, after?.id),
        },
      ];
      const outlet = after && needs === undefined && kind !== "start" ? freeOutlet(model, after.id) : undefined;
      if (after && outlet !== undefined) changes.push({ type: "connect", from: after.id, to: id, outlet });
      if (change({ type: "batch", changes })) select({ steps: new Set([id]), edge: null });
    },
    [change, model, placed, select, selection],
  );

  const remove = useCallback(() => {
    if (selection.edge !== null) {
      if (change({ type: "disconnect", edge: selection.edge })) select(NOTHING);
      return;
    }
    // The steps of a body are removed with their loop.
    const steps = [...selection.steps].filter(
      (id) => ![...selection.steps].some((other) => id.startsWith(`${other}/`)),
    );
    if (steps.length === 0) return;
    if (change({ type: "batch", changes: steps.map((step) => ({ type: "removeStep", step })) })) select(NOTHING);
  }, [change, select, selection]);

  const copyThem = useCallback(() => {
    const text = copy(model, selection.steps);
    if (text === null) return;
    kept = text;
    void navigator.clipboard?.writeText(text).catch(() => undefined);
  }, [model, selection]);

  const pasteThem = useCallback(async () => {
    const there = await Promise.resolve(navigator.clipboard?.readText()).catch(() => "");
    const [selected] = selection.steps;
    const parent = model.steps.find((step) => step.id === selected)?.parent;
    const made = paste(model, there ?? "", parent) ?? paste(model, kept, parent);
    if (made && change(made.change)) select({ steps: new Set(made.steps), edge: null });
  }, [change, model, select, selection]);

  const tidy = useCallback(() => {
    const boxes = arrange(shapeOf(model));
    const steps = model.steps.flatMap(({ id }) => {
      const box = boxes.get(id);
      return box ? [{ step: id, position: { x: box.x, y: box.y } }] : [];
    });
    change({ type: "move", steps });
  }, [change, model]);

  return {
    add,
    remove,
    copy: copyThem,
    cut: useCallback(() => {
      copyThem();
      remove();
    }, [copyThem, remove]),
    paste: useCallback(() => void pasteThem(), [pasteThem]),
    selectAll: useCallback(
      () => select({ steps: new Set(model.steps.map((step) => step.id)), edge: null }),
      [model, select],
    ),
    tidy,
  };
}

/** Only a graph whose nodes have positions gets one for the new node. */
function position(
  model: Model,
  placed: Placed,
  point: Point | undefined,
  after: string | undefined,
): { position?: Point } {
  if (model.dialect !== "graph" || !placed.written) return {};
  return { position: point ?? freePlace(placed.boxes, after) };
}

/** The first unconnected outlet, else the first. */
function freeOutlet(model: Model, id: string): string | undefined {
  const outlets = model.steps.find((step) => step.id === id)?.outlets.filter((one) => !one.bad) ?? [];
  const used = new Set(model.edges.filter((edge) => edge.from === id && !edge.derived).map((edge) => edge.outlet));
  return (outlets.find((one) => !used.has(one.id)) ?? outlets[0])?.id;
}
