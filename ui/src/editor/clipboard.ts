// Copies steps to the clipboard, and creates the changes that paste them, with fresh names and the connections between
// the copied steps.

import { freshName } from "./model/model";
import type { Change, DialectName, Json, Kind, Model, Point } from "./model/types";

interface Copied {
  stepwell: DialectName;
  steps: { name: string; kind: Kind; fields: Record<string, Json>; position?: Point }[];
  edges: { from: string; to: string; outlet: string }[];
}

/** Fields that name the next step; the copied edges replace them. */
const LINKS: Record<DialectName, readonly string[]> = {
  tasks: ["needs"],
  flow: ["next", "parallel", "join", "branch", "on_error", "done", "name"],
  graph: [],
};

/** Steps of one scope, as text; null if there is nothing to copy. */
export function copy(model: Model, ids: ReadonlySet<string>): string | null {
  const steps = model.steps.filter((step) => ids.has(step.id) && !(step.parent !== undefined && ids.has(step.parent)));
  if (steps.length === 0 || !model.dialect) return null;
  const links = LINKS[model.dialect];
  const copied: Copied = {
    stepwell: model.dialect,
    steps: steps.map(({ name, kind, fields, position }) => ({
      name,
      kind,
      fields: Object.fromEntries(Object.entries(fields).filter(([field]) => !links.includes(field))),
      ...(position ? { position } : {}),
    })),
    edges: [],
  };
  const names = new Map(steps.map((step) => [step.id, step.name]));
  for (const edge of model.edges) {
    const from = names.get(edge.from);
    const to = names.get(edge.to);
    if (from === undefined || to === undefined || edge.derived) continue;
    // The cases of a branch are not copied: they would have to be created first.
    if (model.dialect === "flow" && edge.outlet.startsWith("branch:")) continue;
    copied.edges.push({ from, to, outlet: edge.outlet });
  }
  return JSON.stringify(copied);
}

export interface Pasted {
  change: Change;
  /** The ids of the new steps. */
  steps: string[];
}

/** Null if the text is not a copy, or belongs to another dialect. */
export function paste(model: Model, text: string, parent: string | undefined): Pasted | null {
  const copied = read(text);
  if (!copied || copied.stepwell !== model.dialect) return null;
  const names = new Map<string, string>();
  const taken: Model = { ...model, steps: [...model.steps] };
  const changes: Change[] = [];
  for (const { name, kind, fields, position } of copied.steps) {
    const fresh = freshName(taken, name, parent);
    names.set(name, fresh);
    const id = parent === undefined ? fresh : `${parent}/${fresh}`;
    taken.steps.push({
      id,
      name: fresh,
      kind,
      path: [fresh],
      range: { start: 0, end: 0 },
      fields,
      outlets: [],
      ...(parent === undefined ? {} : { parent }),
    });
    changes.push({
      type: "addStep",
      name: fresh,
      kind,
      fields,
      ...(parent === undefined ? {} : { parent }),
      ...(position ? { position: { x: position.x + 40, y: position.y + 40 } } : {}),
    });
  }
  const id = (name: string) =>
    parent === undefined ? (names.get(name) ?? name) : `${parent}/${names.get(name) ?? name}`;
  for (const edge of copied.edges)
    changes.push({ type: "connect", from: id(edge.from), to: id(edge.to), outlet: edge.outlet });
  return { change: { type: "batch", changes }, steps: copied.steps.map((step) => id(step.name)) };
}

function read(text: string): Copied | null {
  try {
    const value = JSON.parse(text) as Partial<Copied> | null;
    return value &&
      typeof value === "object" &&
      Array.isArray(value.steps) &&
      Array.isArray(value.edges) &&
      value.stepwell
      ? (value as Copied)
      : null;
  } catch {
    return null;
  }
}
