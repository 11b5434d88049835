// The client.

import { type Config, type Where, findConfig, variable } from "./config.js";
import { ATTEMPTS, ConnectionFailed, Problem, RESUMPTIONS, StepwellError, TimedOut } from "./problem.js";
import { pause, problemOf, sleep } from "./problem.js";
import { Reader } from "./sse.js";
import { ENDED, type Json } from "./types.js";
import type { Approval, Event, Fault, Run, RunSummary, Schedule, Secret, Started, Workflow } from "./schema.js";
import type { RunStatus, WorkflowSummary } from "./schema.js";

const TIMEOUT = 30_000;
/** The server sends a comment every 15 seconds, so a stream that is silent for longer has broken. */
const SILENCE = 45_000;
/** The wait that a trigger asks for before the client watches the run instead. */
const WAIT = 30_000;

export type Definition = string | Record<string, Json>;

export interface TriggerOptions {
  /** The same key and input start only one run within 30 days. */
  idempotencyKey?: string;
  labels?: Record<string, string>;
  /** When the run begins; until then it is `scheduled`. */
  at?: Date | string;
  /** Milliseconds until the run begins; instead of `at`. */
  delay?: number;
}

/** The fields of a `cron` trigger. */
export interface NewSchedule {
  cron: string;
  timezone?: string;
  input?: Json;
  overlap?: "allow" | "skip" | "cancel";
  catch_up?: "none" | "last" | "all";
}

export interface WaitOptions {
  /** Milliseconds; `TimedOut` is thrown after them. */
  timeout?: number;
}

export interface RunFilter {
  status?: RunStatus | RunStatus[];
  workflow?: string;
  label?: Record<string, string>;
  createdBy?: string;
  since?: string;
  until?: string;
  q?: string;
  tests?: boolean;
  /** The size of a page. */
  limit?: number;
}

export interface WorkflowFilter {
  label?: Record<string, string>;
  /** Part of the name. */
  q?: string;
  /** The size of a page. */
  limit?: number;
}

export interface Answer {
  comment?: string;
  /** What the approver filled in. */
  data?: Json;
  digest?: string;
}

export interface CallOptions {
  query?: Record<string, unknown>;
  body?: Json;
}

interface Call {
  method: string;
  /** Below `/api/v1`. */
  path: string[];
  query?: object;
  headers?: Record<string, string>;
  body?: string;
  /** Whether a repeated call has the same effect as one. */
  repeatable?: boolean;
  /** How long the server may take beyond the usual timeout. */
  patience?: number;
}

/**
 * A client of a Stepwell server. `Client.find()` takes the server and the key from the environment or from the data
 * directory of a server on this machine.
 *
 * Calls that may be repeated are repeated after lost connections and temporary problems; a trigger carries an
 * idempotency key, so that it starts one run.
 */
export class Client {
  readonly config: Config;
  readonly #timeout: number;

  constructor(config: Partial<Config> & { timeout?: number } = {}) {
    const url = config.url ?? variable("STEPWELL_URL");
    if (url === undefined) {
      throw new StepwellError("no server: give a url, set STEPWELL_URL, or use Client.find()");
    }
    this.config = { url: url.replace(/\/+$/, ""), key: config.key ?? variable("STEPWELL_KEY") };
    this.#timeout = config.timeout ?? TIMEOUT;
  }

  static async find(where: Where & { timeout?: number } = {}): Promise<Client> {
    const config = await findConfig(where);
    return new Client(where.timeout === undefined ? config : { ...config, timeout: where.timeout });
  }

  // Workflows

  /** Stores a definition, as YAML, JSON or an object. With `name`, a changed one becomes the next version. */
  define(definition: Definition, options: { name?: string } = {}): Promise<WorkflowSummary> {
    const { name } = options;
    const [method, path] = name === undefined ? ["POST", ["workflows"]] : ["PUT", ["workflows", name]];
    return this.#data<WorkflowSummary>({ method, path, body: text(definition), repeatable: true });
  }

