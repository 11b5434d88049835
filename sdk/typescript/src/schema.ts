// Made by scripts/sdk_types.py from the description of the API. Not edited by hand.

/** An instant, written as `2026-02-22T10:00:00Z`. */
export type Instant = string;

/** Kind of a step. `start` is only in graphs. */
export type StepKind =
  | "start"
  | "http"
  | "tool"
  | "javascript"
  | "query"
  | "pass"
  | "condition"
  | "end"
  | "sleep"
  | "wait_for_webhook"
  | "approval"
  | "workflow"
  | "for_each"
  | "loop";

/** A call that an answer allows or leads to. */
export interface AskedCall {
  /** The call is also made if it is approved. */
  also_if_approved?: boolean;
  /** Binds the approval to exactly this call; only if the call is covered. */
  digest?: string;
  /** The arguments, as far as they are known. */
  input?: any;
  kind: StepKind;
  /** The call depends on results that are not known yet, so it is not covered. */
  not_yet_known?: boolean;
  /** Path of the step. */
  step: string;
  /** The arguments are too long to be shown, so the call is not covered. */
  too_large_to_show?: boolean;
  tool?: string;
  /** JSON Pointers to the unknown parts of the arguments. */
  unknown?: string[];
  workflow?: string;
}

/** A held call as it was before an approver changed it. */
export interface EarlierCall {
  /** Who changed it. */
  by: string;
  digest: string;
  input: any;
}

/** A JSON Schema, usually of an object whose properties are the fields of a form. */
export interface Form {
  description?: string;
  /** Schemas by the name of the field. */
  properties?: Record<string, Record<string, any>>;
  required?: string[];
  title?: string;
  type?: string;
}

export type OnTimeout = "approve" | "deny";

/** What a gate or a held call asks. Of a verdict: the input of the call, with fields of its own. */
export interface Question {
  /** Whether an approval may change the call. */
  allow_changes?: boolean;
  /** Whether the user who started the run may answer. */
  allow_self?: boolean;
  /** Users or roles who may answer; if there are none, everyone with the right. */
  approvers?: string[];
  asked_at?: Instant;
  /** The calls that an approval allows. */
  calls?: AskedCall[];
  /** What the call was before approvers changed it, oldest first. */
  changed?: EarlierCall[];
  digest?: string;
  /** Users or roles who may answer as well once it has escalated. */
  escalate_to?: string[];
  /** JSON Schema of the data to give with an approval. */
  form?: Form;
  message?: string;
  /** Number of further calls, which are not covered. */
  more_calls?: number;
  more_on_denial?: number;
  /** The calls that may follow a denial. */
  on_denial?: AskedCall[];
  /** What happens without an answer in time. */
  on_timeout?: OnTimeout;
  /** The policy that holds the call. */
  policy?: string;
  /** The MCP server that asks. */
  server?: string;
  /** The tool that asks. */
  tool?: string;
}

/** An approval, or a verdict on a call that may have happened. */
export type ApprovalKind = "approval" | "verdict";

/** A gate that waits for a person. */
export interface Approval {
  /** Number of approvals required. */
  approvals?: number;
  /** Who has approved so far, if several approvals are required. */
  approved_by?: string[];
  /** Who asked for the run, in words: the user, or an agent's key with its user and what its client calls itself. */
  asked_by: string;
  /**
   * The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
   * denial (`on_denial`).
   */
  asks: Question;
  attempt: number;
  created_by: string;
  /** Digest of everything shown. An answer refers to it. */
  digest?: string | null;
  /** Whether it has been escalated. */
  escalated?: boolean;
  /** When `escalate_to` are asked as well, unless it is answered before. */
  escalates_at?: Instant | null;
  /** For `POST /api/v1/steps/{id}/ready`. */
  id: string;
  kind: ApprovalKind;
  /** Whether you may answer it. */
  mine: boolean;
  /** What happens then: approve or deny. Null if it waits as long as the run lasts. */
  on_timeout?: OnTimeout | null;
  run_id: string;
  since: Instant;
  step: string;
  /** When it is decided without an answer. */
  until?: Instant | null;
  version?: number;
  /** Why it may not reach anyone who can answer it. */
  warnings?: string[];
  workflow: string;
}

