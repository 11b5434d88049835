"""For tests of your own code: definitions on virtual time, and a server that is thrown away afterwards.

    from stepwell.testing import server

    def test_hello():
        with server() as stepwell:
            stepwell.define("name: hello\\ntasks: {a: {tool: echo}}")
            assert stepwell.run("hello")["status"] == "completed"

    def test_a_late_answer():
        run = simulate(open("pay.yaml").read(), {"amount": 5}, answers={"ask": "timeout"})
        assert (run.status, run.took) == ("cancelled", 3600)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import _simulate
from ._problem import StepwellError
from ._simulate import Simulated, SimulationFailed
from ._sync import Client
from ._types import Json

__all__ = ["Simulated", "SimulationFailed", "ThrowAwayServer", "server", "simulate"]


def _binary(given: str | os.PathLike[str] | None) -> str:
    found = os.fspath(given) if given else os.environ.get("STEPWELL_BINARY") or shutil.which("stepwell")
    # The package for a platform has the program, in an environment that need not be active.
    beside = os.path.join(sysconfig.get_path("scripts"), "stepwell")
    if not found and os.path.exists(beside):
        return beside
    if not found:
        raise StepwellError("no stepwell binary: set STEPWELL_BINARY")
    return found


def simulate(
    definition: str | bytes | Mapping[str, Json],
    input: Json = None,
    *,
    calls: Mapping[str, Json] | None = None,
    answers: Mapping[str, Json] | None = None,
    binary: str | os.PathLike[str] | None = None,
) -> Simulated:
    """Runs a definition on virtual time, without a server, and without making a call.

    ``calls`` has the results of calls by step and ``answers`` what arrives at gates and waits, both as in
    docs/testing.md: ``calls={"send": [{"status": 503}, {"body": {"id": 1}}]}``, ``answers={"ask": "approve"}``. A step
    that needs one that is not there raises ``SimulationFailed``.
    """
    return _simulate.simulate(definition, input, calls=calls, answers=answers, binary=_binary(binary))


class ThrowAwayServer:
    """A server on a directory of its own, which goes away with it.

    ``binary`` defaults to ``STEPWELL_BINARY``, else to ``stepwell`` on the path.
    """

    def __init__(
        self,
        binary: str | os.PathLike[str] | None = None,
        *,
        config: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.binary = _binary(binary)
        self._home = tempfile.TemporaryDirectory(prefix="stepwell-")
        self.data = Path(self._home.name) / "data"
        self._environment = {**os.environ, **(environment or {}), "STEPWELL_DATA": str(self.data)}
        for name in ("STEPWELL_URL", "STEPWELL_KEY"):
            self._environment.pop(name, None)
        self._config = Path(self._home.name) / "stepwell.yaml" if config is not None else None
        if self._config is not None and config is not None:
            self._config.write_text(config, encoding="utf-8")
        self._process: subprocess.Popen[str] | None = None
        self._listen = "127.0.0.1:0"
        try:
            self.start()
        except BaseException:
            self._home.cleanup()
            raise

    def start(self) -> None:
        """Starts the server, again after :meth:`kill`, on the same address and directory."""
        command = [self.binary, "serve", "--listen", self._listen]
        if self._config is not None:
            command += ["--config", str(self._config)]
        log = Path(self._home.name) / "log"
        with log.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        # It says where it is as soon as it serves.
        if not self._process.stdout.readline():
            self._process.wait()
            raise StepwellError(f"the server did not start: {log.read_text(encoding='utf-8').strip()}")
        self.url = (self.data / "server.url").read_text(encoding="utf-8").strip()
        self._listen = self.url.split("//", 1)[1].rstrip("/")

    @property
    def key(self) -> str:
        return (self.data / "admin.key").read_text(encoding="utf-8").strip()

    def kill(self) -> None:
        """Ends the server at once, as a crash does."""
        self._end(kill=True)

    def stop(self) -> None:
        """Ends the server and removes all that it stored."""
        self._end(kill=False)
        self._home.cleanup()

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __enter__(self) -> ThrowAwayServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def server(binary: str | os.PathLike[str] | None = None, *, config: str | None = None) -> Iterator[Client]:
    """A client of a server that is thrown away afterwards."""
    with ThrowAwayServer(binary, config=config) as running, Client(running.url, running.key) as client:
        yield client
