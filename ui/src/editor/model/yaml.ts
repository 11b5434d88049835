// YAML text as a concrete tree. Keeps the source positions of what the yaml package reads. Blocks end where their last
// value ends, so that comments after them stay outside.

import { type Document, isAlias, isMap, isScalar, isSeq, type Pair, parseDocument } from "yaml";
import type { Entry, MapNode, Node, Tree } from "./tree";
import { resolve } from "./tree";
import type { Fault } from "./types";

interface Reading {
  text: string;
  document: Document;
  faults: Fault[];
  /** What each anchor stands for, once read. */
  anchors: Map<string, Node>;
}

export function fromYaml(text: string): Tree {
  const document = parseDocument(text, { merge: true, prettyErrors: false, logLevel: "silent", uniqueKeys: false });
  const faults: Fault[] = document.errors.map((error) => ({
    message: words(error.code, error.message),
    code: "bad-yaml",
    start: error.pos[0],
    end: Math.max(error.pos[1], error.pos[0] + 1),
  }));
  const reading: Reading = { text, document, faults, anchors: new Map() };
  const root = document.contents === null ? null : convert(reading, document.contents, 0);
  return { language: "yaml", root, faults };
}

function words(code: string, message: string): string {
  if (code === "MULTIPLE_DOCS") return "a definition is one document: remove what follows `---`";
  if (code === "TAB_AS_INDENT") return "YAML is indented with spaces, not with tabs";
  return message;
}

function convert(reading: Reading, raw: unknown, fallback: number): Node {
  const node = build(reading, raw, fallback);
  const anchor = isMap(raw) || isSeq(raw) || isScalar(raw) ? raw.anchor : undefined;
  if (anchor) reading.anchors.set(anchor, node);
  return node;
}

function build(reading: Reading, raw: unknown, fallback: number): Node {
  if (isAlias(raw)) {
    const [start, end] = raw.range ?? [fallback, fallback];
    const target = reading.anchors.get(raw.source);
    if (target) return { kind: "alias", name: raw.source, target, start, end };
    reading.faults.push({ message: `there is no anchor &${raw.source} before this`, code: "bad-alias", start, end });
    return { kind: "scalar", value: null, style: "plain", start, end };
  }
  if (isSeq(raw)) {
    const [start, rangeEnd] = raw.range ?? [fallback, fallback];
    const items = raw.items.map((item) => convert(reading, item, start));
    const flow = raw.flow === true;
    const last = items.at(-1);
    return { kind: "seq", flow, items, start, end: flow || !last ? rangeEnd : last.end };
  }
  if (isMap(raw)) {
    const [start, rangeEnd] = raw.range ?? [fallback, fallback];
    const flow = raw.flow === true;
    const entries: Entry[] = [];
    const merged: MapNode[] = [];
    const seen = new Set<string>();
    for (const pair of raw.items) {
      const entry = entryOf(reading, pair);
      if (!entry) continue;
      if (seen.has(entry.key) && entry.key !== "<<") {
        reading.faults.push({
          message: `"${entry.key}" is written twice`,
          code: "duplicate-key",
          start: entry.keyStart,
          end: entry.keyEnd,
        });
      }
      seen.add(entry.key);
      entries.push(entry);
      if (entry.key === "<<") merged.push(...mergedIn(entry.value));
    }
    const last = entries.at(-1);
    return { kind: "map", flow, entries, merged, start, end: flow || !last ? rangeEnd : last.value.end };
  }
  if (isScalar(raw)) {
    const [start, end] = raw.range ?? [fallback, fallback];
    const block = raw.type === "BLOCK_LITERAL" || raw.type === "BLOCK_FOLDED";
    const value = scalarValue(raw.value);
    if (block) return { kind: "scalar", value, style: "block", start, end: blockEnd(reading.text, start, end) };
    if (start === end) return { kind: "scalar", value, style: "none", start, end };
    const style = raw.type === "QUOTE_DOUBLE" ? "double" : raw.type === "QUOTE_SINGLE" ? "single" : "plain";
    return { kind: "scalar", value, style, start, end };
  }
  return { kind: "scalar", value: null, style: "none", start: fallback, end: fallback };
}

function entryOf(reading: Reading, pair: Pair): Entry | undefined {
  const { key, value } = pair;
  if (!isScalar(key) || !key.range) {
    const range = isMap(key) || isSeq(key) ? key.range : undefined;
    const start = range?.[0] ?? 0;
    reading.faults.push({
      message: "a key must be plain text",
      hint: "put text that starts with {{ in quotes",
      code: "bad-key",
      start,
      end: range?.[1] ?? start + 1,
    });
    return undefined;
  }
  const name = typeof key.value === "symbol" ? "<<" : String(key.source ?? key.value);
  const [keyStart, keyEnd] = key.range;
  // The position of the colon: only space can come between it and the key.
  const colon = reading.text.indexOf(":", keyEnd);
  const after = colon < 0 ? keyEnd : colon + 1;
  const read = convert(reading, value, after);
  if (read.kind === "scalar" && read.style === "none")
    return { key: name, keyStart, keyEnd, value: { ...read, start: after, end: after } };
  return { key: name, keyStart, keyEnd, value: read };
}

function mergedIn(node: Node): MapNode[] {
  const at = resolve(node);
  if (at?.kind === "map") return [at];
  if (at?.kind === "seq") return at.items.flatMap((item) => mergedIn(item));
  return [];
}

function scalarValue(value: unknown): null | boolean | number | string {
  if (value === null || typeof value === "boolean" || typeof value === "number" || typeof value === "string")
    return value;
  return value === undefined ? null : String(value);
}

/** A block scalar ends with its last line; only `+` includes the empty lines after it. */
function blockEnd(text: string, start: number, end: number): number {
  const header = text.slice(start, start + 4).split(/\s/, 1)[0] ?? "";
  if (header.includes("+")) return text[end - 1] === "\n" ? end - 1 : end;
  let at = end;
  while (at > start && /\s/.test(text[at - 1] ?? "")) at -= 1;
  return at;
}