export interface StepError {
  code: string;
  message: string;
}

export interface ParentStep {
  run_id: string;
  step: string;
}

/** How a run was started. `run` is a step of another run. */
export type StartedHow = "request" | "schedule" | "webhook" | "run" | "test";

/** The key that started a run. */
export interface StartedWith {
  /** It is an agent's key. */
  agent: boolean;
  id: string;
  name?: string;
}

/** Who or what started a run. */
export interface StartedBy {
  /** What the MCP client calls itself. */
  client?: string;
  how: StartedHow;
  /** The API key that was used, if any. */
  key?: StartedWith;
  /** Id of the schedule. */
  schedule?: string;
  user: string;
}

/** Status of a run. `completed`, `failed`, `cancelled` and `timeout` are final. */
export type RunStatus =
  | "scheduled"
  | "queued"
  | "running"
  | "paused"
  | "completed"
  | "failed"
  | "cancelled"
  | "timeout";

/** An approval of a call that a policy held. */
export interface GivenApproval {
  by?: string;
  comment?: string | null;
  data?: any;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A line written by code. */
export interface LogLine {
  level: LogLevel;
  text: string;
}

/** Why an attempt did not succeed: its process ended, it took too long, rights or a policy refused it, or it failed. */
export type AttemptReason = "lost" | "timeout" | "refused" | "failed";

/** Status of an attempt: that of the step at the time, or `lost` if its process ended before it reported. */
export type AttemptStatus =
  | "pending"
  | "running"
  | "sleeping"
  | "waiting"
  | "success"
  | "failed"
  | "timeout"
  | "denied"
  | "template_error"
  | "skipped"
  | "cancelled"
  | "lost";

export interface Attempt {
  attempt: number;
  /** The run that it started. */
  child_run_id?: string;
  duration_ms?: number;
  error?: StepError | null;
  finished_at?: Instant | null;
  /** Headers of the response. */
  headers?: Record<string, string>;
  log?: LogLine[];
  output?: any;
  /** Why it did not succeed: lost (its process died), timeout, refused (by rights or a policy) or failed. */
  reason?: AttemptReason;
  started_at: Instant;
  status: AttemptStatus;
  status_code?: number;
}

/** A held call that an approver changed. */
export interface ChangedCall {
  by?: string;
  /** The input that the definition gave it. */
  from?: any;
}

/** Status of a step. */
export type StepStatus =
  | "pending"
  | "running"
  | "sleeping"
  | "waiting"
  | "success"
  | "failed"
  | "timeout"
  | "denied"
  | "template_error"
  | "skipped"
  | "cancelled";

export interface Step {
  /** Who has approved a call that a policy held. The answers to a gate are in its output. */
  approvals?: GivenApproval[];
  attempt: number;
  /** All attempts, oldest first; only if there were several. */
  attempts?: Attempt[];
  /** The URL that ends its wait; only for callers who may deliver. */
  callback_url?: string;
  /** An approver changed the held call: `input` is what it was made with. */
  changed?: ChangedCall;
  /** The run that its last attempt started. */
  child_run_id?: string;
  duration_ms?: number | null;
  error?: StepError | null;
  finished_at?: Instant | null;
  /** Headers of the response. */
  headers?: Record<string, string>;
  /** For `POST /api/v1/steps/{id}/ready`. */
  id: string;
  input?: any;
  /**
   * Its input, output, log and the results of its attempts are left out, because the answer would be too large: `GET
   * /runs/{run}/steps` has them.
   */
  is_omitted?: boolean;
  /** The output was longer than 256 KB and is stored truncated. */
  is_truncated?: boolean;
  kind: StepKind;
  /** The lines that the step's code wrote with `console`. */
  log?: LogLine[];
  output?: any;
  started_at?: Instant | null;
  status: StepStatus;
  status_code?: number | null;
}

/**
 * What a run or a step waits for. `start` is the time of a scheduled run, `turn` is the next transition of the run;
 * `quarantine` ends when a person releases or cancels the run; `unreadable` when one cancels it.
 */
export type WaitingReason =
  | "start"
  | "queue"
  | "executor"
  | "retry"
  | "sleep"
  | "webhook"
  | "approval"
  | "verdict"
  | "child"
  | "turn"
  | "quarantine"
  | "unreadable";

export interface Waiting {
  for: WaitingReason;
  /** Why the last attempt failed, or what the called service says about its progress. */
  message?: string | null;
  /** Who or what can make it continue. */
  moved_on_by: string;
  since?: Instant | null;
  /** Path of the step; empty for the run itself. */
  step: string;
  /** When it continues by itself. */
  until?: Instant | null;
}

/** A problem that does not stop the run. */
export interface Warning {
  message: string;
  /** Path of the step. */
  step: string;
}

/** A run in full. */
export interface Run {
  created_at: Instant;
  created_by: string;
  /** When its payloads were erased on request. */
  erased_at?: Instant | null;
  error?: StepError | null;
  /** When it times out, or would have: `max_duration` after its start or its last retry. */
  expires_at?: Instant;
  finished_at?: Instant | null;
  /** Increases with each retry of the run. */
  generation: number;
  /** Deprecated. The same as `run_id`. */
  id: string;
  input: any;
  labels: Record<string, string>;
  output?: any;
  /** The step of another run that started it, as long as that run exists. */
  parent?: ParentStep;
  /** The user who retried it last. */
  retried_by?: string;
  run_id: string;
  /** When it begins or began, if it was scheduled. */
  scheduled_for?: Instant;
  started_at?: Instant | null;
  /** Who or what started it. */
  started_by?: StartedBy;
  status: RunStatus;
  /** By name; steps inside loops by path, such as `each[3].charge`. */
  tasks: Record<string, Step>;
  /** The cursor of the further steps in `GET /runs/{run}/steps`: `tasks` has the first 1,000. */
  tasks_next?: string;
  test?: boolean;
  /** Increases with every change of the run. */
  version: number;
  /** What an unfinished run waits for; empty if it has finished. */
  waiting_for: Waiting[];
  /** Why its open approvals may not reach anyone who can answer them. */
  warnings?: Warning[];
  workflow: string;
  /** The workflow was deleted since. */
  workflow_deleted_at?: Instant;
  workflow_id: string;
  workflow_version: number;
}

/** A run as lists show it. */
export interface RunSummary {
  /** Started by a step of another run. */
  child: boolean;
  created_at: Instant;
  created_by: string;
  finished_at?: Instant | null;
  /** Deprecated. The same as `run_id`. */
  id: string;
  labels: Record<string, string>;
  run_id: string;
  /** When a scheduled run begins. */
  scheduled_for?: Instant;
  started_at?: Instant | null;
  status: RunStatus;
  workflow: string;
  /** The workflow was deleted since. */
  workflow_deleted_at?: Instant;
  workflow_id: string;
  workflow_version: number;
}

/** A schedule and its next ticks. */
export interface Schedule {
  /** The user who added it with a request, and whose rights its runs have. Missing for triggers of the definition. */
  by?: string;
  /** None for a one-time schedule. */
  cron?: string | null;
  id: string;
  last?: Instant | null;
  /** Why the last tick started no run. */
  last_error?: string | null;
  last_run_id?: string | null;
  /** Up to ten. */
  next: Instant[];
  timezone?: string | null;
  workflow: string;
}

/** A secret. Its value is never shown. */
export interface Secret {
  changed_at: Instant;
  changed_by: string;
  created_at: Instant;
  /** Hosts it may be sent to; any host if empty. */
  hosts: string[];
  id: string;
  /** Whether it is masked in responses of services. Values shorter than 8 characters are not. */
  masked: boolean;
  name: string;
  /** The master key that seals it. */
  sealed_with: string;
  /** Number of values it has had. */
  version: number;
}

/** The run was created */
export interface CreatedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "created";
  /** Number of a payload */
  input: number;
  /** Number of a payload */
  headers?: number;
  /** Number of a payload */
  query?: number;
  by: string;
  client?: string;
  seed: number;
  max_duration_ms: number;
}

