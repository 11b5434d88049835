// Finds references to a step in templates, conditions and code, and renames them with the step. Works on the source
// text, so that nothing else changes.

import type { Draft } from "./draft";
import type { Splice } from "./splice";
import { at, child, type Scalar, scalars } from "./tree";
import type { Path, Step } from "./types";

/** Fields that hold an expression without braces. */
const EXPRESSIONS = new Set(["if", "condition", "leftValue", "sourceVariable", "delayVariable"]);
const CODE = new Set(["javascript", "code"]);

/** Renames a step in everything that can see it. */
export function renameReferences(draft: Draft, step: Pick<Step, "path">, from: string, to: string): void {
  if (from === to) return;
  const root = draft.root();
  // A step in a body is visible in the body and in the output of one item.
  const within = step.path.includes("tasks") && step.path.length > 2 ? step.path.slice(0, -2) : [];
  const splices: Splice[] = [];
  for (const { path, node } of scalars(root)) {
    if (typeof node.value !== "string" || !seen(path, within)) continue;
    if (shadowed(path, within, (body) => child(at(root, body), from) !== undefined)) continue;
    const before = draft.source(node.start, node.end);
    const after = rewritten(before, node, String(path.findLast((key) => typeof key === "string") ?? ""), from, to);
    if (after !== before) splices.push({ start: node.start, end: node.end, text: after });
  }
  draft.replace(splices);
}

function seen(path: Path, within: Path): boolean {
  if (within.length === 0) return true;
  const inner = path[within.length];
  return within.every((key, n) => path[n] === key) && (inner === "tasks" || inner === "output");
}

/** Whether a body in between has a step of the same name. */
function shadowed(path: Path, within: Path, has: (body: Path) => boolean): boolean {
  for (let n = within.length + 2; n < path.length; n += 1) {
    if ((path[n] === "tasks" || path[n] === "output") && has([...path.slice(0, n), "tasks"])) return true;
  }
  return false;
}

function rewritten(source: string, node: Scalar, key: string, from: string, to: string): string {
  const rename = (part: string) => inExpression(part, node.style, from, to);
  const after =
    CODE.has(key) || (EXPRESSIONS.has(key) && !source.includes("{{"))
      ? rename(source)
      : source.replace(/\{\{(?:[^}]|\}(?!\}))*\}\}/g, rename);
  // Brackets and quotes need quoting in some places.
  const bare = node.style === "plain" && after !== source && /[[\]"']/.test(after) && !/[[\]"']/.test(source);
  return bare ? `"${after.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"` : after;
}

function inExpression(text: string, style: Scalar["style"], from: string, to: string): string {
  const name = from.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}_\\-.\\]])((?:ctx\\.)?(?:tasks|steps|wait))(?:\\.${name}(?![\\p{L}\\p{N}_-])|\\[(\\\\?["']|'')${name}\\2\\])`,
    "gu",
  );
  const plain = /^[\p{L}\p{N}_][\p{L}\p{N}_-]*$/u.test(to);
  const quote = style === "single" ? '"' : "'";
  return text.replace(pattern, (_, lead: string, had: string | undefined) => {
    if (had) return `${lead}[${had}${to}${had}]`;
    return plain ? `${lead}.${to}` : `${lead}[${quote}${to}${quote}]`;
  });
}
