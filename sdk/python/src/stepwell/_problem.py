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
    """One thing that is wrong with a request."""

    path: str
    message: str
    code: str | None = None
    hint: str | None = None
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
        self.errors: list[Fault] = [_fault(entry) for entry in body.get("errors") or []]
        lines = [f"{fault.path}: {fault.message}" if fault.path else fault.message for fault in self.errors]
        shown = "".join(f"\n  {line}" for line in lines if line not in self.detail)
        super().__init__(f"{self.detail} [{self.code}]{shown}")

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later without a change."""
        return self.status in (408, 429, 503)


def _fault(entry: dict[str, Any]) -> Fault:
    return Fault(
        path=str(entry.get("path") or ""),
        message=str(entry.get("message") or ""),
        code=entry.get("code"),
        hint=entry.get("hint"),
        line=entry.get("line"),
        column=entry.get("column"),
    )