/** The run begins at `due` */
export interface ScheduledEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "scheduled";
  due: Instant;
}

/** The time of a scheduled run has come */
export interface DueEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "due";
}

/** The run left the queue */
export interface StartedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "started";
  expires: Instant;
  /** Number of a payload */
  vars?: number;
}

export type WaitKind = "executor" | "sleep" | "webhook" | "gate" | "child" | "scope";

/** The step was entered and waits for something */
export interface EnteredEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "entered";
  step: string;
  attempt: number;
  /** Number of a payload */
  input?: number;
  wait: WaitKind;
  until?: null | Instant;
  escalate?: null | Instant;
  count?: number | null;
}

export type FailureKind = "error" | "network" | "timeout";

/** Why an attempt failed */
export interface EventFailure {
  kind: FailureKind;
  code: string;
  message: string;
  retryable?: boolean;
  may_have_happened?: boolean;
  retry_after_ms?: number;
}

/** The result of a call; payloads are referenced by number */
export interface EventOutput {
  /** Number of a payload */
  body: number;
  /** Number of a payload */
  headers?: number;
  status_code?: number;
  truncated?: boolean;
  /** Number of a payload */
  log?: number;
}

/** An attempt ended without success; another follows at `due` */
export interface RetryingEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "retrying";
  step: string;
  attempt: number;
  due: Instant;
  failure: EventFailure;
  output?: EventOutput;
  /** Number of a payload */
  note?: number;
}

