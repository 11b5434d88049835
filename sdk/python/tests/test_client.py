"""The client against the real server."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from stepwell import Approval, AsyncClient, Client, ConnectionFailed, EndEvent, Event, Problem, Run, StepwellError
from stepwell.testing import ThrowAwayServer, server

NUMBERS = itertools.count()

GATED = """
name: {name}
tasks:
  ask: {{approval: {{message: "Pay {{{{input.amount}}}}?", form: {{type: object}}}}}}
  paid: {{needs: ask, wait_for_webhook: true}}
  thank: {{needs: paid, tool: echo, args: {{amount: "{{{{tasks.paid.body.amount}}}}"}}}}
output: {{amount: "{{{{tasks.thank.body.amount}}}}"}}
"""


def unique(name: str) -> str:
    return f"{name}-{next(NUMBERS)}"


def echo(name: str) -> dict[str, object]:
    return {
        "name": name,
        "tasks": {"say": {"tool": "echo", "args": {"text": "Hello, {{input.name ?? 'world'}}!"}}},
        "output": {"said": "{{tasks.say.body.text}}"},
    }


def test_a_definition_is_stored_checked_and_versioned(client: Client) -> None:
    name = unique("stored")
    assert client.define(echo(name))["version"] == 1
    changed = {**echo(name), "description": "another"}
    assert client.define(changed, name=name)["version"] == 2
    assert client.workflow(name)["description"] == "another"
    with pytest.raises(Problem) as caught:
        client.check(f"name: {name}\ntasks: {{a: {{tool: echo, needs: b}}}}")
    assert caught.value.code == "invalid-definition" and caught.value.status == 422
    (fault,) = caught.value.errors
    assert (fault.code, fault.path, fault.pointer) == ("unknown-step", "tasks.a.needs", "/tasks/a/needs")
    assert client.check(echo(name)) == []
    (warning,) = client.check({**echo(name), "defaults": {"timeout": 30}})
    assert warning.code == "suspicious-duration"
    (guessed,) = problem_of(lambda: client.check({"name": name, "tasks": {"a": {"tool": "echo", "retry": 3}}})).errors
    assert guessed.fix is not None and guessed.fix["path"]
    assert "tasks.a.needs" in str(caught.value)
    client.delete_workflow(name)
    with pytest.raises(Problem, match="not-found"):
        client.workflow(name)


def problem_of(call: Callable[[], object]) -> Problem:
    with pytest.raises(Problem) as caught:
        call()
    return caught.value


def test_names_that_a_url_would_swallow_are_refused(client: Client) -> None:
    for name in ("", ".", ".."):
        with pytest.raises(StepwellError, match="not a valid name"):
            client.delete_workflow(name)
    with pytest.raises(StepwellError, match="comma"):
        client.trigger("a", labels={"team": "sales,support"})


def test_operations_without_a_method_can_be_called(client: Client) -> None:
    name = unique("called")
    client.define(echo(name))
    listed = client.call("GET", "workflows", query={"q": name, "limit": 1})
    assert [workflow["name"] for workflow in listed["data"]] == [name]
    paused = client.call("post", "workflows", name, "pause", body={})
    assert paused["data"]["paused"] is True
    refused = problem_of(lambda: client.call("POST", "runs", "run_0000", "release"))
    assert refused.code == "not-found"


def test_a_run_is_started_and_awaited(client: Client) -> None:
    name = unique("run")
    client.define(echo(name))
    run = client.run(name, {"name": "Ann"}, timeout=30, labels={"team": "sales"})
    assert (run["status"], run["output"]) == ("completed", {"said": "Hello, Ann!"})
    assert run["labels"]["team"] == "sales"
    started = client.trigger(name)
    assert client.wait(started["run_id"], timeout=30)["output"] == {"said": "Hello, world!"}


def test_a_key_starts_one_run(client: Client) -> None:
    name = unique("once")
    client.define(echo(name))
    first = client.trigger(name, {"name": "a"}, idempotency_key="order-7")
    again = client.trigger(name, {"name": "a"}, idempotency_key="order-7")
    assert first["run_id"] == again["run_id"]
    with pytest.raises(Problem) as caught:
        client.trigger(name, {"name": "b"}, idempotency_key="order-7")
    assert caught.value.code == "idempotency-key-reused" and not caught.value.is_temporary


def test_lists_go_through_all_pages(client: Client) -> None:
    name = unique("many")
    client.define(echo(name))
    ids = {client.trigger(name)["run_id"] for _ in range(7)}
    found = [run["run_id"] for run in client.runs(workflow=name, limit=2)]
    assert len(found) == 7 and set(found) == ids
    ended = [client.wait(id, timeout=30)["status"] for id in ids]
    assert ended == ["completed"] * 7
    assert sum(1 for _ in client.runs(workflow=name, status=["completed", "failed"], limit=3)) == 7
    assert name in [workflow["name"] for workflow in client.workflows(limit=1)]


def test_gates_and_webhooks_are_answered(client: Client) -> None:
    name = unique("gated")
    client.define(GATED.format(name=name))
    id = client.trigger(name, {"amount": 5})["run_id"]
    assert gate_of(client, id)["asks"]["message"] == "Pay 5?"
    client.approve(id, "ask", comment="fine", data={"limit": 7})
    client.deliver(id, "paid", {"amount": 7})
    assert client.wait(id, timeout=30)["output"] == {"amount": 7}


def gate_of(client: Client, id: str) -> Approval:
    """The open gate of a run, once the run has reached it."""
    for _ in client.watch(id):
        for gate in client.approvals(limit=1):
            if gate["run_id"] == id:
                return gate
    raise AssertionError("the run has no gate")


def test_a_denied_run_can_be_retried_and_cancelled(client: Client) -> None:
    name = unique("denied")
    client.define(GATED.format(name=name))
    id = client.trigger(name, {"amount": 5})["run_id"]
    gate_of(client, id)
    client.deny(id, "ask", comment="too much")
    assert client.wait(id, timeout=30)["status"] == "cancelled"
    assert client.retry(id)["status"] in ("running", "paused")
    assert client.cancel(id, "not today")["status"] == "cancelled"
    with pytest.raises(Problem) as caught:
        client.cancel(id)
    assert caught.value.status_now == "cancelled"


def test_secrets_and_schedules(client: Client) -> None:
    secret = unique("SECRET").replace("-", "_")
    assert client.set_secret(secret, "sesame-opens", hosts=["api.example.com"])["version"] == 1
    assert client.set_secret(secret, "sesame-closes")["hosts"] == ["api.example.com"]
    assert secret in [found["name"] for found in client.secrets()]
    client.delete_secret(secret)
    assert secret not in [found["name"] for found in client.secrets()]
    name = unique("nightly")
    client.define({**echo(name), "trigger": {"cron": "30 3 * * *"}})
    (schedule,) = client.schedules(name)
    assert schedule["cron"] == "30 3 * * *" and len(schedule["next"]) == 10
    assert any(found["workflow"] == name for found in client.schedules())
    added = client.add_schedule(name, "@daily", timezone="Europe/Paris", input={"text": "again"})
    assert added["by"] and len(client.schedules(name)) == 2
    client.remove_schedule(added["id"])
    assert len(client.schedules(name)) == 1


def test_a_run_begins_later(client: Client) -> None:
    name = unique("later")
    client.define(echo(name))
    at = datetime.now(timezone.utc) + timedelta(days=2)
    for started in (client.trigger(name, at=at), client.trigger(name, delay=1_234_567.5)):
        assert started["status"] == "scheduled" and started["scheduled_for"]
        assert client.cancel(started["run_id"])["status"] == "cancelled"


def end_of(events: list[Event]) -> EndEvent:
    last = events[-1]
    assert last["type"] == "end"
    return last


def test_a_watch_ends_with_the_run(client: Client) -> None:
    name = unique("watched")
    client.define(echo(name))
    id = client.trigger(name)["run_id"]
    events = list(client.watch(id))
    assert events[0]["type"] == "created" and end_of(events)["status"] == "completed"
    # The type of an event tells which fields it has.
    (finished,) = (event for event in events if event["type"] == "finished")
    assert (finished["step"], finished["status"], finished["attempt"]) == ("say", "success", 1)
    with pytest.raises(Problem, match="not-found"):
        list(client.watch("run_0000"))


def test_a_watch_survives_a_restart_of_the_server() -> None:
    with ThrowAwayServer() as running, Client(running.url, running.key) as client:
        client.define(GATED.format(name="gated"))
        id = client.trigger("gated", {"amount": 1})["run_id"]
        seen: list[Event] = []
        reached, over = threading.Event(), threading.Event()

        def watch() -> None:
            with Client(running.url, running.key) as watcher:
                for event in watcher.watch(id):
                    seen.append(event)
                    if event["type"] != "created":
                        reached.set()
            over.set()

        thread = threading.Thread(target=watch)
        thread.start()
        assert reached.wait(30)
        running.kill()
        running.start()
        client.approve(id, "ask", data={})
        client.deliver(id, "paid", {"amount": 2})
        assert over.wait(30)
        thread.join()
        assert end_of(seen)["status"] == "completed"
        # Nothing is missing and nothing came twice: the log says what there is.
        logged = [event["type"] for event in client._list(("runs", id, "events"), {})]
        assert [event["type"] for event in seen[:-1]] == logged


def test_a_wait_ends_at_its_deadline(client: Client) -> None:
    name = unique("slow")
    client.define(GATED.format(name=name))
    with pytest.raises(TimeoutError):
        client.run(name, {"amount": 1}, timeout=0.2)


def test_a_server_that_is_gone_is_an_error() -> None:
    with pytest.raises(ConnectionFailed), Client("http://127.0.0.1:1", "key") as client:
        client.cancel("run_1")


def test_a_wrong_key_is_a_problem(running: ThrowAwayServer) -> None:
    with Client(running.url, "sw_wrong") as client, pytest.raises(Problem) as caught:
        client.get("run_1")
    assert (caught.value.status, caught.value.code) == (401, "unauthorised")


def test_server_and_key_are_found(running: ThrowAwayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPWELL_URL", "STEPWELL_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEPWELL_DATA", str(running.data))
    with Client() as client:
        assert client.config.url == running.url.rstrip("/") and client.config.key == running.key
        list(client.workflows())
    monkeypatch.setenv("STEPWELL_URL", "https://flows.example.com/")
    # The key of the data directory is for servers on this machine.
    assert Client().config.key is None
    monkeypatch.setenv("STEPWELL_KEY", "sw_1")
    assert (Client().config.url, Client().config.key) == ("https://flows.example.com", "sw_1")
    monkeypatch.delenv("STEPWELL_URL")
    monkeypatch.setenv("STEPWELL_DATA", "/nowhere")
    with pytest.raises(StepwellError, match="STEPWELL_URL"):
        Client()


def test_a_server_is_thrown_away() -> None:
    with server() as stepwell:
        stepwell.define(echo("hello"))
        assert stepwell.run("hello", timeout=30)["status"] == "completed"
        url = stepwell.config.url
    with Client(url, "key", timeout=1) as client, pytest.raises(ConnectionFailed):
        client.cancel("run_1")


def test_the_asynchronous_client_does_the_same(running: ThrowAwayServer) -> None:
    async def everything() -> tuple[Run, list[Event], list[str]]:
        async with AsyncClient(running.url, running.key) as client:
            name = unique("async")
            await client.define(echo(name))
            many = await asyncio.gather(*(client.run(name, {"name": str(n)}, timeout=30) for n in range(5)))
            assert [run["output"]["said"] for run in many] == [f"Hello, {n}!" for n in range(5)]
            events = [event async for event in client.watch(many[0]["run_id"])]
            listed = [run["run_id"] async for run in client.runs(workflow=name, limit=2)]
            return many[0], events, listed

    run, events, listed = asyncio.run(everything())
    assert run["run_id"] in listed and len(listed) == 5
    assert end_of(events)["status"] == "completed"


def test_both_clients_have_the_same_methods() -> None:
    def shape(client: type) -> dict[str, list[str]]:
        found = inspect.getmembers(client, inspect.isfunction)
        names = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
        return {names.get(name, name): list(inspect.signature(method).parameters) for name, method in found}

    assert shape(Client) == shape(AsyncClient)
