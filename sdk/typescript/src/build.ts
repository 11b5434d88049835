/**
 * Workflows in code: steps as values, references to their results as templates.
 *
 * ```ts
 * const order = new Workflow("order");
 * const body = { order: order.input.order_id };
 * const charge = order.http("charge", "https://pay.example/charges", { body, retries: 3 });
 * const ask = order.approval("ask", { message: `Ship ${charge.body.id}?`, timeout: "2d" });
 * order.tool("ship", "ship_order", { payment: charge.body.id }, { needs: [ask] });
 * order.output = { payment: charge.body.id };
 * console.log(order.toYaml());
 * ```
 *
 * What a step reads, it needs: `needs` is for steps whose results it does not read.
 */

import { StepwellError } from "./problem.js";
import type { Json } from "./types.js";

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const READ = /\btasks(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\["((?:[^"\\]|\\.)*)"\])/g;
const TEXT = Symbol("text");
const NAME = Symbol("name");

/** A step reads or needs one that is not there, or two have the same name. */
export class BuildError extends StepwellError {
  override name = "BuildError";
}

/** A value that is known when the workflow runs: `charge.body.id` becomes `{{tasks.charge.body.id}}`. */
export interface Ref {
  readonly [TEXT]: string;
  readonly [NAME]?: string;
  // A field of the value may have any name, `toString` included, which makes the template.
  readonly [field: string]: any;
  readonly [index: number]: Ref;
}

/** An expression that is true or false. */
export class Condition {
  constructor(private readonly text: string) {}

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }
}

/** A reference to what an expression gives. */
export function ref(text: string, name?: string): Ref {
  const target = { [TEXT]: text, [NAME]: name };
  return new Proxy(target, {
    get(_, key) {
      if (key === TEXT) {
        return text;
      }
      if (key === NAME) {
        return name;
      }
      if (key === "toString" || key === "toJSON" || key === Symbol.toPrimitive) {
        return () => `{{${text}}}`;
      }
      // A promise would be awaited, a list iterated: neither is known yet.
      if (typeof key === "symbol" || key === "then") {
        return undefined;
      }
      if (/^\d+$/.test(key)) {
        return ref(`${text}[${key}]`);
      }
      return ref(PLAIN.test(key) ? `${text}.${key}` : `${text}[${JSON.stringify(key)}]`);
    },
  }) as unknown as Ref;
}

/** The value, or another if it is missing or null. */
export function orElse(value: Ref, otherwise: Json): Ref {
  return ref(`${value[TEXT]} ?? ${literal(otherwise)}`);
}

const compared = (operator: string) => (left: Ref, right: Json) => {
  const text = left[TEXT].includes("??") ? `(${left[TEXT]})` : left[TEXT];
  return new Condition(`${text} ${operator} ${literal(right)}`);
};

export const eq = compared("==");
export const ne = compared("!=");
export const lt = compared("<");
export const le = compared("<=");
export const gt = compared(">");
export const ge = compared(">=");
export const and = (...all: Condition[]) => new Condition(all.map((one) => `(${one})`).join(" && "));
export const or = (...all: Condition[]) => new Condition(all.map((one) => `(${one})`).join(" || "));
export const not = (one: Condition) => new Condition(`!(${one})`);

export type Fields = Record<string, unknown>;

export interface StepOptions extends Fields {
  needs?: (Ref | string)[];
  if?: Condition | string;
}

/** A map of steps: those of a workflow, or of the body of a `for_each`. */
export class Steps {
  /** The input of the run. */
  readonly input = ref("input");
  /** What started the run. */
  readonly trigger = ref("trigger");
  /** In the body of a `for_each`: the item and its position. */
  readonly item = ref("item");
  readonly index = ref("index");
  readonly #steps = new Map<string, Fields>();

