// JSON text as a concrete tree. Strict, as the server is: comments and trailing commas are faults.

import { type ParseError, parseTree, printParseErrorCode, type Node as Raw } from "jsonc-parser";
import type { Entry, Node, Tree } from "./tree";
import type { Fault } from "./types";

const WORDS: Record<string, string> = {
  InvalidSymbol: "this is not JSON: text needs double quotes",
  InvalidNumberFormat: "this is not a number",
  PropertyNameExpected: "expected a field name in double quotes",
  ValueExpected: "expected a value",
  ColonExpected: "expected `:`",
  CommaExpected: "expected `,`",
  CloseBraceExpected: "a `}` is missing",
  CloseBracketExpected: "a `]` is missing",
  EndOfFileExpected: "unexpected text after the end of the document",
  InvalidCommentToken: "JSON has no comments",
  UnexpectedEndOfComment: "JSON has no comments",
  UnexpectedEndOfString: 'the text is not closed: a `"` is missing',
  InvalidUnicode: "this escape is not a valid character",
  InvalidEscapeCharacter: "unknown escape",
  InvalidCharacter: "this character must be escaped",
};

export function fromJson(text: string): Tree {
  const errors: ParseError[] = [];
  const raw = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false });
  const faults: Fault[] = errors.map((error) => ({
    message: WORDS[printParseErrorCode(error.error)] ?? "this is not JSON",
    code: "bad-json",
    start: error.offset,
    end: error.offset + Math.max(1, error.length),
  }));
  return { language: "json", root: raw ? convert(raw, faults) : null, faults };
}

function convert(raw: Raw, faults: Fault[]): Node {
  const start = raw.offset;
  const end = raw.offset + raw.length;
  if (raw.type === "array") {
    return { kind: "seq", flow: true, items: (raw.children ?? []).map((item) => convert(item, faults)), start, end };
  }
  if (raw.type === "object") {
    const entries: Entry[] = [];
    const seen = new Set<string>();
    for (const property of raw.children ?? []) {
      const [key, value] = property.children ?? [];
      if (!key) continue;
      const name = String(key.value);
      const keyEnd = key.offset + key.length;
      if (seen.has(name)) {
        faults.push({ message: `"${name}" is written twice`, code: "duplicate-key", start: key.offset, end: keyEnd });
      }
      seen.add(name);
      const nothing: Node = { kind: "scalar", value: null, style: "none", start: keyEnd, end: keyEnd };
      entries.push({ key: name, keyStart: key.offset, keyEnd, value: value ? convert(value, faults) : nothing });
    }
    return { kind: "map", flow: true, entries, merged: [], start, end };
  }
  const value = raw.value as null | boolean | number | string;
  return { kind: "scalar", value, style: raw.type === "string" ? "double" : "plain", start, end };
}
