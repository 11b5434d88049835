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


@pytest.fixture(scope="session")
def running() -> Iterator[ThrowAwayServer]:
    with ThrowAwayServer() as server:
        yield server


@pytest.fixture
def client(running: ThrowAwayServer) -> Iterator[Client]:
    with Client(running.url, running.key) as client:
        yield client
