// All calls to the server: a small typed fetch. Failures are thrown as `Problem`, with the server's message.
import type { components } from "./schema";

export type Schemas = components["schemas"];
export type ProblemView = Schemas["Problem"];
/** Places are for people here, so the pointer is not kept. */
export type Fault = Omit<Schemas["Fault"], "pointer">;

/** A failure with its message. `status` 0 means that the server could not be reached. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly faults: Fault[];
  readonly warnings: Fault[];
  readonly requestId: string | undefined;
  readonly statusNow: string | undefined;

  constructor(view: { status: number; code: string; detail: string } & Partial<Omit<ProblemView, "code">>) {
    super(view.detail);
    this.name = "Problem";
    this.status = view.status;
    this.code = view.code;
    this.faults = view.errors ?? [];
    this.warnings = view.warnings ?? [];
    this.requestId = view.request_id ?? undefined;
    this.statusNow = view.status_now ?? undefined;
  }
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Query = Record<string, string | number | boolean | undefined | null>;

export interface Ask {
  method?: Method;
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is: a definition. */
  text?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Called once whenever the server does not recognise the session. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export function address(path: string, query: Query = {}): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") parts.set(name, String(value));
  }
  const text = parts.toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

/** Sends a request and returns the raw response, for callers that need its headers. */
export async function ask(path: string, what: Ask = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...what.headers };
  let body: string | undefined = what.text;
  if (what.body !== undefined) {
    body = JSON.stringify(what.body);
    headers["Content-Type"] = "application/json";
  }
  let answer: Response;
  try {
    answer = await fetch(address(path, what.query), {
      method: what.method ?? "GET",
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body }),
      ...(what.signal ? { signal: what.signal } : {}),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({ status: 0, code: "unreachable", detail: "The server does not respond. Is it still running?" });
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  if (problem.status === 401) onSignedOut();
  throw problem;
}

async function problemOf(answer: Response): Promise<Problem> {
  const id = answer.headers.get("x-request-id") ?? undefined;
  try {
    const view = (await answer.json()) as ProblemView;
    return new Problem({ ...view, status: answer.status, request_id: view.request_id ?? id ?? null });
  } catch {
    const detail = `The server responded with ${answer.status} and no reason.`;
    return new Problem({ status: answer.status, code: "unknown", detail, request_id: id ?? null });
  }
}

/** Sends a request and returns `data` of the response; undefined if there is no body. */
export async function api<T>(path: string, what: Ask = {}): Promise<T> {
  const answer = await ask(path, what);
  if (answer.status === 204) return undefined as T;
  return ((await answer.json()) as { data: T }).data;
}

export interface Page<T> {
  data: T[];
  next?: string | null;
}

export async function page<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Page<T>> {
  const answer = await ask(path, { query, ...(signal ? { signal } : {}) });
  return (await answer.json()) as Page<T>;
}

/** An escaped part of a path: names may contain any character. */
export function part(text: string): string {
  return encodeURIComponent(text);
}
