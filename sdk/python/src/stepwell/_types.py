"""What the API returns. Servers may add fields, so all of them are optional here."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypedDict, TypeVar

RunStatus = Literal["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"]

#: The statuses of a run that has ended. It can still be retried.
ENDED: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timeout"})

Json = Any
T = TypeVar("T")


class Error(TypedDict, total=False):
    code: str
    message: str


class Waiting(TypedDict, total=False):
    """What an unfinished run waits for."""

    step: str
    since: str
    until: str | None
    moved_on_by: str


class Step(TypedDict, total=False):
    id: str
    kind: str
    status: str
    status_code: int | None
    attempt: int
    duration_ms: int | None
    started_at: str | None
    finished_at: str | None
    input: Json
    output: Json
    error: Error | None


class Run(TypedDict, total=False):
    id: str
    workflow_id: str
    workflow: str
    workflow_version: int
    status: RunStatus
    created_by: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    input: Json
    output: Json
    error: Error | None
    waiting_for: list[Waiting]
    tasks: dict[str, Step]
    labels: dict[str, str]
    generation: int
    version: int


class Started(TypedDict, total=False):
    """A run that a trigger started, or found under its idempotency key."""

    run_id: str
    workflow_id: str
    workflow: str
    workflow_version: int
    status: RunStatus
    started_at: str
    scheduled_for: str


class Workflow(TypedDict, total=False):
    id: str
    name: str
    version: int
    description: str | None
    enabled: bool
    labels: dict[str, str]
    definition: Json
    webhooks: list[str]


class Approval(TypedDict, total=False):
    """A gate that waits for people."""

    id: str
    run_id: str
    step: str
    workflow: str
    asks: Json
    digest: str | None
    since: str
    until: str | None
    kind: str
    mine: bool


class Schedule(TypedDict, total=False):
    id: str
    workflow: str
    cron: str | None
    timezone: str | None
    by: str
    next: list[str]
    last: str | None
    last_run_id: str | None
    last_error: str | None


class Secret(TypedDict, total=False):
    """A secret without its value."""

    id: str
    name: str
    hosts: list[str]
    version: int
    masked: bool


class Event(TypedDict, total=False):
    """An entry of a run's log; ``end`` comes last, with the status of the run."""

    run_id: str
    version: int
    at: str
    type: str
    step: str
    status: str


class Page(Generic[T]):
    """One page of a list."""

    def __init__(self, items: list[T], next: str | None) -> None:
        self.items = items
        self.next = next
