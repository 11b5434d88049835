// What the API returns. Servers may add fields and leave others out.

export type Json = unknown;

export type RunStatus =
  | "scheduled"
  | "queued"
  | "running"
  | "paused"
  | "completed"
  | "failed"
  | "cancelled"
  | "timeout";

/** The statuses of a run that has ended. It can still be retried. */
export const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "timeout"]);

export interface ErrorView {
  code: string;
  message: string;
}

/** What an unfinished run waits for. */
export interface Waiting {
  step: string;
  for: string;
  since: string;
  until?: string | null;
  moved_on_by?: string;
}

export interface Step {
  id: string;
  kind: string;
  status: string;
  status_code?: number | null;
  attempt: number;
  duration_ms?: number | null;
  started_at?: string | null;
  finished_at?: string | null;
  input?: any;
  output?: any;
  error?: ErrorView | null;
}

export interface Run {
  id: string;
  workflow_id: string;
  workflow: string;
  workflow_version: number;
  status: RunStatus;
  created_by: string;
  created_at: string;
  started_at?: string | null;
  finished_at?: string | null;
  input?: any;
  output?: any;
  error?: ErrorView | null;
  waiting_for?: Waiting[];
  tasks?: Record<string, Step>;
  labels?: Record<string, string>;
  generation: number;
  version: number;
}

/** A run that a trigger started, or found under its idempotency key. */
export interface Started {
  run_id: string;
  workflow_id: string;
  workflow: string;
  workflow_version: number;
  status: RunStatus;
  started_at?: string;
  scheduled_for?: string;
}

export interface Workflow {
  id: string;
  name: string;
  version: number;
  description?: string | null;
  enabled?: boolean;
  labels?: Record<string, string>;
  definition?: Json;
  webhooks?: string[];
}

/** A gate that waits for people. */
export interface Approval {
  id: string;
  run_id: string;
  step: string;
  workflow: string;
  asks: any;
  digest?: string | null;
  since: string;
  until?: string | null;
  kind: string;
  mine: boolean;
}

export interface Schedule {
  id: string;
  workflow: string;
  cron?: string | null;
  timezone?: string | null;
  by?: string;
  next: string[];
  last?: string | null;
  last_run_id?: string | null;
  last_error?: string | null;
}

/** A secret without its value. */
export interface Secret {
  id: string;
  name: string;
  hosts: string[];
  version: number;
  masked: boolean;
}

/** An entry of a run's log; `end` comes last, with the status of the run. */
export interface Event {
  run_id: string;
  version: number;
  type: string;
  at?: string;
  step?: string;
  status?: string;
  [field: string]: unknown;
}
