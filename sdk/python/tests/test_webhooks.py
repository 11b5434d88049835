"""Signatures by Standard Webhooks, with the engine as the other side, and answers to waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from stepwell import Client, InvalidSignature, Problem, answer_wait, answer_wait_async, sign, verify
from stepwell.testing import ThrowAwayServer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_published_example_is_verified() -> None:
    headers = {
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    body = '{"test": 2432232314}'
    verify(body, headers, SECRET, now=1614265330)
    several = {**headers, "Webhook-Signature": f"v1,AAAA {headers['Webhook-Signature']}"}
    verify(body.encode(), several, SECRET, now=1614265600)
    for changed in (
        {"Webhook-Signature": "v1,AAAA"},
        {"Webhook-Signature": headers["Webhook-Signature"].replace("v1", "v2")},
        {"Webhook-Timestamp": "1614265331"},
        {"Webhook-Timestamp": "soon"},
        {"Webhook-Id": "msg_other"},
    ):
        with pytest.raises(InvalidSignature):
            verify(body, {**headers, **changed}, SECRET, now=1614265330)
    for late in (1614265330 - 301, 1614265330 + 301):
        with pytest.raises(InvalidSignature, match="too old"):
            verify(body, headers, SECRET, now=late)
    with pytest.raises(InvalidSignature, match="webhook-id is missing"):
        verify(body, {}, SECRET)
    with pytest.raises(InvalidSignature):
        verify(body + " ", headers, SECRET, now=1614265330)


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    received: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            received.append((dict(self.headers.items()), self.rfile.read(length)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hook", received
        finally:
            server.shutdown()
            thread.join()


def test_what_the_engine_signs_is_verified(client: Client) -> None:
    client.set_secret("WEBHOOK_SIGNING_SECRET", SECRET)
    with receiver() as (url, received):
        client.define({"name": "signing", "tasks": {"call": {"url": url, "body": {"amount": 7}}}})
        assert client.run("signing", timeout=30)["status"] == "completed"
    client.delete_secret("WEBHOOK_SIGNING_SECRET")
    ((headers, body),) = received
    verify(body, headers, SECRET)
    with pytest.raises(InvalidSignature):
        verify(body, headers, "whsec_b3RoZXI=")


def test_a_signed_call_starts_a_run(client: Client) -> None:
    client.set_secret("HOOK", SECRET)
    workflow = client.define(
        {
            "name": "on-call",
            "trigger": {"webhook": {"verify": {"secret": "HOOK"}, "dedupe": {"header": "webhook-id"}}},
            "tasks": {"say": {"tool": "echo", "args": {"amount": "{{input.amount}}"}}},
        }
    )
    (address,) = client.workflow(workflow["name"])["webhooks"]
    body = '{"amount": 7}'
    headers = {"content-type": "application/json", **sign(body, "msg_1", SECRET)}
    accepted = httpx.post(address, content=body, headers=headers, trust_env=False)
    assert accepted.status_code == 202, accepted.text
    refused = httpx.post(address, content=body + " ", headers=headers, trust_env=False)
    assert refused.status_code == 401
    assert client.wait(accepted.json()["data"]["run_id"], timeout=30)["input"] == {"amount": 7}


WAITING = """
name: {name}
tasks:
  address: {{tool: echo, args: {{url: "{{{{wait.paid.url}}}}"}}}}
  paid: {{needs: address, wait_for_webhook: true}}
output: {{paid: "{{{{tasks.paid.body.amount}}}}"}}
"""


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_wait_is_answered_once(client: Client, asynchronous: bool) -> None:
    name = f"waiting-{asynchronous}".lower()
    client.define(WAITING.format(name=name))
    id = client.trigger(name)["run_id"]
    for event in client.watch(id):
        if event["type"] == "finished" and event.get("step") == "address":
            break
    address = client.get(id)["tasks"]["address"]["output"]["url"]

    def answer(amount: int) -> None:
        if asynchronous:
            asyncio.run(answer_wait_async(address, {"amount": amount}))
        else:
            answer_wait(address, {"amount": amount})

    answer(7)
    assert client.wait(id, timeout=30)["output"] == {"paid": 7}
    with pytest.raises(Problem):
        answer(8)


def test_an_address_that_is_not_genuine_is_refused(running: ThrowAwayServer) -> None:
    with pytest.raises(Problem, match="not-found"):
        answer_wait(f"{running.url.rstrip('/')}/wh/run_0000.paid.x", {})
