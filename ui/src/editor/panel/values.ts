// Values of fields as people type them, and back.

import { type Document, isScalar, parseDocument, stringify, visit } from "yaml";
import type { Json, Language, Path } from "../model/types";
import type { FieldType } from "./fields";

export function valueAt(fields: Record<string, Json>, path: Path): Json | undefined {
  let at: Json | undefined = fields;
  for (const key of path) {
    if (at === null || typeof at !== "object") return undefined;
    at = (at as Record<string, Json>)[String(key)];
  }
  return at === null ? undefined : at;
}

export function shown(value: Json | undefined, type: FieldType, language: Language): string {
  if (value === undefined || value === null) return "";
  if (type === "value")
    return language === "json" ? JSON.stringify(value, null, 2) : stringify(value, { lineWidth: 0 }).trimEnd();
  return typeof value === "string" ? value : JSON.stringify(value);
}

export type Typed = { value: Json | undefined } | { fault: string };

/** An empty input removes the field. */
export function typed(text: string, type: FieldType): Typed {
  if (text.trim() === "") return { value: undefined };
  if (type === "number") {
    const number = Number(text);
    return Number.isFinite(number)
      ? { value: number }
      : text.includes("{{")
        ? { value: text }
        : { fault: "A number is needed here." };
  }
  if (type !== "value") return { value: text };
  const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  const [error] = document.errors;
  if (error)
    return {
      fault: /^\s*\{\{/.test(text)
        ? "Put a value that starts with {{ in quotes."
        : `This cannot be read: ${error.message}`,
    };
  if (hasObjectKey(document)) return { fault: "Put a value that starts with {{ in quotes." };
  return { value: document.toJS() as Json };
}

/** `{{x}}` without quotes is read as an object whose key is an object. */
function hasObjectKey(document: Document): boolean {
  let found = false;
  visit(document, {
    Pair: (_, pair) => {
      if (!isScalar(pair.key)) found = true;
    },
  });
  return found;
}

export function isOn(value: Json | undefined, usual = false): boolean {
  return typeof value === "boolean" ? value : usual;
}

/** The value written for a flag: undefined if it is the default. */
export function flagFor(on: boolean, usual = false): boolean | undefined {
  return on === usual ? undefined : on;
}
