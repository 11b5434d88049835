"""Workflows in code: what is printed passes the check and does what the code says."""

from __future__ import annotations

import os
import subprocess

import pytest
import yaml

from stepwell import Client
from stepwell.build import BuildError, Ref, Steps, Workflow
from stepwell.testing import simulate


def check(workflow: Workflow) -> None:
    """What is printed passes ``stepwell check``, is the definition, and loads back."""
    text = workflow.to_yaml()
    done = subprocess.run(
        [os.environ["STEPWELL_BINARY"], "check", "-"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{text}"
    assert yaml.safe_load(text) == workflow.to_dict()
    assert Workflow.load(yaml.safe_load(text)).to_dict() == workflow.to_dict()


def order() -> Workflow:
    order = Workflow("order", description="Charges: and ships", labels={"team": "on", "tier": 2})
    url = "https://pay.example/charges"
    charge = order.http("charge", url, body={"order": order.input.order_id}, retries=3)
    ask = order.approval("ask", message=f"Ship {charge.body.id} to {order.input.name.default('nobody')}?", timeout="2d")
    order.tool("ship", "ship_order", {"payment": charge.body.id, "n": charge.body.lines[0].count}, needs=[ask])
    order.tool("apologise", "send_mail", {"text": charge.error.message}, if_=charge.status != "success")
    order.output = {"payment": charge.body.id}
    return order


def test_references_become_templates_and_needs() -> None:
    tasks = order().to_dict()["tasks"]
    assert tasks["charge"]["body"] == {"order": "{{input.order_id}}"}
    assert "needs" not in tasks["charge"]
    assert tasks["ask"]["needs"] == ["charge"]
    text = """Ship {{tasks.charge.body.id}} to {{input.name ?? "nobody"}}?"""
    assert tasks["ask"]["approval"] == {"message": text, "timeout": "2d"}
    assert tasks["ship"]["needs"] == ["ask", "charge"]
    assert tasks["ship"]["args"]["n"] == "{{tasks.charge.body.lines[0].count}}"
    assert tasks["apologise"]["if"] == 'tasks.charge.status != "success"'
    check(order())


def test_what_is_built_runs_as_written(client: Client) -> None:
    lines = {"id": "p1", "lines": [{"count": 2}]}
    calls = {"charge": {"body": lines}, "ship": {"result": "ok"}}
    run = simulate(order().to_dict(), {"order_id": 7}, calls=calls, answers={"ask": "approve"})
    assert (run.status, run.path, run.output) == ("completed", ["charge", "ask", "ship"], {"payment": "p1"})
    failing = {"charge": {"status": 400}, "apologise": {"result": "ok"}}
    failed = simulate(order().to_yaml(), {"order_id": 7}, calls=failing)
    assert failed.path == ["charge", "apologise"]

    hello = Workflow("built")
    say = hello.tool("say", "echo", {"text": f"Hello, {hello.input.name}!"})
    hello.output = say.body.text
    client.define(hello.to_dict())
    assert client.run("built", {"name": "Ann"}, timeout=30)["output"] == "Hello, Ann!"


def test_bodies_see_what_is_around_them() -> None:
    mailing = Workflow("mailing")
    people = mailing.query("people", "crm", "select * from people where team = $1", [mailing.input.team])

    def body(each: Steps) -> None:
        text = each.javascript("text", "return 'Dear ' + ctx.item.name;")
        each.tool("mail", "send_mail", {"to": each.item.email, "text": text.body, "of": people.body[0].team})

    sent = mailing.for_each("send", people.body, body, max_parallel=3)
    mailing.wait_for_webhook("done", timeout="1h", needs=[sent])
    mailing.sleep("pause", "5s", if_=(sent.status == "success") & ~(mailing.input.quick == True))  # noqa: E712
    mailing.workflow("report", "report", {"sent": sent.body})
    definition = mailing.to_dict()
    assert definition["tasks"]["send"]["needs"] == ["people"]
    assert definition["tasks"]["send"]["tasks"]["mail"]["needs"] == ["text"]
    check(mailing)


def test_a_saga_undoes_what_was_done() -> None:
    trip = Workflow("trip")
    hotel = trip.tool("hotel", "book_hotel", {"city": trip.input.city}, retries=1)
    flight = trip.tool("flight", "book_flight", {"after": hotel.body.id}, retries=1)
    undone = (hotel.status == "success") & (flight.status != "success")
    undo = trip.tool("cancel hotel", "cancel_hotel", {"id": hotel.body.id}, if_=undone)
    trip.output = {"flight": flight.body.id.default(None), "undone": undo.status}
    check(trip)
    calls = {"hotel": {"body": {"id": "h1"}}, "flight": {"status": 409}, "cancel hotel": {"body": {}}}
    run = simulate(trip.to_dict(), {"city": "Oslo"}, calls=calls)
    assert (run.status, run.path) == ("completed", ["hotel", "flight", "cancel hotel"])
    assert run.output == {"flight": None, "undone": "success"}
    booked = simulate(trip.to_dict(), {"city": "Oslo"}, calls={**calls, "flight": {"body": {"id": "f1"}}})
    assert booked.output == {"flight": "f1", "undone": "skipped"}


def test_a_definition_in_yaml_loads_and_can_be_changed(client: Client) -> None:
    text = """
name: loaded
tasks:
  first: {tool: echo, args: {n: "{{input.n}}"}}   # written by hand
  each: {needs: first, for_each: [1, 2], tasks: {one: {tool: echo, args: {n: "{{item}}"}}}}
"""
    client.define(text)
    loaded = Workflow.load(client.workflow("loaded")["definition"])
    assert loaded.to_dict()["tasks"]["each"]["needs"] == ["first"]
    loaded.output = {"n": loaded["first"].body.n}
    client.define(loaded.to_yaml(), name="loaded")
    assert client.run("loaded", {"n": 3}, timeout=30)["output"] == {"n": 3}
    with pytest.raises(BuildError, match="no step 'second'"):
        loaded["second"]
    with pytest.raises(BuildError, match="tasks dialect"):
        Workflow.load({"name": "flow", "flow": {}})


def test_mistakes_are_found_while_building() -> None:
    workflow = Workflow("wrong")
    workflow.tool("a", "echo")
    with pytest.raises(BuildError, match="two steps"):
        workflow.tool("a", "echo")
    workflow.tool("b", "echo", {"x": Ref("tasks").charge.body})
    with pytest.raises(BuildError, match="reads 'charge'"):
        workflow.to_dict()
    other = Workflow("other", output=Ref("tasks")["no such"].body)
    other.tool("a", "echo")
    with pytest.raises(BuildError, match="the output reads 'no such'"):
        other.to_dict()
    for misuse in (lambda: bool(workflow.input.a), lambda: list(workflow.input.a), lambda: bool(workflow.input.a == 1)):
        with pytest.raises(BuildError):
            misuse()


def test_odd_names_and_texts_survive() -> None:
    odd = Workflow("odd: name", labels={"on": "off", "no": "1", "x y": "#1", "true": "null"})
    step = odd.tool("Fetch people", "echo", {"no": "yes", "text": "a: b\n{{'x'}} # é", "n": "007", "empty": "", "t": "~"})
    odd.tool("second", "echo", {"x": step["body"]["odd key"], "list": [1, None, {"a": step.body}]})
    assert odd.to_dict()["tasks"]["second"]["needs"] == ["Fetch people"]
    check(odd)
