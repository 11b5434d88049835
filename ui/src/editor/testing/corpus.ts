// Every valid definition of the repository, for tests that cover them all.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parse } from "../model/model";
import type { Model } from "../model/types";

const TOP = path.resolve(import.meta.dirname, "../../../..");
const FOLDERS = ["examples", "crates/formats/tests/cases/good", "crates/formats/tests/cases/seeds"];

export interface Sample {
  file: string;
  text: string;
}

export function corpus(): Sample[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(path.join(TOP, folder))
      .filter((name) => /\.(ya?ml|json)$/.test(name) && !name.includes(".test."))
      .map((name) => ({ file: `${folder}/${name}`, text: readFileSync(path.join(TOP, folder, name), "utf8") })),
  );
}

/** A model without its positions in the text. */
export function said(model: Model) {
  const steps = model.steps.map(({ id, name, kind, parent, fields, label, position }) => ({
    id,
    name,
    kind,
    parent,
    fields,
    label,
    position,
  }));
  const edges = model.edges.map(({ from, to, outlet, label, derived }) => ({ from, to, outlet, label, derived }));
  edges.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return { dialect: model.dialect, name: model.name, faults: model.faults.map((fault) => fault.message), steps, edges };
}

export function saidOf(text: string) {
  return said(parse(text));
}

/** Comments of a YAML text; `#` inside strings does not count. */
export function comments(text: string): string[] {
  return [...text.matchAll(/(?:^|\s)#.*$/gm)].map((found) => found[0].trim());
}

/** A small random number generator: the same seed yields the same numbers. */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export function pick<T>(from: readonly T[], next: (below: number) => number): T | undefined {
  return from[next(from.length)];
}