  /**
   * Throws a `Problem` whose `errors` has every fault of the definition. Stores nothing. Returns what is suspicious in
   * a definition without faults.
   */
  async check(definition: Definition): Promise<Fault[]> {
    const found = await this.#do({ method: "POST", path: ["check"], body: text(definition), repeatable: true });
    return (found as { data: { warnings: Fault[] } } | undefined)?.data.warnings ?? [];
  }

  workflow(name: string): Promise<Workflow> {
    return this.#data({ method: "GET", path: ["workflows", name], repeatable: true });
  }

  /** Its runs continue to their end. */
  async deleteWorkflow(name: string): Promise<void> {
    await this.#do({ method: "DELETE", path: ["workflows", name] });
  }

  workflows(filter: WorkflowFilter = {}): AsyncGenerator<WorkflowSummary> {
    return this.#list(["workflows"], filter);
  }

  /** The schedules of one workflow, or of all. */
  schedules(workflow?: string): Promise<Schedule[]> {
    const path = workflow === undefined ? ["schedules"] : ["workflows", workflow, "schedule"];
    return this.#data({ method: "GET", path, repeatable: true });
  }

  /** Starts the workflow again and again, with the rights of the caller. */
  addSchedule(workflow: string, schedule: NewSchedule): Promise<Schedule> {
    return this.#data({ method: "POST", path: ["workflows", workflow, "schedules"], body: JSON.stringify(schedule) });
  }

  /** Removes a schedule that was added, by its id. */
  async removeSchedule(schedule: string): Promise<void> {
    await this.#do({ method: "DELETE", path: ["schedules", schedule] });
  }

  // Runs

  /** Starts a run and returns as soon as it is on disk. */
  trigger(workflow: string, input: Json = {}, options: TriggerOptions = {}): Promise<Started> {
    return this.#data(start(workflow, input, options));
  }

  /** Starts a run and waits for its end, however it ends. */
  async run(workflow: string, input: Json = {}, options: TriggerOptions & WaitOptions = {}): Promise<Run> {
    const deadline = Date.now() + (options.timeout ?? Infinity);
    const wait = Math.min(options.timeout ?? WAIT, WAIT);
    const run = await this.#data<Run>(start(workflow, input, options, wait));
    return ENDED.has(run.status) ? run : this.#wait(run.run_id, deadline);
  }

  /** The run, once it has ended. */
  wait(run: string, options: WaitOptions = {}): Promise<Run> {
    return this.#wait(run, Date.now() + (options.timeout ?? Infinity));
  }