export type AgainReason = "retry" | "worker_lost" | "worker_stopped" | "asked" | "approved" | "deferred";

/** Another attempt begins */
export interface AgainEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "again";
  step: string;
  attempt: number;
  reason: AgainReason;
  until?: Instant;
}

/** The call is not made, or does not continue, until someone approves it */
export interface HeldEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "held";
  step: string;
  attempt: number;
  /** Number of a payload */
  ask: number;
  until?: Instant;
  /** Number of a payload */
  note?: number;
}

/** Whether the call happened is unknown; a person decides */
export interface UnsureEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "unsure";
  step: string;
  attempt: number;
}

/** A loop started a pass, or a for_each an item */
export interface OpenedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "opened";
  step: string;
  index: number;
}

export type EndStatus = "success" | "denied" | "failed";

/** A pass or an item ended */
export interface ClosedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "closed";
  step: string;
  index: number;
  end: EndStatus;
  /** Number of a payload */
  result?: number;
}

/** The step ended */
export interface FinishedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "finished";
  step: string;
  attempt: number;
  status: StepStatus;
  exit: string;
  output?: EventOutput;
  /** Number of a payload */
  variable?: number;
  failure?: EventFailure;
}

export type SkipReason = "condition" | "not_taken" | "upstream_failed";

/** The step was skipped */
export interface SkippedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "skipped";
  step: string;
  exit: string;
  reason: SkipReason;
}

/** A message arrived before its step was entered */
export interface KeptEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "kept";
  step: string;
  /** Number of a payload */
  message: number;
  truncated?: boolean;
}

/** One of several people approved */
export interface ApprovedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "approved";
  step: string;
  by: string;
  /** Number of a payload */
  answer: number;
}

/** An approver changed a held call; the request is a new one */
export interface ChangedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "changed";
  step: string;
  by: string;
  /** Number of a payload */
  ask: number;
  /** Number of a payload */
  input: number;
}

/** The gate asks further people */
export interface EscalatedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "escalated";
  step: string;
  until?: Instant;
}

/** A user set the result of the step */
export interface OverriddenEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "overridden";
  step: string;
  attempt: number;
  by: string;
  comment?: string;
}

/** The run ended */
export interface EndedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "ended";
  status: RunStatus;
  /** Number of a payload */
  output?: number;
  failure?: EventFailure;
  by?: string;
}

/** The run continues after its end */
export interface RetriedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "retried";
  by: string;
  acts?: string;
  expires: Instant;
  /** Paths of steps */
  reset: string[];
  /** Paths of steps */
  reopened: string[];
  /** Number of a payload */
  vars?: number;
}

