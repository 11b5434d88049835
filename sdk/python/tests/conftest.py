"""One server for the tests that only use it: the real binary on a directory that goes away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Client
from stepwell.testing import ThrowAwayServer

BUILT = Path(__file__).resolve().parents[3] / "target" / "debug" / "stepwell"
os.environ.setdefault("STEPWELL_BINARY", str(BUILT))


#: A database for the server that tests share, in place of the embedded store.
DATABASE = os.environ.get("SDK_TEST_DATABASE")


@pytest.fixture(scope="session")
def running() -> Iterator[ThrowAwayServer]:
    key = {"STEPWELL_MASTER_KEY": "5a" * 32}
    with ThrowAwayServer(environment={"STEPWELL_DATABASE": DATABASE, **key} if DATABASE else {}) as server:
        yield server


@pytest.fixture
def client(running: ThrowAwayServer) -> Iterator[Client]:
    with Client(running.url, running.key) as client:
        yield client