  async #wait(id: string, deadline: number): Promise<Run> {
    for (;;) {
      const run = await this.get(id);
      if (ENDED.has(run.status)) {
        return run;
      }
      for await (const _ of this.#events(["runs", id, "stream"], undefined, deadline)) {
        // Only the end counts.
      }
    }
  }

  get(run: string): Promise<Run> {
    return this.#data({ method: "GET", path: ["runs", run], repeatable: true });
  }

  /** All runs that match, newest first, page by page. */
  runs(filter: RunFilter = {}): AsyncGenerator<RunSummary> {
    const { createdBy, ...rest } = filter;
    return this.#list(["runs"], { ...rest, created_by: createdBy });
  }

  /**
   * The events of a run from its first, as they happen, until it ends. Resumes by itself after a lost connection,
   * without gaps or repetitions. `after` is the version after which to begin.
   */
  watch(run: string, options: { after?: number } = {}): AsyncGenerator<Event> {
    return this.#events(["runs", run, "stream"], options.after, Infinity);
  }

  cancel(run: string, reason?: string): Promise<Run> {
    return this.#post(["runs", run, "cancel"], { reason });
  }

  /** Runs again what did not succeed; with `newest`, on the newest version of the workflow. */
  retry(run: string, options: { newest?: boolean } = {}): Promise<Run> {
    return this.#post(["runs", run, "retry"], options);
  }

  // Steps that wait

  /** Open approvals, oldest first. */
  approvals(filter: { limit?: number } = {}): AsyncGenerator<Approval> {
    return this.#list(["approvals"], filter);
  }

  approve(run: string, step: string, answer: Answer = {}): Promise<Run> {
    return this.#post(["runs", run, "steps", step, "approve"], answer);
  }

  deny(run: string, step: string, answer: Answer = {}): Promise<Run> {
    return this.#post(["runs", run, "steps", step, "deny"], answer);
  }

  /** Delivers a call to a step that waits for a webhook. */
  deliver(run: string, step: string, body: Json = {}): Promise<Json> {
    return this.#post(["runs", run, "steps", step, "deliver"], body);
  }

  // Secrets

  /** All secrets, without their values. */
  secrets(): AsyncGenerator<Secret> {
    return this.#list(["secrets"], {});
  }

  /** Creates a secret, or changes its value or the hosts that it may be sent to. */
  setSecret(name: string, value?: string, options: { hosts?: string[] } = {}): Promise<Secret> {
    const body = JSON.stringify({ value, hosts: options.hosts });
    return this.#data({ method: "PUT", path: ["secrets", name], body, repeatable: true });
  }

  async deleteSecret(name: string): Promise<void> {
    await this.#do({ method: "DELETE", path: ["secrets", name] });
  }

  // All other operations

  /**
   * An operation without a method of its own: `call("POST", ["runs", run, "release"])`. Returns the whole JSON of the
   * response; what an operation returns is in `data`.
   */
  call(method: string, path: string[], options: CallOptions = {}): Promise<any> {
    const verb = method.toUpperCase();
    const call: Call = { method: verb, path, query: options.query ?? {}, repeatable: verb === "GET" };
    if (options.body !== undefined) {
      call.body = JSON.stringify(options.body);
    }
    return this.#do(call);
  }

  // How calls are made

  #post<T>(path: string[], body: Json): Promise<T> {
    return this.#data({ method: "POST", path, body: JSON.stringify(body) });
  }

  async #data<T>(call: Call): Promise<T> {
    return ((await this.#do(call)) as { data: T }).data;
  }

  async #do(call: Call): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#once(call);
      } catch (error) {
        const again = error instanceof ConnectionFailed || (error instanceof Problem && error.isTemporary);
        if (!again || call.repeatable !== true || attempt >= ATTEMPTS) {
          throw error;
        }
        await sleep(pause(attempt, error instanceof Problem ? error : undefined));
      }
    }
  }

  async #once(call: Call): Promise<unknown> {
    const signal = AbortSignal.timeout(this.#timeout + (call.patience ?? 0));
    const response = await this.#fetch(call, signal);
    if (!response.ok) {
      throw await problemOf(response);
    }
    try {
      const body = await response.text();
      return body === "" ? undefined : JSON.parse(body);
    } catch (error) {
      throw this.#lost(error);
    }
  }

  async #fetch(call: Call, signal: AbortSignal): Promise<Response> {
    const path = address(call);
    const headers: Record<string, string> = { ...call.headers };
    if (this.config.key !== undefined) {
      headers["authorization"] = `Bearer ${this.config.key}`;
    }
    const init: RequestInit = { method: call.method, headers, signal };
    if (call.body !== undefined) {
      init.body = call.body;
    }
    try {
      return await fetch(`${this.config.url}${path}`, init);
    } catch (error) {
      throw this.#lost(error);
    }
  }

  #lost(error: unknown): ConnectionFailed {
    const why = error instanceof Error ? ((error.cause as Error | undefined)?.message ?? error.message) : String(error);
    return new ConnectionFailed(`${this.config.url}: ${why}`, { cause: error });
  }

  async *#list<T>(path: string[], filter: object): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const asked = cursor === undefined ? filter : { ...filter, cursor };
      const page = (await this.#do({ method: "GET", path, query: asked, repeatable: true })) as {
        data: T[];
        next?: string | null;
      };
      yield* page.data;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  async *#events(path: string[], after: number | undefined, deadline: number): AsyncGenerator<Event> {
    const reader = new Reader();
    for (let attempt = 0; !reader.isOver; ) {
      try {
        for await (const event of this.#stream(path, after, reader, deadline)) {
          attempt = 0;
          yield event;
        }
        if (reader.isOver) {
          return;
        }
      } catch (error) {
        attempt += 1;
        const again = error instanceof ConnectionFailed || (error instanceof Problem && error.isTemporary);
        if (!again || attempt >= RESUMPTIONS) {
          throw error;
        }
        await sleep(pause(attempt, error instanceof Problem ? error : undefined));
      }
      reader.reset();
    }
  }

  /** One connection of a stream. */
  async *#stream(path: string[], after: number | undefined, reader: Reader, deadline: number): AsyncGenerator<Event> {
    const connection = new AbortController();
    let timer = setTimeout(() => connection.abort(), this.#timeout);
    const alive = () => {
      clearTimeout(timer);
      const left = Math.min(SILENCE, deadline - Date.now());
      if (left <= 0) {
        throw new TimedOut("the run has not ended in time");
      }
      timer = setTimeout(() => connection.abort(), left);
    };
    try {
      alive();
      const query = after !== undefined && reader.last === undefined ? { after: String(after) } : {};
      const response = await this.#fetch({ method: "GET", path, query, headers: reader.headers() }, connection.signal);
      if (response.status === 204) {
        reader.isOver = true;
        return;
      }
      if (!response.ok || response.body === null) {
        throw await problemOf(response);
      }
      for await (const chunk of chunks(response.body, (error) => this.#lost(error))) {
        yield* reader.read(chunk);
        if (reader.isOver) {
          return;
        }
        alive();
      }
    } catch (error) {
      if (error instanceof ConnectionFailed && Date.now() >= deadline) {
        throw new TimedOut("the run has not ended in time");
      }
      throw error;
    } finally {
      clearTimeout(timer);
      connection.abort();
    }
  }
}

