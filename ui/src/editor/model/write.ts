// Values as text: JSON, and YAML in flow or block style. Writes only new values; existing text is kept.

import { Document, isCollection, isScalar, stringify, visit } from "yaml";
import type { Json, Language } from "./types";

/** Longer objects and lists are written over several lines. */
const SHORT = 72;

/** On one line, valid inside braces. */
export function inline(value: Json, language: Language): string {
  return language === "json" ? inlineJson(value) : inlineYaml(value);
}

function inlineJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(inlineJson).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${inlineJson(item)}`);
    return `{${entries.join(", ")}}`;
  }
  return JSON.stringify(value);
}

function inlineYaml(value: Json): string {
  // Written inside a list, so that text that is not valid between braces is quoted.
  const document = new Document([value]);
  visit(document, {
    Node: (_, node) => {
      if (isCollection(node)) node.flow = true;
      // Text with line breaks or tabs is safest with escapes.
      if (isScalar(node) && typeof node.value === "string" && /[\n\t\r]/.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  // Line breaks are escaped, and no width limit is set, so nothing is folded.
  const options = {
    lineWidth: 0,
    flowCollectionPadding: false,
    doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  } as const;
  const text = document.toString(options).trim();
  if (!text.includes("\n")) return text.slice(1, -1);
  // The package breaks long collections over lines. JSON is valid YAML, so use that.
  return inlineLong(value);
}

function inlineLong(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(inlineYaml).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value)
      .map(([key, item]) => `${keyText(key, "yaml")}: ${inlineYaml(item)}`)
      .join(", ")}}`;
  }
  return JSON.stringify(value);
}

export function keyText(key: string, language: Language): string {
  if (language === "json") return JSON.stringify(key);
  const plain = stringify(key, { lineWidth: 0 }).trimEnd();
  return /[\n\r,[\]{}#:&*!|>'"%@`?]/.test(key) || plain.includes("\n") ? JSON.stringify(key) : plain;
}

/** JSON over several lines; the first line is written where the value starts. */
export function prettyJson(value: Json, indent: string, unit: string): string {
  return JSON.stringify(value, null, unit).replaceAll("\n", `\n${indent}`);
}

export interface BlockStyle {
  /** Of the line the value belongs to. */
  indent: string;
  unit: string;
  newline: string;
  /** Short objects on one line. */
  short: boolean;
}

/** What follows `key:` in a YAML block, with the space or line break that begins it. */
export function afterKey(value: Json, style: BlockStyle): string {
  if (typeof value === "string" && value.includes("\n")) return ` ${blockText(value, style)}`;
  if (value === null || typeof value !== "object") return ` ${scalarYaml(value)}`;
  if (fitsOneLine(value, style)) return ` ${inlineYaml(value)}`;
  const inner = { ...style, indent: style.indent + style.unit, short: true };
  return style.newline + inner.indent + blockValue(value, inner);
}

/** An object or list as a block whose first line is already indented. */
export function blockValue(value: Json, style: BlockStyle): string {
  const between = style.newline + style.indent;
  if (Array.isArray(value)) return value.map((item) => `-${afterDash(item, style)}`).join(between);
  if (value !== null && typeof value === "object") {
    return Object.entries(value)
      .map(([key, item]) => `${keyText(key, "yaml")}:${afterKey(item, style)}`)
      .join(between);
  }
  return afterKey(value, style).trimStart();
}

/** What follows the `-` of an item; `style` is that of the dash. */
export function afterDash(value: Json, style: BlockStyle): string {
  if (value === null || typeof value !== "object" || fitsOneLine(value, style)) return afterKey(value, style);
  return ` ${blockValue(value, { ...style, indent: `${style.indent}  `, short: true })}`;
}

function fitsOneLine(value: Json[] | { [key: string]: Json }, style: BlockStyle): boolean {
  const items = Array.isArray(value) ? value : Object.values(value);
  if (items.length === 0) return true;
  if (!style.short || JSON.stringify(value).includes("\\n")) return false;
  return inlineYaml(value).length + style.indent.length <= SHORT;
}

function scalarYaml(value: null | boolean | number | string): string {
  if (typeof value === "string" && /[\t\r]/.test(value)) return JSON.stringify(value);
  return stringify(value, { lineWidth: 0 }).trimEnd();
}

function blockText(value: string, style: BlockStyle): string {
  const plain =
    /^[^\s]/.test(value) &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a block of YAML cannot hold these
    !/[\t\r\u0000-\u0008\u007f-\u009f\u2028\u2029\ufeff]/.test(value) &&
    !/ \n/.test(value) &&
    !/\n\s*\n$/.test(value);
  if (!plain) return JSON.stringify(value);
  const keeps = value.endsWith("\n");
  const lines = (keeps ? value.slice(0, -1) : value).split("\n");
  const indent = style.indent + style.unit;
  return `|${keeps ? "" : "-"}${lines.map((line) => style.newline + (line ? indent + line : "")).join("")}`;
}

/** A scalar in the place of another, written as that one was where it can be. */
export function scalarLike(value: Json, style: string, language: Language, flow: boolean): string {
  if (language === "json" || typeof value !== "string") return inline(value, language);
  if (value.includes("\n")) return JSON.stringify(value);
  if (style === "double") return JSON.stringify(value);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: single quotes cannot hold these
  if (style === "single" && !/[\t\r\u0000-\u001f]/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  return flow ? inlineYaml(value) : scalarYaml(value);
}
