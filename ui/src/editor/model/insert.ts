// Appends an entry or an item to a collection, in the style of its neighbours.

import { commaAfter, partsOf } from "./cut";
import type { Place } from "./draft";
import { beginsLine, column, lineEnd, lineStart, type Splice } from "./splice";
import type { MapNode, Node, Seq } from "./tree";
import type { Json } from "./types";
import { afterDash, afterKey, inline, keyText, prettyJson } from "./write";

export function insertEntry(place: Place, map: MapNode, key: string, value: Json): Splice[] {
  const last = map.entries.at(-1);
  if (map.flow || place.language === "json") {
    return inFlow(place, map, (style) => `${keyText(key, place.language)}: ${style(value)}`);
  }
  if (!last) return [];
  const { text, newline, unit } = place;
  const indent = indentOf(text, map.entries[0]?.keyStart ?? last.keyStart);
  // The neighbours are on one line, so the new one is too.
  const neighbour = last.value.kind === "map" && last.value.flow && isObject(value);
  const written = neighbour
    ? ` ${inline(value, "yaml")}`
    : afterKey(value, { indent, unit, newline, short: !isObject(value) || isShortField(last.value) });
  const end = endOfPart(text, last.value.end, last.value);
  return [{ start: end, end, text: `${newline}${indent}${keyText(key, "yaml")}:${written}` }];
}

export function insertItem(place: Place, list: Seq, value: Json): Splice[] {
  if (list.flow || place.language === "json") return inFlow(place, list, (style) => style(value));
  const { text, newline, unit } = place;
  const first = partsOf(text, list)[0];
  const last = list.items.at(-1);
  if (!first || !last) return [];
  const indent = indentOf(text, first.start);
  const neighbour = last.kind === "map" && last.flow;
  const written = neighbour
    ? ` ${inline(value, "yaml")}`
    : afterDash(value, { indent, unit, newline, short: last.kind !== "map" });
  const end = endOfPart(text, last.end, last);
  return [{ start: end, end, text: `${newline}${indent}-${written}` }];
}

/** Steps are written as blocks; values inside them may be on one line. */
function isShortField(neighbour: Node): boolean {
  return neighbour.kind !== "map" || neighbour.flow;
}

function isObject(value: Json): boolean {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** The space under which a key or dash stands, dashes before it counted as space. */
function indentOf(text: string, at: number): string {
  const lead = text.slice(lineStart(text, at), at);
  return lead.includes("\t") ? lead.replace(/[^\t]/g, " ") : " ".repeat(column(text, at));
}

/** Behind what belongs to the last part on its line: a comment. A text that keeps its empty lines ends after them. */
function endOfPart(text: string, end: number, last: Node): number {
  let node = last;
  while (node.kind !== "scalar" && node.kind !== "alias" && !node.flow) {
    const inner: Node | undefined = node.kind === "map" ? node.entries.at(-1)?.value : node.items.at(-1);
    if (!inner) break;
    node = inner;
  }
  if (node.kind === "scalar" && node.style === "block") return end;
  return lineEnd(text, end);
}

function inFlow(place: Place, node: MapNode | Seq, write: (style: (value: Json) => string) => string): Splice[] {
  const { text, language, newline } = place;
  const parts = partsOf(text, node);
  const last = parts.at(-1);
  const oneLine = (value: Json) => inline(value, language);
  if (!last) {
    const inner = text.slice(node.start + 1, node.end - 1);
    if (inner.trim() === "") return [{ start: node.start + 1, end: node.end - 1, text: write(oneLine) }];
    return [{ start: node.end - 1, end: node.end - 1, text: write(oneLine) }];
  }
  const trailing = text.slice(last.end, node.end - 1);
  const comma = commaAfter(text, last.end);
  const hasComma = comma < node.end - 1 && trailing.replace(/#.*/g, "").includes(",");
  if (!beginsLine(text, last.start)) {
    const at = hasComma ? comma + 1 : last.end;
    return [{ start: at, end: at, text: `${hasComma ? "" : ","} ${write(oneLine)}` }];
  }
  const indent = text.slice(lineStart(text, last.start), last.start);
  const long = language === "json" && text.slice(last.start, last.end).includes("\n");
  const style = long ? (value: Json) => prettyJson(value, indent, place.unit) : oneLine;
  const closes = lineEnd(text, last.end) >= node.end - 1;
  const at = closes ? last.end : lineEnd(text, hasComma ? comma : last.end);
  const entry = newline + indent + write(style);
  if (hasComma) return [{ start: at, end: at, text: entry }];
  if (at === last.end) return [{ start: at, end: at, text: `,${entry}` }];
  return [
    { start: last.end, end: last.end, text: "," },
    { start: at, end: at, text: entry },
  ];
}
