// The calls of a question in words: what each of them does, which values are known, and which are not yet.
import type { Call } from "./asks";
import { visible } from "./servers";

export interface ShownValue {
  /** `customer.name`, `items[0].price`; empty if the whole input is one value. */
  name: string;
  text: string;
  unknown: boolean;
}

/** Values of one call that are listed; the JSON shows all. */
export const SHOWN_VALUES = 14;
/** A list of at most this many plain values is one line. */
const LINE = 10;

/** `Sends POST https://bank.example/pay`, `Calls the tool mail.send`. */
export function sentence(call: Call): string {
  const input = typeof call.input === "object" && call.input !== null ? (call.input as Record<string, unknown>) : {};
  const text = (name: string) => (typeof input[name] === "string" ? visible(input[name]) : undefined);
  switch (call.kind) {
    case "http":
      return text("url") ? `Sends ${text("method") ?? "GET"} ${text("url")}` : "Sends an HTTP request";
    case "tool":
      return call.about ? `Calls the tool ${call.about}` : "Calls a tool";
    case "workflow":
      return call.about ? `Starts the workflow ${call.about}` : "Starts another workflow";
    case "query":
      return text("connection") ? `Queries the database ${text("connection")}` : "Queries a database";
    case "javascript":
      return "Runs code, which may call services";
    default:
      return `Runs ${call.kind || "the step"}`;
  }
}

/** What a sentence says already, by the kind of the call; and what the arguments are wrapped in. */
const SAID: Record<string, { names: string[]; wrapped?: string }> = {
  http: { names: ["url", "method"] },
  tool: { names: ["tool"], wrapped: "args." },
  workflow: { names: ["workflow"], wrapped: "input." },
  query: { names: ["connection"] },
};

/** The arguments as a flat list, without what the sentence says already. */
export function values(call: Call): ShownValue[] {
  if (call.input === undefined) return [];
  const list: ShownValue[] = [];
  walk(call.input, "", "", call.unknownParts, list);
  const { names, wrapped } = SAID[call.kind] ?? { names: [] };
  const kept = list.filter((one) => one.unknown || !names.includes(one.name));
  if (wrapped === undefined) return kept;
  return kept.map((one) => (one.name.startsWith(wrapped) ? { ...one, name: one.name.slice(wrapped.length) } : one));
}

function walk(value: unknown, name: string, pointer: string, unknown: string[], to: ShownValue[]): void {
  if (unknown.includes(pointer)) {
    to.push({ name, text: plain(value), unknown: true });
    return;
  }
  const inside = unknown.some((one) => one.startsWith(`${pointer}/`));
  if (Array.isArray(value)) {
    const simple = value.length <= LINE && value.every((one) => typeof one !== "object" || one === null);
    if (!inside && (simple || value.length === 0)) {
      to.push({ name, text: value.length === 0 ? "an empty list" : value.map(plain).join(", "), unknown: false });
      return;
    }
    value.forEach((one, at) => {
      walk(one, `${name}[${at}]`, `${pointer}/${at}`, unknown, to);
    });
    return;
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value);
    if (fields.length === 0) to.push({ name, text: "nothing", unknown: false });
    for (const [key, one] of fields) {
      const escaped = key.replaceAll("~", "~0").replaceAll("/", "~1");
      walk(one, name ? `${name}.${key}` : key, `${pointer}/${escaped}`, unknown, to);
    }
    return;
  }
  to.push({ name, text: plain(value), unknown: false });
}

function plain(value: unknown): string {
  return typeof value === "string" ? visible(value) : (JSON.stringify(value) ?? "nothing");
}
