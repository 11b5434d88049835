// Suggestions for the next part of an expression: names in scope, fields of steps, values known from the input schema
// and the last test run, and functions.

import type { Json, Model, Step } from "../model/types";
import { isInLoop, loopsAround, upstream } from "./upstream";

export interface Suggestion {
  label: string;
  /** The text to insert, if it differs from the label. */
  insert?: string;
  detail?: string;
  type: "variable" | "property" | "function" | "keyword";
}

export interface Asked {
  model: Model;
  /** The step that contains the expression; none for the output of the run. */
  step: string | undefined;
  /** The expression up to the cursor. */
  before: string;
  /** Results of steps in the last test run, by id. */
  outputs?: ReadonlyMap<string, Json>;
  secrets?: readonly string[];
}

export interface Suggested {
  /** How many characters before the cursor are replaced. */
  length: number;
  options: Suggestion[];
}

const FUNCTIONS: readonly (readonly [string, string])[] = [
  ["len", "characters, items or entries"],
  ["contains", "(x, y): a part, an item or a key"],
  ["starts_with", "(text, part)"],
  ["ends_with", "(text, part)"],
  ["lower", "(text)"],
  ["upper", "(text)"],
  ["trim", "(text)"],
  ["exists", "neither null nor missing"],
  ["string", "as text"],
  ["number", "as a number"],
  ["json", "as compact JSON"],
  ["join", "(list, separator)"],
  ["min", "the least"],
  ["max", "the greatest"],
  ["keys", "of an object"],
  ["first", "item of a list"],
  ["last", "item of a list"],
  ["split", "(text, separator)"],
  ["replace", "(text, part, by)"],
  ["slice", "(x, from, to): of a text or list"],
  ["sum", "of a list of numbers"],
  ["sort", "(list, field)"],
  ["unique", "without repeated items"],
  ["values", "of an object"],
  ["merge", "(a, b): one object"],
  ["round", "(x, digits)"],
  ["floor", "the whole number below"],
  ["ceil", "the whole number above"],
  ["abs", "without its sign"],
  ["date", "(time, add, format, zone)"],
  ["base64", "of a text"],
  ["sha256", "of a text, in hexadecimal"],
  ["urlencode", "for a part of a URL"],
];

const STEP_FIELDS: readonly (readonly [string, string])[] = [
  ["body", "what it gave"],
  ["status", "success, failed, timeout, denied, skipped"],
  ["status_code", "of an HTTP answer"],
  ["headers", "of an HTTP answer"],
  ["error", "code and message of a failure"],
  ["result", "the same as body"],
];

