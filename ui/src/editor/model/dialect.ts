// The interface of a dialect: how its steps and edges are read, and how a change is written into its text.

import type { Draft } from "./draft";
import { child, keys, type Node, resolve, textOf, toJson } from "./tree";
import {
  type Change,
  type DialectName,
  type Edge,
  type Fault,
  type Json,
  type Model,
  type Path,
  Refused,
  type Step,
} from "./types";

export type Simple = Exclude<Change, { type: "batch" }>;

export interface Drawn {
  steps: Step[];
  edges: Edge[];
  faults: Fault[];
}

export interface Dialect {
  name: DialectName;
  read(root: Node): Drawn;
  write(draft: Draft, model: Model, change: Simple): void;
}

export function stepOf(model: Model, id: string): Step {
  const step = model.steps.find((one) => one.id === id);
  if (!step) throw new Refused(`Step “${id}” no longer exists.`);
  return step;
}

export function edgeOf(model: Model, id: string): Edge {
  const edge = model.edges.find((one) => one.id === id);
  if (!edge) throw new Refused("This connection no longer exists.");
  return edge;
}

/** A name or a list of names, each with its place. */
export function names(node: Node | undefined, path: Path): { name: string; path: Path; start: number; end: number }[] {
  const at = resolve(node);
  if (!at || at.kind === "map") return [];
  const found =
    at.kind === "seq" ? at.items.map((item, n) => ({ item, path: [...path, n] })) : [{ item: at as Node, path }];
  return found.flatMap(({ item, path: where }) => {
    const name = textOf(item) ?? scalarText(item);
    return name === undefined ? [] : [{ name, path: where, start: item.start, end: item.end }];
  });
}

/** Names that look like numbers are still names. */
function scalarText(node: Node): string | undefined {
  const at = resolve(node);
  return at?.kind === "scalar" && typeof at.value === "number" ? String(at.value) : undefined;
}

/** The fields of a step as plain values; null counts as absent, except for flow's `tool: null`. */
export function fieldsOf(node: Node, but: readonly string[] = []): Record<string, Json> {
  const fields: Record<string, Json> = {};
  for (const key of keys(node)) if (!but.includes(key)) fields[key] = toJson(child(node, key));
  return fields;
}

export function has(fields: Record<string, Json>, name: string): boolean {
  return fields[name] !== undefined && fields[name] !== null;
}

/** Whether `to` can be reached from `from`. */
export function reaches(edges: readonly Edge[], from: string, to: string): boolean {
  const next = new Map<string, string[]>();
  for (const edge of edges) next.set(edge.from, [...(next.get(edge.from) ?? []), edge.to]);
  const seen = new Set<string>();
  const todo = [from];
  while (todo.length > 0) {
    const at = todo.pop() as string;
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    todo.push(...(next.get(at) ?? []));
  }
  return false;
}

/** Throws if this is not a valid step name. */
export function checkName(model: Model, name: string, parent: string | undefined, but?: string): void {
  if (!/^[\p{L}\p{N}_-](?:[\p{L}\p{N}_ -]*[\p{L}\p{N}_-])?$/u.test(name)) {
    throw new Refused("A name is made of letters, digits, _, - and spaces inside it.");
  }
  if (new TextEncoder().encode(name).length > 128) throw new Refused("A name has at most 128 bytes.");
  const taken = model.steps.some(
    (one) => one.parent === parent && one.id !== but && (one.name === name || one.path.at(-1) === name),
  );
  if (taken) throw new Refused(`Another step is already called “${name}”.`);
}

export function sameScope(from: Step, to: Step): void {
  if (from.parent !== to.parent) throw new Refused("You can connect steps inside a loop’s body only to each other.");
}

/** Sets or removes a field; an object that becomes empty is removed too, if only its fields gave it a meaning. */
export function setField(draft: Draft, path: Path, field: Path, value: Json | undefined): void {
  if (value !== undefined) return draft.set([...path, ...field], value);
  const [first] = field;
  const parent = draft.json([...path, ...field.slice(0, -1)]);
  const lonely =
    field.length > 1 &&
    (first === "retry" || first === "headers") &&
    parent !== null &&
    typeof parent === "object" &&
    Object.keys(parent).length === 1;
  draft.remove([...path, ...(lonely ? field.slice(0, -1) : field)]);
}
