// The concrete tree of a document: values with their source positions. Shared by JSON and YAML; edits are made
// by position, so that everything else stays as written.

import { fromJson } from "./json";
import type { Fault, Json, Language, Path } from "./types";
import { fromYaml } from "./yaml";

export interface Scalar {
  kind: "scalar";
  value: null | boolean | number | string;
  /** How it is written; `none` is a value that was left out. */
  style: "plain" | "single" | "double" | "block" | "none";
  start: number;
  end: number;
}

export interface MapNode {
  kind: "map";
  /** Written with braces. */
  flow: boolean;
  entries: Entry[];
  /** Maps from merge keys, the nearest first. */
  merged: MapNode[];
  start: number;
  end: number;
}

export interface Seq {
  kind: "seq";
  /** Written with brackets. */
  flow: boolean;
  items: Node[];
  start: number;
  end: number;
}

export interface Alias {
  kind: "alias";
  name: string;
  target: Node;
  start: number;
  end: number;
}

export type Node = Scalar | MapNode | Seq | Alias;

export interface Entry {
  key: string;
  keyStart: number;
  keyEnd: number;
  value: Node;
}

export interface Tree {
  language: Language;
  root: Node | null;
  faults: Fault[];
}

/** As on the server: a text that starts with `[`, or with `{` and a quote, is JSON. */
export function languageOf(text: string): Language {
  const start = text.replace(/^\uFEFF/, "").trimStart();
  return /^(\[|\{\s*["}])/.test(start) ? "json" : "yaml";
}

/** Cache of the last text: a change reads what the page just read, and the page reads the result of a change. */
let last: { text: string; tree: Tree } | undefined;

export function readTree(text: string): Tree {
  if (last?.text !== text) last = { text, tree: languageOf(text) === "json" ? fromJson(text) : fromYaml(text) };
  return last.tree;
}

/** The value behind an alias. */
export function resolve(node: Node | undefined): Scalar | MapNode | Seq | undefined {
  let at = node;
  for (let depth = 0; at?.kind === "alias"; depth += 1) {
    if (depth > 64) return undefined;
    at = at.target;
  }
  return at;
}

export function ownEntry(node: Node | undefined, key: string): Entry | undefined {
  return node?.kind === "map" ? node.entries.find((entry) => entry.key === key) : undefined;
}

/** A child by key or position, through aliases and merge keys. */
export function child(node: Node | undefined, key: string | number): Node | undefined {
  const at = resolve(node);
  if (at?.kind === "seq") return typeof key === "number" ? at.items[key] : undefined;
  if (at?.kind !== "map") return undefined;
  const own = ownEntry(at, String(key));
  if (own) return own.value;
  for (const merged of at.merged) {
    const found = child(merged, key);
    if (found) return found;
  }
  return undefined;
}

export function at(node: Node | null | undefined, path: Path): Node | undefined {
  let found: Node | undefined = node ?? undefined;
  for (const key of path) found = child(found, key);
  return found;
}

/** Keys of a map, including those from merge keys. */
export function keys(node: Node | undefined): string[] {
  const map = resolve(node);
  if (map?.kind !== "map") return [];
  const own = map.entries.filter((entry) => entry.key !== "<<").map((entry) => entry.key);
  return [...new Set([...own, ...map.merged.flatMap((merged) => keys(merged))])];
}

export function toJson(node: Node | undefined, depth = 0): Json {
  const at = resolve(node);
  if (!at || depth > 64) return null;
  if (at.kind === "scalar") return at.value;
  if (at.kind === "seq") return at.items.map((item) => toJson(item, depth + 1));
  return Object.fromEntries(keys(at).map((key) => [key, toJson(child(at, key), depth + 1)]));
}

/** A string, or a scalar that is read as one. */
export function textOf(node: Node | undefined): string | undefined {
  const at = resolve(node);
  return at?.kind === "scalar" && typeof at.value === "string" ? at.value : undefined;
}

/** Every scalar with its path, without aliases: their values are visited where they are defined. */
export function* scalars(node: Node | null | undefined, path: Path = []): Generator<{ path: Path; node: Scalar }> {
  if (!node) return;
  if (node.kind === "scalar") yield { path, node };
  if (node.kind === "seq") for (const [n, item] of node.items.entries()) yield* scalars(item, [...path, n]);
  if (node.kind === "map") for (const entry of node.entries) yield* scalars(entry.value, [...path, entry.key]);
}

export function sameJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, n) => sameJson(item, b[n] as Json));
  }
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => name in b && sameJson(a[name] as Json, b[name] as Json))
  );
}