export function suggest(asked: Asked): Suggested {
  const written = /[\p{L}\p{N}_.[\]"'-]*$/u.exec(asked.before)?.[0] ?? "";
  const dot = written.lastIndexOf(".");
  const prefix = written.slice(dot + 1);
  const options = dot < 0 ? roots(asked) : inside(asked, pathOf(written.slice(0, dot)));
  return { length: prefix.length, options };
}

/** `tasks["a b"].body[0]` as its parts. */
function pathOf(text: string): string[] {
  return [...text.matchAll(/\["([^"]*)"\]|\['([^']*)'\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    (found) => found[1] ?? found[2] ?? found[3] ?? found[4] ?? "",
  );
}

function roots({ model, step }: Asked): Suggestion[] {
  const word = model.dialect === "tasks" ? "tasks" : "steps";
  const own = model.steps.find((one) => one.id === step);
  const list: Suggestion[] = [
    { label: "input", detail: "the input of the run", type: "variable" },
    { label: word, detail: "steps before this one", type: "variable" },
  ];
  if (model.dialect === "graph")
    list.push({ label: "ctx", detail: "variables of nodes before this one", type: "variable" });
  if (model.dialect === "flow" && own)
    list.push({ label: "result", detail: "the step’s own result, in its branch", type: "variable" });
  if (isInLoop(model, step)) {
    list.push(
      { label: "item", detail: "the current item", type: "variable" },
      { label: "index", detail: "position of the item, from 0", type: "variable" },
    );
  }
  if (model.vars.length > 0) list.push({ label: "vars", detail: "computed when the run started", type: "variable" });
  list.push(
    { label: "trigger", detail: "body and headers of the call that started the run", type: "variable" },
    { label: "wait", detail: "addresses of webhook waits", type: "variable" },
    { label: "run", detail: "the run’s id", type: "variable" },
    { label: "now", detail: "the time at which this is evaluated", type: "variable" },
    { label: "secrets", detail: "in http, tool and query steps", type: "variable" },
  );
  for (const [name, detail] of FUNCTIONS) list.push({ label: name, insert: `${name}()`, detail, type: "function" });
  for (const name of ["true", "false", "null"]) list.push({ label: name, type: "keyword" });
  return list;
}

function inside(asked: Asked, path: string[]): Suggestion[] {
  const [root, ...rest] = path;
  const { model } = asked;
  if (root === "input") return fromSchema(model.inputSchema, rest);
  if (root === "trigger")
    return rest.length === 0
      ? properties(["body", "headers", "query"])
      : rest[0] === "body"
        ? fromSchema(model.inputSchema, rest.slice(1))
        : [];
  if (root === "vars") return rest.length === 0 ? properties(model.vars) : [];
  if (root === "run") return rest.length === 0 ? properties(["id"]) : [];
  if (root === "secrets") return rest.length === 0 ? properties(asked.secrets ?? []) : [];
  if (root === "wait") {
    if (rest.length === 1) return properties(["url"]);
    return rest.length === 0
      ? model.steps.filter((step) => step.kind === "webhook").map((step) => named(step, "webhook wait"))
      : [];
  }
  if (root === "ctx") return context(asked, rest);
  if (root === "result") {
    const own = asked.step === undefined ? undefined : asked.outputs?.get(asked.step);
    return fromValue(own, rest);
  }
  if (root === "tasks" || root === "steps") return steps(asked, rest);
  return [];
}

function steps(asked: Asked, [name, field, ...rest]: string[]): Suggestion[] {
  const known = upstream(asked.model, asked.step);
  if (name === undefined) return known.map((step) => named(step, step.label ?? step.kind));
  const step = known.find((one) => one.name === name || one.label === name || one.id === name);
  if (field === undefined) return STEP_FIELDS.map(([label, detail]) => ({ label, detail, type: "property" }));
  if (field === "error") return rest.length === 0 ? properties(["code", "message"]) : [];
  if (!step || !["body", "result", "output"].includes(field)) return [];
  const told = fromValue(asked.outputs?.get(step.id), rest);
  if (told.length > 0 || rest.length > 0) return told;
  return step.kind === "approval" ? properties(["decision", "by", "comment", "data"]) : [];
}

function context(asked: Asked, [name, ...rest]: string[]): Suggestion[] {
  const known = upstream(asked.model, asked.step);
  const variables = known.flatMap((step) =>
    typeof step.fields.outputVariable === "string" && step.fields.outputVariable !== ""
      ? [{ name: step.fields.outputVariable.replace(/^ctx\./, ""), step }]
      : [],
  );
  if (name === "input") return fromSchema(asked.model.inputSchema, rest);
  if (name === undefined) {
    const loops = asked.step === undefined ? [] : loopsAround(asked.model, asked.step);
    const items = loops.flatMap((loop) =>
      [loop.fields.itemVariable, loop.fields.indexVariable].filter(
        (one): one is string => typeof one === "string" && one !== "",
      ),
    );
    return [
      ...properties(["input"]),
      ...variables.map(
        (one): Suggestion => ({ label: one.name, detail: `of ${one.step.label ?? one.step.name}`, type: "property" }),
      ),
      ...properties(items),
    ];
  }
  const from = variables.find((one) => one.name === name);
  return from ? fromValue(asked.outputs?.get(from.step.id), rest) : [];
}

function named(step: Step, detail: string): Suggestion {
  const plain = /^[\p{L}\p{N}_][\p{L}\p{N}_-]*$/u.test(step.name);
  return plain
    ? { label: step.name, detail, type: "property" }
    : { label: step.name, insert: `["${step.name}"]`, detail, type: "property" };
}

function properties(names: readonly string[]): Suggestion[] {
  return names.map((label) => ({ label, type: "property" }));
}

function fromSchema(schema: Json | undefined, path: string[]): Suggestion[] {
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return [];
  const [name, ...rest] = path;
  if (name !== undefined && /^\d+$/.test(name)) return fromSchema(schema.items, rest);
  const { properties: known } = schema;
  if (known === null || typeof known !== "object" || Array.isArray(known)) return [];
  if (name !== undefined) return fromSchema(known[name], rest);
  return Object.entries(known).map(([label, one]) => {
    const type = one !== null && typeof one === "object" && !Array.isArray(one) ? one.type : undefined;
    return { label, ...(typeof type === "string" ? { detail: type } : {}), type: "property" };
  });
}

function fromValue(value: Json | undefined, path: string[]): Suggestion[] {
  let at: Json | undefined = value;
  for (const name of path) at = at !== null && typeof at === "object" ? (at as Record<string, Json>)[name] : undefined;
  if (at === null || typeof at !== "object" || Array.isArray(at)) return [];
  return Object.entries(at).map(([label, one]) => ({ label, detail: short(one), type: "property" }));
}

function short(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 32 ? `${text.slice(0, 31)}…` : text;
}

/** The expression that the cursor is in: inside `{{…`, or after a field that holds one without braces. */
export function expressionBefore(line: string): string | null {
  const open = line.lastIndexOf("{{");
  if (open >= 0 && !line.slice(open).includes("}}")) return line.slice(open + 2);
  const field = /(?:^|[\s{,"'])(?:if|condition|sourceVariable|delayVariable|leftValue)["']?\s*:\s*["']?([^"]*)$/.exec(
    line,
  );
  return field && !/[{}]/.test(field[1] ?? "") ? (field[1] ?? "") : null;
}
