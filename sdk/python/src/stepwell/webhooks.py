"""Requests that Stepwell signs, and calls that it waits for.

``http`` steps and notifications are signed according to Standard Webhooks when the organisation has a secret named
``WEBHOOK_SIGNING_SECRET``; triggers may demand such a signature.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

import httpx

from ._calls import ATTEMPTS, pause, problem
from ._problem import ConnectionFailed, Problem, StepwellError
from ._types import Json

#: Seconds that the clock of the sender may differ.
TOLERANCE = 300


class InvalidSignature(StepwellError):
    """The request was not signed with the secret, or not recently."""


def verify(
    payload: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> None:
    """Raises ``InvalidSignature`` unless the secret signed the request. ``payload`` is the body as received."""
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message, timestamp, signatures = (found[f"webhook-{part}"] for part in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise InvalidSignature(f"the header {error.args[0]} is missing") from None
    # Digits only: `int` takes more.
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise InvalidSignature("webhook-timestamp is not a number of seconds")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise InvalidSignature("the request is too old, or the clocks differ")
    expected = _signature(payload, message, timestamp, secret)
    # While a secret is changed, there is one signature for each.
    given = [value for version, _, value in (part.partition(",") for part in signatures.split(" ")) if version == "v1"]
    if not any(hmac.compare_digest(value.encode(), expected.encode()) for value in given):
        raise InvalidSignature("no signature matches")


def sign(payload: bytes | str, message: str, secret: str, *, timestamp: int | None = None) -> dict[str, str]:
    """The headers of a signed request, such as a call of a trigger with ``verify``. ``message`` is its id."""
    at = str(int(time.time()) if timestamp is None else timestamp)
    signature = _signature(payload, message, at, secret)
    return {"webhook-id": message, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}


def _signature(payload: bytes | str, message: str, timestamp: str, secret: str) -> str:
    content = payload.encode() if isinstance(payload, str) else payload
    signed = f"{message}.{timestamp}.".encode() + content
    return base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()


def _key(secret: str) -> bytes:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise InvalidSignature("what follows whsec_ in the secret is not base64") from None


def answer_wait(address: str, body: Json = None, *, timeout: float = 30.0) -> None:
    """Answers a step that waits for a webhook. ``address`` is its ``{{wait.<step>.url}}``; no key is needed.

    Repeated after a lost connection; a step takes one answer, so a repetition is harmless.
    """
    with httpx.Client(timeout=timeout, trust_env=False) as http:
        for attempt in range(1, ATTEMPTS + 1):
            response: httpx.Response | httpx.TransportError
            try:
                response = http.post(address, content=_content(body), headers=_HEADERS)
            except httpx.TransportError as error:
                response = error
            delay = _next(attempt, response)
            if delay is None:
                return
            time.sleep(delay)


async def answer_wait_async(address: str, body: Json = None, *, timeout: float = 30.0) -> None:
    """Like :func:`answer_wait`."""
    async with httpx.AsyncClient(timeout=timeout, trust_env=False) as http:
        for attempt in range(1, ATTEMPTS + 1):
            response: httpx.Response | httpx.TransportError
            try:
                response = await http.post(address, content=_content(body), headers=_HEADERS)
            except httpx.TransportError as error:
                response = error
            delay = _next(attempt, response)
            if delay is None:
                return
            await asyncio.sleep(delay)


_HEADERS = {"content-type": "application/json"}


def _content(body: Json) -> bytes:
    return json.dumps({} if body is None else body, allow_nan=False).encode()


def _next(attempt: int, found: httpx.Response | httpx.TransportError) -> float | None:
    """How long to wait before the next attempt; ``None`` if the answer has arrived."""
    if isinstance(found, httpx.TransportError):
        if attempt >= ATTEMPTS:
            raise ConnectionFailed(str(found) or type(found).__name__) from found
        return pause(attempt, None)
    if found.is_success:
        return None
    refused: Problem = problem(found)
    # An earlier attempt arrived, and its answer was lost.
    if attempt > 1 and refused.code == "repeated":
        return None
    if not refused.is_temporary or attempt >= ATTEMPTS:
        raise refused
    return pause(attempt, refused)