async function* chunks(body: ReadableStream<Uint8Array>, lost: (error: unknown) => Error): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    let part: ReadableStreamReadResult<Uint8Array>;
    try {
      part = await reader.read();
    } catch (error) {
      throw lost(error);
    }
    if (part.done) {
      return;
    }
    yield decoder.decode(part.value, { stream: true });
  }
}

function start(workflow: string, input: Json, options: TriggerOptions, wait?: number): Call {
  const asked = {
    label: options.labels,
    wait: wait === undefined ? undefined : `${Math.ceil(wait)}ms`,
    at: options.at instanceof Date ? options.at.toISOString() : options.at,
    delay: options.delay === undefined ? undefined : `${Math.ceil(options.delay)}ms`,
  };
  return {
    method: "POST",
    path: ["workflows", workflow, "trigger"],
    query: asked,
    // A trigger always has a key, so that it can be repeated after a lost answer.
    headers: { "idempotency-key": options.idempotencyKey ?? `sdk-${random()}` },
    body: JSON.stringify(input),
    repeatable: true,
    patience: wait ?? 0,
  };
}

/** A random name. `crypto.randomUUID` is missing on pages that came over plain HTTP. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function address({ path, query: given = {} }: Call): string {
  // Parsing of the URL would normalise these segments away.
  const odd = path.find((part) => ["", ".", ".."].includes(part));
  if (odd !== undefined) {
    throw new StepwellError(`${JSON.stringify(odd)} is not a valid name`);
  }
  const parameters = new URLSearchParams(query(given)).toString();
  return `/api/v1/${path.map(encodeURIComponent).join("/")}${parameters && "?"}${parameters}`;
}

function text(definition: Definition): string {
  return typeof definition === "string" ? definition : JSON.stringify(definition);
}

function query(given: object): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) {
      continue;
    }
    if (Array.isArray(value)) {
      found[name] = value.join(",");
    } else if (typeof value === "object") {
      const pairs = Object.entries(value as Record<string, string>).map(([key, label]) => `${key}=${label}`);
      const odd = pairs.find((pair) => pair.includes(","));
      if (odd !== undefined) {
        throw new StepwellError(`the label ${odd} contains a comma`);
      }
      if (pairs.length > 0) {
        found[name] = pairs.join(",");
      }
    } else {
      found[name] = String(value);
    }
  }
  return found;
}
