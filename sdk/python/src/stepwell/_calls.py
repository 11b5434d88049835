"""The calls of the API, written once for both clients: what is sent, and how the answer is read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

import httpx

from ._problem import Fault, Problem, StepwellError, fault
from ._types import ENDED, Json, Page, Run, Schedule, Secret, Started, Workflow, WorkflowSummary

T = TypeVar("T")

#: The longest wait that the server grants one call.
LONGEST_WAIT = 300.0


@dataclass
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[Any], T]
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    #: Whether a repeated call has the same effect as one.
    repeatable: bool = False
    #: How long the server may take beyond the usual timeout.
    patience: float = 0.0


def path(*parts: str) -> str:
    for part in parts:
        # Parsing of the URL would normalise these segments away.
        if part in ("", ".", ".."):
            raise StepwellError(f"{part!r} is not a valid name")
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def data(body: Any) -> Any:
    return body["data"]


def nothing(_: Any) -> None:
    return None


def everything(body: Any) -> Any:
    return body


def warnings(body: Any) -> list[Fault]:
    return [fault(entry) for entry in body["data"]["warnings"]] if body else []


def body(value: Json) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def query(**given: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, Mapping):
            pairs = [f"{key}={label}" for key, label in value.items()]
            for pair in pairs:
                if "," in pair:
                    raise StepwellError(f"the label {pair} contains a comma")
            if pairs:
                found[name] = ",".join(pairs)
        elif isinstance(value, (list, tuple, set, frozenset)):
            found[name] = ",".join(str(part) for part in value)
        else:
            found[name] = str(value)
    return found


def definition(given: str | bytes | Mapping[str, Json]) -> bytes:
    if isinstance(given, bytes):
        return given
    return given.encode() if isinstance(given, str) else body(dict(given))


def define(given: str | bytes | Mapping[str, Json], name: str | None) -> Call[WorkflowSummary]:
    content = definition(given)
    if name is None:
        return Call("POST", path("workflows"), data, content=content, repeatable=True)
    return Call("PUT", path("workflows", name), data, content=content, repeatable=True)


def check(given: str | bytes | Mapping[str, Json]) -> Call[list[Fault]]:
    return Call("POST", path("check"), warnings, content=definition(given), repeatable=True)


def start(
    workflow: str,
    given: Json,
    key: str | None,
    labels: Mapping[str, str] | None,
    wait: float | None,
    when: Mapping[str, str | None] | None = None,
) -> Call[Any]:
    """A trigger always has an idempotency key, so that it can be repeated after a lost answer."""
    wait = None if wait is None else min(wait, LONGEST_WAIT)
    return Call(
        "POST",
        path("workflows", workflow, "trigger"),
        data,
        query(label=labels, wait=None if wait is None else length(wait), **(when or {})),
        {"idempotency-key": key or f"sdk-{uuid.uuid4()}"},
        body(given),
        repeatable=True,
        patience=wait or 0.0,
    )


def trigger(
    workflow: str,
    given: Json,
    key: str | None,
    labels: Mapping[str, str] | None,
    at: datetime | str | None,
    delay: float | None,
) -> Call[Started]:
    return cast("Call[Started]", start(workflow, given, key, labels, None, later(at, delay)))


def later(at: datetime | str | None, delay: float | None) -> dict[str, str | None]:
    """When a run begins, as parameters."""
    moment = at.astimezone(timezone.utc).isoformat() if isinstance(at, datetime) else at
    return {"at": moment, "delay": None if delay is None else length(delay)}


def length(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 0)}ms"


def get_run(run: str) -> Call[Run]:
    return Call("GET", path("runs", run), data, repeatable=True)


def change_run(run: str, verb: str, given: Json) -> Call[Run]:
    return Call("POST", path("runs", run, verb), data, content=body(given))


def answer(run: str, step: str, verb: str, given: Mapping[str, Json]) -> Call[Run]:
    sent = {name: value for name, value in given.items() if value is not None}
    return Call("POST", path("runs", run, "steps", step, verb), data, content=body(sent))


def deliver(run: str, step: str, given: Json) -> Call[Json]:
    return Call("POST", path("runs", run, "steps", step, "deliver"), data, content=body(given))


def get_workflow(name: str) -> Call[Workflow]:
    return Call("GET", path("workflows", name), data, repeatable=True)


def delete_workflow(name: str) -> Call[None]:
    return Call("DELETE", path("workflows", name), nothing)


def set_secret(name: str, value: str | None, hosts: list[str] | None) -> Call[Secret]:
    sent = {key: part for key, part in (("value", value), ("hosts", hosts)) if part is not None}
    return Call("PUT", path("secrets", name), data, content=body(sent), repeatable=True)


def delete_secret(name: str) -> Call[None]:
    return Call("DELETE", path("secrets", name), nothing)


def schedules(workflow: str | None) -> Call[list[Schedule]]:
    where = path("schedules") if workflow is None else path("workflows", workflow, "schedule")
    return Call("GET", where, data, repeatable=True)


def add_schedule(workflow: str, given: Mapping[str, Json]) -> Call[Schedule]:
    sent = {name: value for name, value in given.items() if value is not None}
    return Call("POST", path("workflows", workflow, "schedules"), data, content=body(sent))


def remove_schedule(schedule: str) -> Call[None]:
    return Call("DELETE", path("schedules", schedule), nothing)


def page(parts: tuple[str, ...], filters: dict[str, str], cursor: str | None) -> Call[Page[Any]]:
    return Call(
        "GET",
        path(*parts),
        lambda answer: Page(answer["data"], answer.get("next")),
        {**filters, **({"cursor": cursor} if cursor else {})},
        repeatable=True,
    )


def other(method: str, parts: tuple[str, ...], parameters: Mapping[str, object], given: Json) -> Call[Json]:
    """An operation that has no method of its own. Reading is repeated, as methods do."""
    return Call(
        method.upper(),
        path(*parts),
        everything,
        query(**parameters),
        content=None if given is None else body(given),
        repeatable=method.upper() == "GET",
    )


def is_ended(run: Run) -> bool:
    return run.get("status") in ENDED


def problem(response: httpx.Response) -> Problem:
    try:
        found = response.json()
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    if not found.get("detail"):
        found["detail"] = response.text[:200] or f"status {response.status_code}"
    after = response.headers.get("retry-after")
    return Problem(response.status_code, found, float(after) if after and after.isdigit() else None)


#: Attempts of a call that may be repeated, the first included.
ATTEMPTS = 5
#: Attempts to resume a stream: about a minute.
RESUMPTIONS = 16


def pause(attempt: int, found: Problem | None) -> float:
    """How long to wait before the next attempt."""
    if found is not None and found.retry_after is not None:
        return min(found.retry_after, 60.0)
    return float(min(0.2 * 2**attempt, 5.0))
