"""A definition on virtual time, without a server, by the binary's ``test`` command."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._calls import definition as text_of
from ._problem import StepwellError
from ._types import ENDED, Json, StepError


class SimulationFailed(StepwellError):
    """The definition is refused, or a step needs a result or an answer that was not given."""


@dataclass(frozen=True)
class Simulated:
    """How a simulated run ended."""

    status: str
    output: Json
    error: StepError | None
    #: The steps that ran, in the order in which they started.
    path: list[str]
    #: Virtual seconds from start to end.
    took: float


def simulate(
    definition: str | bytes | Mapping[str, Json],
    input: Json = None,
    *,
    calls: Mapping[str, Json] | None = None,
    answers: Mapping[str, Json] | None = None,
    binary: str,
) -> Simulated:
    case: dict[str, Json] = {
        "name": "simulation",
        "input": {} if input is None else input,
        "calls": dict(calls or {}),
        "answers": dict(answers or {}),
    }
    with tempfile.TemporaryDirectory(prefix="stepwell-") as home:
        content = text_of(definition)
        # JSON is read as such, so that its faults are those of JSON.
        name = "definition.json" if content.lstrip().startswith(b"{") else "definition.yaml"
        (Path(home) / name).write_bytes(content)
        found = _play(binary, Path(home), case)
        run = found["run"]
        if run["status"] in ENDED:
            # A case demands a status; this one demands what it found, so that all other problems show.
            found = _play(binary, Path(home), {**case, "expect": {"status": run["status"]}})
        if found["problems"]:
            raise SimulationFailed("\n".join(found["problems"]))
    return Simulated(run["status"], run["output"], run["error"], run["path"], run["took_ms"] / 1000)


def _play(binary: str, home: Path, case: dict[str, Json]) -> dict[str, Any]:
    (home / "definition.test.json").write_text(json.dumps({"cases": [case]}, allow_nan=False), encoding="utf-8")
    command = [binary, "test", "--json", "definition.test.json"]
    try:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, env=dict(os.environ))
    except OSError as error:
        raise StepwellError(f"{binary} cannot be started: {error}") from error
    if not done.stdout.strip():
        raise SimulationFailed(done.stderr.strip())
    found: dict[str, Any] = json.loads(done.stdout)
    return found
