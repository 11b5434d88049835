// Errors of the API and of the way to it.

import type { Fault } from "./schema.js";

/** Everything that this package throws for a reason outside of the caller's code. */
export class StepwellError extends Error {
  override name = "StepwellError";
}

/** The server could not be reached, or the connection was lost. The outcome of the call is unknown. */
export class ConnectionFailed extends StepwellError {
  override name = "ConnectionFailed";
}

/** The run has not ended in time. It continues. */
export class TimedOut extends StepwellError {
  override name = "TimedOut";
}

export interface ProblemBody {
  code?: string;
  detail?: string;
  title?: string;
  request_id?: string;
  status_now?: string;
  errors?: Fault[];
  warnings?: Fault[];
}

/** An error that the server returned (RFC 9457). `code` is stable; `detail` is for people. */
export class Problem extends StepwellError {
  override name = "Problem";
  readonly code: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  /** The state of the run, if the call came too late. */
  readonly statusNow: string | undefined;
  readonly errors: Fault[];
  /** What is suspicious in a definition beside its errors. */
  readonly warnings: Fault[];

  constructor(
    readonly status: number,
    body: ProblemBody,
    /** Seconds. */
    readonly retryAfter?: number,
  ) {
    const detail = body.detail || body.title || `status ${status}`;
    const code = body.code ?? "unknown";
    const errors = body.errors ?? [];
    const lines = errors.map((fault) => (fault.path ? `${fault.path}: ${fault.message}` : fault.message));
    const shown = lines.filter((line) => !detail.includes(line)).map((line) => `\n  ${line}`);
    super(`${detail} [${code}]${shown.join("")}`);
    this.code = code;
    this.detail = detail;
    this.requestId = body.request_id;
    this.statusNow = body.status_now;
    this.errors = errors;
    this.warnings = body.warnings ?? [];
  }

  /** Whether the same call may succeed later without a change. */
  get isTemporary(): boolean {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  let body: ProblemBody = {};
  try {
    const found: unknown = JSON.parse(text);
    body = found !== null && typeof found === "object" ? (found as ProblemBody) : {};
  } catch {
    // Not from Stepwell, but from something on the way to it.
  }
  const after = response.headers.get("retry-after");
  const seconds = after !== null && /^\d+$/.test(after) ? Number(after) : undefined;
  return new Problem(response.status, { detail: text.slice(0, 200), ...body }, seconds);
}

/** Attempts of a call that may be repeated, the first included. */
export const ATTEMPTS = 5;
/** Attempts to resume a stream: about a minute. */
export const RESUMPTIONS = 16;

/** Milliseconds to wait before the next attempt. */
export function pause(attempt: number, found?: Problem): number {
  return found?.retryAfter === undefined ? Math.min(200 * 2 ** attempt, 5_000) : Math.min(found.retryAfter, 60) * 1_000;
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
