// Entry point: turns text into a model, and a change of the model into a change of the text.

import type { Dialect, Simple } from "./dialect";
import { Draft } from "./draft";
import { flow } from "./flow";
import { graph } from "./graph";
import { tasks } from "./tasks";
import { child, readTree, resolve, type Tree, textOf, toJson } from "./tree";
import { type Change, type Fault, type Model, Refused } from "./types";

const DIALECTS: readonly (readonly [string, Dialect])[] = [
  ["tasks", tasks],
  ["flow", flow],
  ["nodes", graph],
];

export function parse(text: string): Model {
  return modelOf(readTree(text));
}

function modelOf(tree: Tree): Model {
  const { root, language } = tree;
  const faults: Fault[] = [...tree.faults];
  const model: Model = {
    language,
    dialect: null,
    name: "",
    inputSchema: undefined,
    vars: [],
    steps: [],
    edges: [],
    faults,
    editable: false,
  };
  const map = resolve(root ?? undefined);
  if (!root || map?.kind !== "map") {
    if (faults.length === 0)
      faults.push({ message: "a definition needs a name and steps", hint: "start with `name: …`", start: 0, end: 1 });
    return model;
  }
  model.name = textOf(child(root, "name")) ?? textOf(child(root, "title")) ?? "";
  const schema = child(root, "input_schema");
  model.inputSchema = schema && toJson(schema);
  const vars = resolve(child(root, "vars"));
  if (vars?.kind === "map") model.vars = vars.entries.map((entry) => entry.key);
  const dialect = DIALECTS.find(([key]) => resolve(child(root, key))?.kind !== undefined)?.[1];
  if (!dialect) return model;
  model.dialect = dialect.name;
  const drawn = dialect.read(root);
  model.steps = drawn.steps;
  model.edges = drawn.edges;
  model.editable = faults.length === 0;
  return model;
}

/** Returns the text after a change. Throws `Refused`, with a readable message, if the text does not allow it. */
export function apply(text: string, change: Change): string {
  if (change.type === "batch") return change.changes.reduce(apply, text);
  const draft = new Draft(text);
  const model = modelOf(draft.read());
  const dialect = DIALECTS.find(([, one]) => one.name === model.dialect)?.[1];
  if (!model.editable || !dialect) throw new Refused("The text has errors: fix it first, or undo.");
  dialect.write(draft, model, change satisfies Simple);
  const [fault] = draft.read().faults;
  if (fault) throw new Refused(`That change would make the text unreadable (${fault.message}): edit the text instead.`);
  return draft.result();
}

/** A name that no step has yet. */
export function freshName(model: Model, base: string, parent?: string): string {
  const taken = new Set(
    model.steps.filter((step) => step.parent === parent).flatMap((step) => [step.name, String(step.path.at(-1))]),
  );
  let name = base;
  for (let n = 2; taken.has(name); n += 1) name = `${base}-${n}`;
  return name;
}
