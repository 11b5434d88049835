"""The asynchronous client."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import httpx

from . import _calls as calls
from ._calls import ATTEMPTS, RESUMPTIONS, Call
from ._config import Config
from ._problem import ConnectionFailed, Fault, Problem
from ._sse import Reader
from ._types import Approval, Event, Json, Page, Run, RunSummary, Schedule, Secret, Started, Workflow
from ._types import WorkflowSummary

T = TypeVar("T")
TIMEOUT = 30.0
#: The server sends a comment every 15 seconds, so a stream that is silent for longer has broken.
SILENCE = 45.0


class AsyncClient:
    """A client of a Stepwell server.

    ``url`` and ``key`` default to ``STEPWELL_URL`` and ``STEPWELL_KEY``, else to what a server on this machine wrote
    into its data directory (``data``, ``STEPWELL_DATA``).

    Calls that may be repeated are repeated after lost connections and temporary problems; a trigger carries an
    idempotency key, so that it starts one run.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        data: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.config = Config.find(url, key, data)
        headers = {"user-agent": "stepwell-python/0.1.0"}
        if self.config.key is not None:
            headers["authorization"] = f"Bearer {self.config.key}"
        self._http = httpx.AsyncClient(base_url=self.config.url, headers=headers, timeout=timeout, trust_env=False)
        self._timeout = timeout

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    # Workflows

    async def define(
        self, definition: str | bytes | Mapping[str, Json], *, name: str | None = None
    ) -> WorkflowSummary:
        """Stores a definition, as YAML, JSON or a mapping. With ``name``, a changed one becomes the next version."""
        return await self._do(calls.define(definition, name))

    async def check(self, definition: str | bytes | Mapping[str, Json]) -> list[Fault]:
        """Raises a ``Problem`` whose ``errors`` has every fault of the definition. Stores nothing.

        Returns what is suspicious in a definition without faults.
        """
        return await self._do(calls.check(definition))

    async def workflow(self, name: str) -> Workflow:
        return await self._do(calls.get_workflow(name))

    async def delete_workflow(self, name: str) -> None:
        """Its runs continue to their end."""
        await self._do(calls.delete_workflow(name))

    def workflows(
        self, *, label: Mapping[str, str] | None = None, q: str | None = None, limit: int | None = None
    ) -> AsyncIterator[WorkflowSummary]:
        return self._list(("workflows",), calls.query(label=label, q=q, limit=limit))

    async def schedules(self, workflow: str | None = None) -> list[Schedule]:
        """The schedules of one workflow, or of all."""
        return await self._do(calls.schedules(workflow))

    async def add_schedule(
        self,
        workflow: str,
        cron: str,
        *,
        timezone: str | None = None,
        input: Json = None,
        overlap: str | None = None,
        catch_up: str | None = None,
    ) -> Schedule:
        """Starts the workflow again and again, with the rights of the caller."""
        given = {"cron": cron, "timezone": timezone, "input": input, "overlap": overlap, "catch_up": catch_up}
        return await self._do(calls.add_schedule(workflow, given))

    async def remove_schedule(self, schedule: str) -> None:
        """Removes a schedule that was added, by its id."""
        await self._do(calls.remove_schedule(schedule))

    # Runs

    async def trigger(
        self,
        workflow: str,
        input: Json = None,
        *,
        idempotency_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        at: datetime | str | None = None,
        delay: float | None = None,
    ) -> Started:
        """Starts a run and returns as soon as it is on disk. The same key starts only one run.

        With ``at``, or ``delay`` in seconds, the run begins later; until then it is ``scheduled``.
        """
        given = {} if input is None else input
        return await self._do(calls.trigger(workflow, given, idempotency_key, labels, at, delay))

    async def run(
        self,
        workflow: str,
        input: Json = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        at: datetime | str | None = None,
        delay: float | None = None,
    ) -> Run:
        """Starts a run and waits for its end, however it ends. ``TimeoutError`` after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        given = {} if input is None else input
        wait = 30.0 if timeout is None else min(timeout, 30.0)
        found: Run = await self._do(calls.start(workflow, given, idempotency_key, labels, wait, calls.later(at, delay)))
        return found if calls.is_ended(found) else await self._wait(found["run_id"], deadline)

    async def wait(self, run: str, *, timeout: float | None = None) -> Run:
        """The run, once it has ended. ``TimeoutError`` after ``timeout`` seconds."""
        return await self._wait(run, None if timeout is None else time.monotonic() + timeout)

    async def _wait(self, run: str, deadline: float | None) -> Run:
        found = await self.get(run)
        while not calls.is_ended(found):
            async for _ in self._events(calls.path("runs", run, "stream"), None, deadline):
                pass
            found = await self.get(run)
        return found

    async def get(self, run: str) -> Run:
        return await self._do(calls.get_run(run))

    def runs(
        self,
        *,
        status: str | Sequence[str] | None = None,
        workflow: str | None = None,
        label: Mapping[str, str] | None = None,
        created_by: str | None = None,
        since: str | None = None,
        until: str | None = None,
        q: str | None = None,
        tests: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RunSummary]:
        """All runs that match, newest first, page by page; ``limit`` is the size of a page."""
        filters = calls.query(
            status=status, workflow=workflow, label=label, created_by=created_by, since=since, until=until, q=q,
            tests=tests, limit=limit,
        )
        return self._list(("runs",), filters)

    def watch(self, run: str, *, after: int | None = None) -> AsyncIterator[Event]:
        """The events of a run from its first, as they happen, until it ends.

        Resumes by itself after a lost connection, without gaps or repetitions. ``after`` is the version after which to
        begin.
        """
        return self._events(calls.path("runs", run, "stream"), after, None)

    async def cancel(self, run: str, reason: str | None = None) -> Run:
        return await self._do(calls.change_run(run, "cancel", {} if reason is None else {"reason": reason}))

    async def retry(self, run: str, *, newest: bool = False) -> Run:
        """Runs again what did not succeed; with ``newest``, on the newest version of the workflow."""
        return await self._do(calls.change_run(run, "retry", {"newest": True} if newest else {}))

    # Steps that wait

    def approvals(self, *, limit: int | None = None) -> AsyncIterator[Approval]:
        """Open approvals, oldest first."""
        return self._list(("approvals",), calls.query(limit=limit))

    async def approve(
        self, run: str, step: str, *, comment: str | None = None, data: Json = None, digest: str | None = None
    ) -> Run:
        return await self._do(calls.answer(run, step, "approve", {"comment": comment, "data": data, "digest": digest}))

    async def deny(
        self, run: str, step: str, *, comment: str | None = None, data: Json = None, digest: str | None = None
    ) -> Run:
        return await self._do(calls.answer(run, step, "deny", {"comment": comment, "data": data, "digest": digest}))

    async def deliver(self, run: str, step: str, body: Json = None) -> Json:
        """Delivers a call to a step that waits for a webhook."""
        return await self._do(calls.deliver(run, step, {} if body is None else body))

    # Secrets

    def secrets(self) -> AsyncIterator[Secret]:
        """All secrets, without their values."""
        return self._list(("secrets",), {})

    async def set_secret(self, name: str, value: str | None = None, *, hosts: Sequence[str] | None = None) -> Secret:
        """Creates a secret, or changes its value or the hosts that it may be sent to."""
        return await self._do(calls.set_secret(name, value, None if hosts is None else list(hosts)))

    async def delete_secret(self, name: str) -> None:
        await self._do(calls.delete_secret(name))

    # All other operations

    async def call(
        self, method: str, *path: str, query: Mapping[str, object] | None = None, body: Json = None
    ) -> Json:
        """An operation without a method of its own: ``call("POST", "runs", run, "release")``.

        Returns the whole JSON of the response; what an operation returns is in ``data``.
        """
        return await self._do(calls.other(method, path, query or {}, body))

    # How calls are made

    async def _do(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return call.read(await self._once(call))
            except Problem as found:
                if not (call.repeatable and found.is_temporary) or attempt >= ATTEMPTS:
                    raise
                delay = calls.pause(attempt, found)
            except ConnectionFailed:
                if not call.repeatable or attempt >= ATTEMPTS:
                    raise
                delay = calls.pause(attempt, None)
            await asyncio.sleep(delay)

    async def _once(self, call: Call[T]) -> Json:
        request = self._http.build_request(
            call.method, call.path, params=call.query, headers=call.headers, content=call.content,
            timeout=self._timeout + call.patience,
        )
        try:
            response = await self._http.send(request)
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{self.config.url}: {error or type(error).__name__}") from error
        if not response.is_success:
            raise calls.problem(response)
        return response.json() if response.content else None

    async def _list(self, parts: tuple[str, ...], filters: dict[str, str]) -> AsyncIterator[Json]:
        cursor: str | None = None
        while True:
            page: Page[Json] = await self._do(calls.page(parts, filters, cursor))
            for item in page.items:
                yield item
            cursor = page.next
            if cursor is None:
                return

    async def _events(self, path: str, after: int | None, deadline: float | None) -> AsyncIterator[Event]:
        reader, attempt = Reader(), 0
        while not reader.is_over:
            query = {"after": str(after)} if after is not None and reader.last is None else {}
            try:
                left = SILENCE if deadline is None else min(SILENCE, deadline - time.monotonic())
                if left <= 0:
                    raise TimeoutError("the run has not ended in time")
                timeout = httpx.Timeout(self._timeout, read=left)
                async with self._http.stream(
                    "GET", path, params=query, headers=reader.headers(), timeout=timeout
                ) as response:
                    if response.status_code == 204:
                        return
                    if not response.is_success:
                        await response.aread()
                        raise calls.problem(response)
                    async for line in response.aiter_lines():
                        for event in reader.line(line):
                            attempt = 0
                            yield event
                        if deadline is not None and time.monotonic() > deadline:
                            raise TimeoutError("the run has not ended in time")
                        if reader.is_over:
                            return
            except Problem as found:
                attempt += 1
                if not found.is_temporary or attempt >= RESUMPTIONS:
                    raise
                await asyncio.sleep(calls.pause(attempt, found))
            except httpx.TransportError as error:
                attempt += 1
                if attempt >= RESUMPTIONS:
                    raise ConnectionFailed(f"{self.config.url}: {error or type(error).__name__}") from error
                await asyncio.sleep(calls.pause(attempt, None))
            reader.reset()


__all__ = ["AsyncClient"]
