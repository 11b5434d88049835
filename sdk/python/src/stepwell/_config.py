"""Which server to talk to, and with which key: as the command line finds them."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ._problem import StepwellError


@dataclass(frozen=True)
class Config:
    url: str
    key: str | None

    @staticmethod
    def find(url: str | None = None, key: str | None = None, data: str | os.PathLike[str] | None = None) -> Config:
        """The given values, else ``STEPWELL_URL`` and ``STEPWELL_KEY``, else those in the data directory.

        The key in the data directory is sent only to servers on this machine.
        """
        directory = Path(data) if data is not None else _data_directory()
        url = url or os.environ.get("STEPWELL_URL") or None
        key = key or os.environ.get("STEPWELL_KEY") or None
        if url is None:
            url = _read(directory / "server.url")
            if url is None:
                raise StepwellError(f"no server: set STEPWELL_URL, or start `stepwell serve` (looked in {directory})")
        if key is None and _is_local(url):
            key = _read(directory / "admin.key")
        return Config(url.rstrip("/"), key)


def _data_directory() -> Path:
    given = os.environ.get("STEPWELL_DATA")
    if given:
        return Path(given)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "stepwell"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