  /** A step of any kind, with the fields of docs/definitions.md. */
  step(name: string, options: StepOptions): Ref {
    if (this.#steps.has(name)) {
      throw new BuildError(`two steps are named ${JSON.stringify(name)}`);
    }
    const { needs = [], ...fields } = options;
    const named = needs.map((need) => (typeof need === "string" ? need : (need[NAME] ?? String(need))));
    this.#steps.set(name, { ...defined(fields), needs: named });
    const path = ref("tasks")[name] as Ref;
    return ref(path[TEXT], name);
  }

  http(name: string, url: string | Ref, options: StepOptions = {}): Ref {
    return this.step(name, { url, ...options });
  }

  tool(name: string, tool: string, args?: Fields, options: StepOptions = {}): Ref {
    return this.step(name, { tool, args, ...options });
  }

  javascript(name: string, code: string, options: StepOptions = {}): Ref {
    return this.step(name, { javascript: code, ...options });
  }

  query(name: string, query: { connection: string; sql: string; params?: Json }, options: StepOptions = {}): Ref {
    return this.step(name, { query: { ...query }, ...options });
  }

  sleep(name: string, length: string | number | Ref, options: StepOptions = {}): Ref {
    return this.step(name, { sleep: length, ...options });
  }

  waitForWebhook(name: string, options: StepOptions & { timeout?: string } = {}): Ref {
    const { timeout, ...rest } = options;
    return this.step(name, { wait_for_webhook: timeout === undefined ? true : { timeout }, ...rest });
  }

  /** A gate; its fields are those of an approval, such as `message`, `approvers` and `timeout`. */
  approval(name: string, approval: Fields = {}, options: StepOptions = {}): Ref {
    return this.step(name, { approval: Object.keys(approval).length > 0 ? approval : true, ...options });
  }

  /** Starts another workflow and waits for its end. */
  workflow(name: string, workflow: string, input?: Json, options: StepOptions = {}): Ref {
    return this.step(name, { workflow, input, ...options });
  }

  /** Runs the steps that `body` adds for each item. */
  forEach(name: string, items: Ref | Json[], body: (steps: Steps) => void, options: StepOptions = {}): Ref {
    const inner = new Steps();
    body(inner);
    return this.step(name, { for_each: items, tasks: inner, ...options });
  }

  /** A step by its name. */
  get(name: string): Ref {
    if (!this.#steps.has(name)) {
      throw new BuildError(`there is no step ${JSON.stringify(name)}`);
    }
    return ref((ref("tasks")[name] as Ref)[TEXT], name);
  }

  /** @internal */
  fill(tasks: Record<string, Fields>): void {
    for (const [name, task] of Object.entries(tasks)) {
      const { needs, tasks: body, ...fields } = task;
      const listed = typeof needs === "string" ? [needs] : Array.isArray(needs) ? needs : [];
      const step: Fields = { ...fields, needs: listed };
      if (body !== undefined) {
        const inner = new Steps();
        inner.fill(body as Record<string, Fields>);
        step["tasks"] = inner;
      }
      this.#steps.set(name, step);
    }
  }

