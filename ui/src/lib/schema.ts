// A form out of a JSON Schema: which fields there are, what they begin with, and what was filled in as JSON.
// What a form cannot show becomes a field for JSON. The server checks everything once more.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Field {
  name: string;
  label: string;
  help?: string;
  required: boolean;
  kind: "text" | "long" | "number" | "whole" | "yes-no" | "choice" | "group" | "json";
  /** Of a text: what the browser can help with. */
  input?: "date" | "time" | "datetime-local" | "email" | "url" | "password";
  choices?: Json[];
  fields?: Field[];
  initial?: Json;
  least?: number;
  most?: number;
}

/** What a form holds while it is filled in: text as it was typed, so that nothing is lost on the way. */
export type Filled = { [name: string]: string | boolean | Filled };

type Schema = Record<string, unknown>;

const INPUTS: Record<string, NonNullable<Field["input"]>> = {
  date: "date",
  time: "time",
  email: "email",
  uri: "url",
  password: "password",
};

/** The fields of a schema for an object; none if it is for something else. */
export function fieldsOf(schema: unknown): Field[] | undefined {
  if (!isObject(schema)) return undefined;
  const properties = schema.properties;
  if (!isObject(properties) || (schema.type !== undefined && typeName(schema) !== "object")) return undefined;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(properties).map(([name, inner]) =>
    fieldOf(name, isObject(inner) ? inner : {}, required.has(name)),
  );
}

function fieldOf(name: string, schema: Schema, required: boolean): Field {
  const field: Field = {
    name,
    label: typeof schema.title === "string" ? schema.title : name.replaceAll("_", " "),
    required,
    kind: "json",
  };
  if (typeof schema.description === "string") field.help = schema.description;
  if (schema.default !== undefined) field.initial = schema.default as Json;
  if (typeof schema.minimum === "number") field.least = schema.minimum;
  if (typeof schema.maximum === "number") field.most = schema.maximum;
  if (Array.isArray(schema.enum)) return { ...field, kind: "choice", choices: schema.enum as Json[] };
  if (schema.const !== undefined) return { ...field, kind: "choice", choices: [schema.const as Json] };
  const fields = fieldsOf(schema);
  if (fields) return { ...field, kind: "group", fields };
  switch (typeName(schema)) {
    case "string": {
      const format = typeof schema.format === "string" ? schema.format : "";
      const input = INPUTS[format];
      const long =
        format === "textarea" ||
        format === "markdown" ||
        (typeof schema.maxLength === "number" && schema.maxLength > 200);
      return { ...field, kind: long ? "long" : "text", ...(input ? { input } : {}) };
    }
    case "number":
      return { ...field, kind: "number" };
    case "integer":
      return { ...field, kind: "whole" };
    case "boolean":
      return { ...field, kind: "yes-no" };
    default:
      return field;
  }
}

/** `["string", "null"]` is a string that may be missing. */
function typeName(schema: Schema): string | undefined {
  if (typeof schema.type === "string") return schema.type;
  if (!Array.isArray(schema.type)) return undefined;
  const real = schema.type.filter((one) => one !== "null");
  return real.length === 1 && typeof real[0] === "string" ? real[0] : undefined;
}

/** What the form begins with: what is given, else the schema's defaults. */
export function begin(fields: Field[], given: Json | undefined): Filled {
  const filled: Filled = {};
  const have = isObject(given) ? (given as { [name: string]: Json }) : {};
  for (const field of fields) {
    const value = have[field.name] ?? field.initial;
    if (field.kind === "group") filled[field.name] = begin(field.fields ?? [], value);
    else if (field.kind === "yes-no") filled[field.name] = value === true;
    else if (value === undefined)
      filled[field.name] = field.kind === "choice" && field.required ? JSON.stringify(field.choices?.[0] ?? "") : "";
    else if (field.kind === "json" || field.kind === "choice")
      filled[field.name] = JSON.stringify(value, null, field.kind === "json" ? 2 : 0);
    else filled[field.name] = String(value);
  }
  return filled;
}

export interface Result {
  value: { [name: string]: Json };
  /** By path of the field: what is wrong with it. */
  faults: Record<string, string>;
}

/** What was filled in, as JSON. Fields that are empty and not required are left out; what the form does not know stays. */
export function finish(fields: Field[], filled: Filled, given: Json | undefined = undefined, path = ""): Result {
  const value: { [name: string]: Json } = {};
  const names = new Set(fields.map((field) => field.name));
  if (isObject(given)) {
    for (const [name, one] of Object.entries(given)) if (!names.has(name)) value[name] = one as Json;
  }
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const at = path ? `${path}.${field.name}` : field.name;
    const held = filled[field.name];
    if (field.kind === "group") {
      const before = isObject(given) ? (given[field.name] as Json | undefined) : undefined;
      const inner = finish(field.fields ?? [], typeof held === "object" ? held : {}, before, at);
      if (field.required || Object.keys(inner.value).length > 0) {
        value[field.name] = inner.value;
        Object.assign(faults, inner.faults);
      }
      continue;
    }
    if (field.kind === "yes-no") {
      if (held === true || field.required || field.initial !== undefined) value[field.name] = held === true;
      continue;
    }
    const text = typeof held === "string" ? held : "";
    if (text === "") {
      if (field.required && field.kind !== "text" && field.kind !== "long") faults[at] = "This is needed.";
      else if (field.required) value[field.name] = "";
      continue;
    }
    const read = readText(field, text);
    if (read.fault) faults[at] = read.fault;
    else value[field.name] = read.value ?? null;
  }
  return { value, faults };
}

function readText(field: Field, text: string): { value?: Json; fault?: string } {
  switch (field.kind) {
    case "number":
    case "whole": {
      const number = Number(text);
      if (!Number.isFinite(number)) return { fault: "This is not a number." };
      if (field.kind === "whole" && !Number.isInteger(number)) return { fault: "This is not a whole number." };
      if (field.least !== undefined && number < field.least) return { fault: `At least ${field.least}.` };
      if (field.most !== undefined && number > field.most) return { fault: `At most ${field.most}.` };
      return { value: number };
    }
    case "choice":
    case "json":
      return readJson(text);
    default:
      return { value: text };
  }
}

export function readJson(text: string): { value?: Json; fault?: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { fault: `This is not JSON: ${error instanceof Error ? error.message : "unreadable"}.` };
  }
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
