"""Errors of the API and of the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class StepwellError(Exception):
    """Everything that this package raises for a reason outside of the caller's code."""


class ConnectionFailed(StepwellError):
    """The server could not be reached, or the connection was lost. The outcome of the call is unknown."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request, or suspicious in a definition."""

    #: For people: ``tasks.send.needs[0]``.
    path: str
    message: str
    #: The same place as a JSON Pointer: ``/tasks/send/needs/0``.
    pointer: str = ""
    code: str | None = None
    hint: str | None = None
    #: A correction that a program can apply: ``{"path": POINTER, "value": …}``.
    fix: dict[str, Any] | None = None
    line: int | None = None
    column: int | None = None


class Problem(StepwellError):
    """An error that the server returned (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    def __init__(self, status: int, body: dict[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code: str = str(body.get("code") or "unknown")
        self.detail: str = str(body.get("detail") or body.get("title") or f"status {status}")
        self.request_id: str | None = body.get("request_id")
        #: The state of the run, if the call came too late.
        self.status_now: str | None = body.get("status_now")
        self.retry_after = retry_after
        self.errors: list[Fault] = [fault(entry) for entry in body.get("errors") or []]
        #: What is suspicious in a definition beside its errors.
        self.warnings: list[Fault] = [fault(entry) for entry in body.get("warnings") or []]
        lines = [f"{one.path}: {one.message}" if one.path else one.message for one in self.errors]
        shown = "".join(f"\n  {line}" for line in lines if line not in self.detail)
        super().__init__(f"{self.detail} [{self.code}]{shown}")

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later without a change."""
        return self.status in (408, 429, 502, 503, 504)


def fault(entry: dict[str, Any]) -> Fault:
    return Fault(
        path=str(entry.get("path") or ""),
        message=str(entry.get("message") or ""),
        pointer=str(entry.get("pointer") or ""),
        code=entry.get("code"),
        hint=entry.get("hint"),
        fix=entry.get("fix"),
        line=entry.get("line"),
        column=entry.get("column"),
    )