/** The run continues under a newer version */
export interface AdoptedEvent {
  run_id: string;
  workflow?: string;
  version: number;
  at: Instant;
  type: "adopted";
  by: string;
  acts?: string;
  expires: Instant;
  workflow_version: number;
  max_duration_ms: number;
  /** Paths of steps */
  stands: string[];
  /** Number of a payload */
  vars?: number;
}

/** The last event of a stream: the run has ended */
export interface EndEvent {
  run_id: string;
  workflow?: string;
  version: number;
  type: "end";
  status: RunStatus;
}

/** An event of a stream: a fact, or the end of the run */
export type Event =
  | CreatedEvent
  | ScheduledEvent
  | DueEvent
  | StartedEvent
  | EnteredEvent
  | RetryingEvent
  | AgainEvent
  | HeldEvent
  | UnsureEvent
  | OpenedEvent
  | ClosedEvent
  | FinishedEvent
  | SkippedEvent
  | KeptEvent
  | ApprovedEvent
  | ChangedEvent
  | EscalatedEvent
  | OverriddenEvent
  | EndedEvent
  | RetriedEvent
  | AdoptedEvent
  | EndEvent;

/** A run that was just started: the fields of a `Run` that are known at once, under the same names. */
export interface Started {
  run_id: string;
  /** When a scheduled run begins. */
  scheduled_for?: Instant;
  started_at?: Instant;
  status: RunStatus;
  workflow: string;
  workflow_id: string;
  workflow_version: number;
}

/** A deleted workflow whose name another one has now. */
export interface EarlierWorkflow {
  deleted_at: Instant;
  id: string;
}

/** How a workflow is started. */
export type TriggerKind = "api" | "webhook" | "cron" | "at";

/** A workflow as lists show it. */
export interface WorkflowSummary {
  created_by: string;
  /** Deleted workflows can be restored. */
  deleted_at?: Instant;
  description?: string | null;
  /** Of a new workflow: the one of the same name that was deleted last. */
  earlier?: EarlierWorkflow;
  enabled: boolean;
  id: string;
  /** When its first version was stored. */
  inserted_at: Instant;
  labels: Record<string, string>;
  name: string;
  /** Whether new runs wait until it is resumed. */
  paused: boolean;
  /** The set of definitions that it belongs to, if it was applied as a part of one. */
  set?: string | null;
  task_count: number;
  /** The first of `triggers`. */
  trigger: TriggerKind;
  triggers: TriggerKind[];
  /** When this version was stored. */
  updated_at: Instant;
  version: number;
}

/** How a definition is written. */
export type Dialect = "tasks" | "flow" | "graph";

export interface PausedKey {
  by: string;
  key: any;
  since: Instant;
}

/** A step of the definition. */
export interface Task {
  kind: StepKind;
  /** Steps that lead to it. */
  needs: string[];
}

/** A workflow with its definition. */
export interface Workflow extends WorkflowSummary {
  /** The parsed source. */
  definition: any;
  dialect: Dialect;
  input_schema?: any;
  /** Concurrency keys whose new runs wait. */
  paused_keys?: PausedKey[];
  /** As its author wrote it, JSON or YAML. */
  source: string;
  /** By name, for any dialect. */
  steps: Record<string, Task>;
  /** Its tasks as written, if it uses the tasks dialect. */
  tasks?: any;
  /** URLs that start it; only for callers who may change it. */
  webhooks?: string[];
}

/** A value to replace in a definition. */
export interface Fix {
  /** A JSON Pointer; empty for the whole definition. */
  path: string;
  value: any;
}

/** One error, its location, and how to fix it. */
export interface Fault {
  code?: string | null;
  column?: number | null;
  /** A correction that a program can apply. It may also correct other faults. */
  fix?: Fix | null;
  hint?: string | null;
  line?: number | null;
  message: string;
  /** For people: `tasks.send.needs[0]`, or the name of a query parameter or header. */
  path: string;
  /** The same place as a JSON Pointer: `/tasks/send/needs/0`. */
  pointer: string;
}