  /** @internal */
  written(around: ReadonlySet<string> = new Set()): Record<string, Fields> {
    const known = new Set(this.#steps.keys());
    const all = new Set([...around, ...known]);
    const tasks: Record<string, Fields> = {};
    for (const [name, step] of this.#steps) {
      const { needs, tasks: body, ...rest } = step;
      const fields = plain(rest) as Fields;
      let inner = new Set<string>();
      if (body instanceof Steps) {
        inner = new Set(body.#steps.keys());
        fields["tasks"] = body.written(all);
      }
      const reads = read(fields).filter((found) => !inner.has(found));
      const wanted = [...new Set([...(needs as string[]), ...reads])];
      const missing = wanted.find((need) => !all.has(need));
      if (missing !== undefined) {
        throw new BuildError(`step ${JSON.stringify(name)} reads ${JSON.stringify(missing)}, which is not there`);
      }
      const own = wanted.filter((need) => known.has(need));
      tasks[name] = own.length > 0 ? { needs: own, ...fields } : fields;
    }
    return tasks;
  }

  /** @internal */
  has(name: string): boolean {
    return this.#steps.has(name);
  }
}

/** A workflow in the tasks dialect. `fields` are the common fields of docs/definitions.md. */
export class Workflow extends Steps {
  /** The result of the run. */
  output: Json;
  readonly #fields: Fields;

  constructor(
    readonly name: string,
    fields: Fields = {},
  ) {
    super();
    const { output, ...rest } = fields;
    this.output = output;
    this.#fields = defined(rest);
  }

  /**
   * A definition in the tasks dialect: `(await client.workflow(name)).definition`, or what a parser of YAML returned.
   * `workflow.get("charge")` is a step of it.
   */
  static load(definition: Json): Workflow {
    const { name, tasks, ...fields } = (definition ?? {}) as Fields;
    if (typeof name !== "string" || tasks === null || typeof tasks !== "object") {
      throw new BuildError("this is not a definition in the tasks dialect");
    }
    const workflow = new Workflow(name, fields);
    workflow.fill(tasks as Record<string, Fields>);
    return workflow;
  }

  /** The definition, for `Client.define` and `simulate`. */
  toJSON(): Record<string, Json> {
    const definition: Record<string, Json> = { name: this.name, ...(plain(this.#fields) as Fields) };
    definition["tasks"] = this.written();
    if (this.output !== undefined) {
      definition["output"] = plain(this.output);
      const missing = read(definition["output"]).find((found) => !this.has(found));
      if (missing !== undefined) {
        throw new BuildError(`the output reads ${JSON.stringify(missing)}, which is not there`);
      }
    }
    return definition;
  }

  /** The definition as YAML. */
  toYaml(): string {
    return [...yaml(this.toJSON(), "")].join("");
  }
}

function defined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/** References and conditions as text, in any value. */
function plain(value: unknown): Json {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

function literal(value: Json): string {
  const text = (value as Ref | null | undefined)?.[TEXT];
  return typeof text === "string" ? text : JSON.stringify(value);
}

/** The steps that expressions in a value read. */
function read(value: Json): string[] {
  if (typeof value === "string") {
    return [...value.matchAll(/\{\{(.*?)\}\}/gs)].flatMap((found) => names(found[1]));
  }
  if (Array.isArray(value)) {
    return value.flatMap(read);
  }
  if (value !== null && typeof value === "object") {
    return Object.entries(value).flatMap(([key, inner]) => (key === "if" ? names(inner) : read(inner)));
  }
  return [];
}

function names(expression: Json): string[] {
  const found = typeof expression === "string" ? [...expression.matchAll(READ)] : [];
  return found.map(([, name, quoted]) => name ?? (JSON.parse(`"${quoted}"`) as string));
}

const WORDS = new Set(["true", "false", "null", "yes", "no", "on", "off", "y", "n"]);
const BARE = /^[A-Za-z/][A-Za-z0-9_/. -]*[A-Za-z0-9_/]$/;

/** Block style; keys and texts in quotes where YAML would read something else. */
function* yaml(value: Record<string, Json>, indent: string): Generator<string> {
  for (const [key, inner] of Object.entries(value)) {
    const name = PLAIN.test(key) && !WORDS.has(key.toLowerCase()) ? key : JSON.stringify(key);
    const isMap = inner !== null && typeof inner === "object" && !Array.isArray(inner);
    if (isMap && Object.keys(inner).length > 0) {
      yield `${indent}${name}:\n`;
      yield* yaml(inner as Record<string, Json>, `${indent}  `);
    } else {
      const bare = typeof inner === "string" && BARE.test(inner) && !WORDS.has(inner.toLowerCase());
      yield `${indent}${name}: ${bare ? inner : JSON.stringify(inner)}\n`;
    }
  }
}
