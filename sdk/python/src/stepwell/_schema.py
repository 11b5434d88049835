"""Made by scripts/sdk_types.py from the description of the API. Not edited by hand."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

#: An instant, written as `2026-02-22T10:00:00Z`.
Instant = str
#: Kind of a step. `start` is only in graphs.
StepKind = Literal[
    "start", "http", "tool", "javascript", "query", "pass", "condition", "end", "sleep", "wait_for_webhook", "approval",
    "workflow", "for_each", "loop",
]


class _AskedCall(TypedDict):
    kind: StepKind
    #: Path of the step.
    step: str


class AskedCall(_AskedCall, total=False):
    """A call that an answer allows or leads to."""

    #: The call is also made if it is approved.
    also_if_approved: bool
    #: Binds the approval to exactly this call; only if the call is covered.
    digest: str
    #: The arguments, as far as they are known.
    input: Any
    #: The call depends on results that are not known yet, so it is not covered.
    not_yet_known: bool
    #: The arguments are too long to be shown, so the call is not covered.
    too_large_to_show: bool
    tool: str
    #: JSON Pointers to the unknown parts of the arguments.
    unknown: list[str]
    workflow: str


class EarlierCall(TypedDict):
    """A held call as it was before an approver changed it."""

    #: Who changed it.
    by: str
    digest: str
    input: Any


class Form(TypedDict, total=False):
    """A JSON Schema, usually of an object whose properties are the fields of a form."""

    description: str
    #: Schemas by the name of the field.
    properties: dict[str, dict[str, Any]]
    required: list[str]
    title: str
    type: str


OnTimeout = Literal["approve", "deny"]


class Question(TypedDict, total=False):
    """What a gate or a held call asks. Of a verdict: the input of the call, with fields of its own."""

    #: Whether an approval may change the call.
    allow_changes: bool
    #: Whether the user who started the run may answer.
    allow_self: bool
    #: Users or roles who may answer; if there are none, everyone with the right.
    approvers: list[str]
    asked_at: Instant
    #: The calls that an approval allows.
    calls: list[AskedCall]
    #: What the call was before approvers changed it, oldest first.
    changed: list[EarlierCall]
    digest: str
    #: Users or roles who may answer as well once it has escalated.
    escalate_to: list[str]
    #: JSON Schema of the data to give with an approval.
    form: Form
    message: str
    #: Number of further calls, which are not covered.
    more_calls: int
    more_on_denial: int
    #: The calls that may follow a denial.
    on_denial: list[AskedCall]
    #: What happens without an answer in time.
    on_timeout: OnTimeout
    #: The policy that holds the call.
    policy: str
    #: The MCP server that asks.
    server: str
    #: The tool that asks.
    tool: str


#: An approval, or a verdict on a call that may have happened.
ApprovalKind = Literal["approval", "verdict"]


class _Approval(TypedDict):
    #: Who asked for the run, in words: the user, or an agent's key with its user and what its client calls itself.
    asked_by: str
    #: The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
    #: denial (`on_denial`).
    asks: Question
    attempt: int
    created_by: str
    #: For `POST /api/v1/steps/{id}/ready`.
    id: str
    kind: ApprovalKind
    #: Whether you may answer it.
    mine: bool
    run_id: str
    since: Instant
    step: str
    workflow: str


class Approval(_Approval, total=False):
    """A gate that waits for a person."""

    #: Number of approvals required.
    approvals: int
    #: Who has approved so far, if several approvals are required.
    approved_by: list[str]
    #: Digest of everything shown. An answer refers to it.
    digest: str | None
    #: Whether it has been escalated.
    escalated: bool
    #: When `escalate_to` are asked as well, unless it is answered before.
    escalates_at: Instant | None
    #: What happens then: approve or deny. Null if it waits as long as the run lasts.
    on_timeout: OnTimeout | None
    #: When it is decided without an answer.
    until: Instant | None
    version: int
    #: Why it may not reach anyone who can answer it.
    warnings: list[str]


class StepError(TypedDict):
    code: str
    message: str


class ParentStep(TypedDict):
    run_id: str
    step: str


#: How a run was started. `run` is a step of another run.
StartedHow = Literal["request", "schedule", "webhook", "run", "test"]


class _StartedWith(TypedDict):
    #: It is an agent's key.
    agent: bool
    id: str


class StartedWith(_StartedWith, total=False):
    """The key that started a run."""

    name: str


class _StartedBy(TypedDict):
    how: StartedHow
    user: str


class StartedBy(_StartedBy, total=False):
    """Who or what started a run."""

    #: What the MCP client calls itself.
    client: str
    #: The API key that was used, if any.
    key: StartedWith
    #: Id of the schedule.
    schedule: str


#: Status of a run. `completed`, `failed`, `cancelled` and `timeout` are final.
RunStatus = Literal["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"]


class GivenApproval(TypedDict, total=False):
    """An approval of a call that a policy held."""

    by: str
    comment: str | None
    data: Any


LogLevel = Literal["debug", "info", "warn", "error"]


class LogLine(TypedDict):
    """A line written by code."""

    level: LogLevel
    text: str


#: Why an attempt did not succeed: its process ended, it took too long, rights or a policy refused it, or it failed.
AttemptReason = Literal["lost", "timeout", "refused", "failed"]
#: Status of an attempt: that of the step at the time, or `lost` if its process ended before it reported.
AttemptStatus = Literal[
    "pending", "running", "sleeping", "waiting", "success", "failed", "timeout", "denied", "template_error", "skipped",
    "cancelled", "lost",
]


class _Attempt(TypedDict):
    attempt: int
    started_at: Instant
    status: AttemptStatus


class Attempt(_Attempt, total=False):
    #: The run that it started.
    child_run_id: str
    duration_ms: int
    error: StepError | None
    finished_at: Instant | None
    #: Headers of the response.
    headers: dict[str, str]
    log: list[LogLine]
    output: Any
    #: Why it did not succeed: lost (its process died), timeout, refused (by rights or a policy) or failed.
    reason: AttemptReason
    status_code: int


ChangedCall = TypedDict(
    "ChangedCall",
    {
        "by": "str",
        "from": "Any",
    },
)


#: Status of a step.
StepStatus = Literal[
    "pending", "running", "sleeping", "waiting", "success", "failed", "timeout", "denied", "template_error", "skipped",
    "cancelled",
]


class _Step(TypedDict):
    attempt: int
    #: For `POST /api/v1/steps/{id}/ready`.
    id: str
    kind: StepKind
    status: StepStatus


class Step(_Step, total=False):
    #: Who has approved a call that a policy held. The answers to a gate are in its output.
    approvals: list[GivenApproval]
    #: All attempts, oldest first; only if there were several.
    attempts: list[Attempt]
    #: The URL that ends its wait; only for callers who may deliver.
    callback_url: str
    #: An approver changed the held call: `input` is what it was made with.
    changed: ChangedCall
    #: The run that its last attempt started.
    child_run_id: str
    duration_ms: int | None
    error: StepError | None
    finished_at: Instant | None
    #: Headers of the response.
    headers: dict[str, str]
    input: Any
    #: Its input, output, log and the results of its attempts are left out, because the answer would be too large: `GET
    #: /runs/{run}/steps` has them.
    is_omitted: bool
    #: The output was longer than 256 KB and is stored truncated.
    is_truncated: bool
    #: The lines that the step's code wrote with `console`.
    log: list[LogLine]
    output: Any
    started_at: Instant | None
    status_code: int | None


#: What a run or a step waits for. `start` is the time of a scheduled run, `turn` is the next transition of the run;
#: `quarantine` ends when a person releases or cancels the run; `unreadable` when one cancels it.
WaitingReason = Literal[
    "start", "queue", "executor", "retry", "sleep", "webhook", "approval", "verdict", "child", "turn", "quarantine",
    "unreadable",
]


_Waiting = TypedDict(
    "_Waiting",
    {
        "for": "WaitingReason",
        "moved_on_by": "str",
        "step": "str",
    },
)


class Waiting(_Waiting, total=False):
    #: Why the last attempt failed, or what the called service says about its progress.
    message: str | None
    since: Instant | None
    #: When it continues by itself.
    until: Instant | None


class Warning(TypedDict):
    """A problem that does not stop the run."""

    message: str
    #: Path of the step.
    step: str


class _Run(TypedDict):
    created_at: Instant
    created_by: str
    #: Increases with each retry of the run.
    generation: int
    #: Deprecated. The same as `run_id`.
    id: str
    input: Any
    labels: dict[str, str]
    run_id: str
    status: RunStatus
    #: By name; steps inside loops by path, such as `each[3].charge`.
    tasks: dict[str, Step]
    #: Increases with every change of the run.
    version: int
    #: What an unfinished run waits for; empty if it has finished.
    waiting_for: list[Waiting]
    workflow: str
    workflow_id: str
    workflow_version: int


class Run(_Run, total=False):
    """A run in full."""

    #: When its payloads were erased on request.
    erased_at: Instant | None
    error: StepError | None
    #: When it times out, or would have: `max_duration` after its start or its last retry.
    expires_at: Instant
    finished_at: Instant | None
    output: Any
    #: The step of another run that started it, as long as that run exists.
    parent: ParentStep
    #: The user who retried it last.
    retried_by: str
    #: When it begins or began, if it was scheduled.
    scheduled_for: Instant
    started_at: Instant | None
    #: Who or what started it.
    started_by: StartedBy
    #: The cursor of the further steps in `GET /runs/{run}/steps`: `tasks` has the first 1,000.
    tasks_next: str
    test: bool
    #: Why its open approvals may not reach anyone who can answer them.
    warnings: list[Warning]
    #: The workflow was deleted since.
    workflow_deleted_at: Instant


class _RunSummary(TypedDict):
    #: Started by a step of another run.
    child: bool
    created_at: Instant
    created_by: str
    #: Deprecated. The same as `run_id`.
    id: str
    labels: dict[str, str]
    run_id: str
    status: RunStatus
    workflow: str
    workflow_id: str
    workflow_version: int


class RunSummary(_RunSummary, total=False):
    """A run as lists show it."""

    finished_at: Instant | None
    #: When a scheduled run begins.
    scheduled_for: Instant
    started_at: Instant | None
    #: The workflow was deleted since.
    workflow_deleted_at: Instant


class _Schedule(TypedDict):
    id: str
    #: Up to ten.
    next: list[Instant]
    workflow: str


class Schedule(_Schedule, total=False):
    """A schedule and its next ticks."""

    #: The user who added it with a request, and whose rights its runs have. Missing for triggers of the definition.
    by: str
    #: None for a one-time schedule.
    cron: str | None
    last: Instant | None
    #: Why the last tick started no run.
    last_error: str | None
    last_run_id: str | None
    timezone: str | None


class Secret(TypedDict):
    """A secret. Its value is never shown."""

    changed_at: Instant
    changed_by: str
    created_at: Instant
    #: Hosts it may be sent to; any host if empty.
    hosts: list[str]
    id: str
    #: Whether it is masked in responses of services. Values shorter than 8 characters are not.
    masked: bool
    name: str
    #: The master key that seals it.
    sealed_with: str
    #: Number of values it has had.
    version: int


class _CreatedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["created"]
    #: Number of a payload
    input: int
    by: str
    seed: int
    max_duration_ms: int


class CreatedEvent(_CreatedEvent, total=False):
    """The run was created"""

    workflow: str
    #: Number of a payload
    headers: int
    #: Number of a payload
    query: int
    client: str


class _ScheduledEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["scheduled"]
    due: Instant


class ScheduledEvent(_ScheduledEvent, total=False):
    """The run begins at `due`"""

    workflow: str


class _DueEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["due"]


class DueEvent(_DueEvent, total=False):
    """The time of a scheduled run has come"""

    workflow: str


class _StartedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["started"]
    expires: Instant


class StartedEvent(_StartedEvent, total=False):
    """The run left the queue"""

    workflow: str
    #: Number of a payload
    vars: int


WaitKind = Literal["executor", "sleep", "webhook", "gate", "child", "scope"]


class _EnteredEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["entered"]
    step: str
    attempt: int
    wait: WaitKind


class EnteredEvent(_EnteredEvent, total=False):
    """The step was entered and waits for something"""

    workflow: str
    #: Number of a payload
    input: int
    until: None | Instant
    escalate: None | Instant
    count: int | None


FailureKind = Literal["error", "network", "timeout"]


class _EventFailure(TypedDict):
    kind: FailureKind
    code: str
    message: str


class EventFailure(_EventFailure, total=False):
    """Why an attempt failed"""

    retryable: bool
    may_have_happened: bool
    retry_after_ms: int


class _EventOutput(TypedDict):
    #: Number of a payload
    body: int


class EventOutput(_EventOutput, total=False):
    """The result of a call; payloads are referenced by number"""

    #: Number of a payload
    headers: int
    status_code: int
    truncated: bool
    #: Number of a payload
    log: int


class _RetryingEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["retrying"]
    step: str
    attempt: int
    due: Instant
    failure: EventFailure


class RetryingEvent(_RetryingEvent, total=False):
    """An attempt ended without success; another follows at `due`"""

    workflow: str
    output: EventOutput
    #: Number of a payload
    note: int


AgainReason = Literal["retry", "worker_lost", "worker_stopped", "asked", "approved", "deferred"]


class _AgainEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["again"]
    step: str
    attempt: int
    reason: AgainReason


class AgainEvent(_AgainEvent, total=False):
    """Another attempt begins"""

    workflow: str
    until: Instant


class _HeldEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["held"]
    step: str
    attempt: int
    #: Number of a payload
    ask: int


class HeldEvent(_HeldEvent, total=False):
    """The call is not made, or does not continue, until someone approves it"""

    workflow: str
    until: Instant
    #: Number of a payload
    note: int


class _UnsureEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["unsure"]
    step: str
    attempt: int


class UnsureEvent(_UnsureEvent, total=False):
    """Whether the call happened is unknown; a person decides"""

    workflow: str


class _OpenedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["opened"]
    step: str
    index: int


class OpenedEvent(_OpenedEvent, total=False):
    """A loop started a pass, or a for_each an item"""

    workflow: str


EndStatus = Literal["success", "denied", "failed"]


class _ClosedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["closed"]
    step: str
    index: int
    end: EndStatus


class ClosedEvent(_ClosedEvent, total=False):
    """A pass or an item ended"""

    workflow: str
    #: Number of a payload
    result: int


class _FinishedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["finished"]
    step: str
    attempt: int
    status: StepStatus
    exit: str


class FinishedEvent(_FinishedEvent, total=False):
    """The step ended"""

    workflow: str
    output: EventOutput
    #: Number of a payload
    variable: int
    failure: EventFailure


SkipReason = Literal["condition", "not_taken", "upstream_failed"]


class _SkippedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["skipped"]
    step: str
    exit: str
    reason: SkipReason


class SkippedEvent(_SkippedEvent, total=False):
    """The step was skipped"""

    workflow: str


class _KeptEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["kept"]
    step: str
    #: Number of a payload
    message: int


class KeptEvent(_KeptEvent, total=False):
    """A message arrived before its step was entered"""

    workflow: str
    truncated: bool


class _ApprovedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["approved"]
    step: str
    by: str
    #: Number of a payload
    answer: int


class ApprovedEvent(_ApprovedEvent, total=False):
    """One of several people approved"""

    workflow: str


class _ChangedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["changed"]
    step: str
    by: str
    #: Number of a payload
    ask: int
    #: Number of a payload
    input: int


class ChangedEvent(_ChangedEvent, total=False):
    """An approver changed a held call; the request is a new one"""

    workflow: str


class _EscalatedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["escalated"]
    step: str


class EscalatedEvent(_EscalatedEvent, total=False):
    """The gate asks further people"""

    workflow: str
    until: Instant


class _OverriddenEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["overridden"]
    step: str
    attempt: int
    by: str


class OverriddenEvent(_OverriddenEvent, total=False):
    """A user set the result of the step"""

    workflow: str
    comment: str


class _EndedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["ended"]
    status: RunStatus


class EndedEvent(_EndedEvent, total=False):
    """The run ended"""

    workflow: str
    #: Number of a payload
    output: int
    failure: EventFailure
    by: str


class _RetriedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["retried"]
    by: str
    expires: Instant
    #: Paths of steps
    reset: list[str]
    #: Paths of steps
    reopened: list[str]


class RetriedEvent(_RetriedEvent, total=False):
    """The run continues after its end"""

    workflow: str
    acts: str
    #: Number of a payload
    vars: int


class _AdoptedEvent(TypedDict):
    run_id: str
    version: int
    at: Instant
    type: Literal["adopted"]
    by: str
    expires: Instant
    workflow_version: int
    max_duration_ms: int
    #: Paths of steps
    stands: list[str]


class AdoptedEvent(_AdoptedEvent, total=False):
    """The run continues under a newer version"""

    workflow: str
    acts: str
    #: Number of a payload
    vars: int


class _EndEvent(TypedDict):
    run_id: str
    version: int
    type: Literal["end"]
    status: RunStatus


class EndEvent(_EndEvent, total=False):
    """The last event of a stream: the run has ended"""

    workflow: str


#: An event of a stream: a fact, or the end of the run
Event = Union[
    CreatedEvent, ScheduledEvent, DueEvent, StartedEvent, EnteredEvent, RetryingEvent, AgainEvent, HeldEvent,
    UnsureEvent, OpenedEvent, ClosedEvent, FinishedEvent, SkippedEvent, KeptEvent, ApprovedEvent, ChangedEvent,
    EscalatedEvent, OverriddenEvent, EndedEvent, RetriedEvent, AdoptedEvent, EndEvent,
]


class _Started(TypedDict):
    run_id: str
    status: RunStatus
    workflow: str
    workflow_id: str
    workflow_version: int


class Started(_Started, total=False):
    """A run that was just started: the fields of a `Run` that are known at once, under the same names."""

    #: When a scheduled run begins.
    scheduled_for: Instant
    started_at: Instant


class EarlierWorkflow(TypedDict):
    """A deleted workflow whose name another one has now."""

    deleted_at: Instant
    id: str


#: How a workflow is started.
TriggerKind = Literal["api", "webhook", "cron", "at"]


class _WorkflowSummary(TypedDict):
    created_by: str
    enabled: bool
    id: str
    #: When its first version was stored.
    inserted_at: Instant
    labels: dict[str, str]
    name: str
    #: Whether new runs wait until it is resumed.
    paused: bool
    task_count: int
    #: The first of `triggers`.
    trigger: TriggerKind
    triggers: list[TriggerKind]
    #: When this version was stored.
    updated_at: Instant
    version: int


class WorkflowSummary(_WorkflowSummary, total=False):
    """A workflow as lists show it."""

    #: Deleted workflows can be restored.
    deleted_at: Instant
    description: str | None
    #: Of a new workflow: the one of the same name that was deleted last.
    earlier: EarlierWorkflow
    #: The set of definitions that it belongs to, if it was applied as a part of one.
    set: str | None


#: How a definition is written.
Dialect = Literal["tasks", "flow", "graph"]


class PausedKey(TypedDict):
    by: str
    key: Any
    since: Instant


class Task(TypedDict):
    """A step of the definition."""

    kind: StepKind
    #: Steps that lead to it.
    needs: list[str]


class _Workflow(WorkflowSummary):
    #: The parsed source.
    definition: Any
    dialect: Dialect
    #: As its author wrote it, JSON or YAML.
    source: str
    #: By name, for any dialect.
    steps: dict[str, Task]


class Workflow(_Workflow, total=False):
    """A workflow with its definition."""

    input_schema: Any
    #: Concurrency keys whose new runs wait.
    paused_keys: list[PausedKey]
    #: Its tasks as written, if it uses the tasks dialect.
    tasks: Any
    #: URLs that start it; only for callers who may change it.
    webhooks: list[str]


class Fix(TypedDict):
    """A value to replace in a definition."""

    #: A JSON Pointer; empty for the whole definition.
    path: str
    value: Any


class _Fault(TypedDict):
    message: str
    #: For people: `tasks.send.needs[0]`, or the name of a query parameter or header.
    path: str
    #: The same place as a JSON Pointer: `/tasks/send/needs/0`.
    pointer: str


class Fault(_Fault, total=False):
    """One error, its location, and how to fix it."""

    code: str | None
    column: int | None
    #: A correction that a program can apply. It may also correct other faults.
    fix: Fix | None
    hint: str | None
    line: int | None
