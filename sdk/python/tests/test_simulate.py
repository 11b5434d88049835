"""Definitions on virtual time."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from stepwell import StepwellError
from stepwell.testing import SimulationFailed, _binary, simulate

PAY = """
name: pay
tasks:
  ask: {approval: {message: "Pay?", timeout: 1h}}
  send: {needs: ask, url: https://bank.example/pay, body: {amount: "{{input.amount}}"}, retries: 2}
output: {receipt: "{{tasks.send.body.id ?? 'none'}}"}
"""


def test_a_run_ends_as_its_calls_and_answers_say() -> None:
    results = {"send": [{"status": 503}, {"body": {"id": "r1"}}]}
    run = simulate(PAY, {"amount": 5}, calls=results, answers={"ask": {"answer": "approve", "after": "10m"}})
    assert (run.status, run.output, run.path) == ("completed", {"receipt": "r1"}, ["ask", "send"])
    assert 600 < run.took < 700
    late = simulate(PAY, answers={"ask": "timeout"})
    assert (late.status, late.took) == ("cancelled", 3600)
    failed = simulate(PAY, {"amount": 5}, calls={"send": {"status": 400}}, answers={"ask": "approve"})
    assert failed.status == "failed" and failed.error is not None and failed.error["code"] == "http_400"


def test_a_definition_may_be_an_object() -> None:
    definition = {"name": "sleeping", "tasks": {"nap": {"sleep": "3d"}}}
    assert simulate(definition).took == 3 * 24 * 3600


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SimulationFailed, match='step "send" makes a call'):
        simulate(PAY, {"amount": 5}, answers={"ask": "approve"})
    with pytest.raises(SimulationFailed, match="did you mean"):
        simulate("name: a\ntasks: {b: {tol: echo}}")
    with pytest.raises(SimulationFailed, match="sned"):
        simulate(PAY, {"amount": 5}, calls={"sned": {"status": 400}})
    with pytest.raises(StepwellError, match="cannot be started"):
        simulate(PAY, binary="/no/such/stepwell")


def test_the_program_that_was_installed_beside_the_client_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "stepwell"
    program.touch()
    monkeypatch.delenv("STEPWELL_BINARY")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert _binary(None) == str(program)
    program.unlink()
    with pytest.raises(StepwellError):
        _binary(None)
