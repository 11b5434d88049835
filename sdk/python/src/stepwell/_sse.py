"""Reads server-sent events, and remembers where a stream stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from ._types import Event, Json


class Reader:
    """Collects lines into events. ``last`` is the id to resume after."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.is_over = False
        self._name = ""
        self._data: list[str] = []
        self._id: str | None = None

    def headers(self) -> dict[str, str]:
        sent = {"accept": "text/event-stream"}
        if self.last is not None:
            sent["last-event-id"] = self.last
        return sent

    def reset(self) -> None:
        """Forgets an event that the connection cut off."""
        self._name, self._data, self._id = "", [], None

    def line(self, text: str) -> Iterator[Event]:
        if text == "":
            yield from self._dispatch()
        elif not text.startswith(":"):
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._name = value
            elif name == "id":
                self._id = value

    def _dispatch(self) -> Iterator[Event]:
        name, data, id = self._name, self._data, self._id
        self.reset()
        if id is not None:
            self.last = id
        if not data:
            return
        event: dict[str, Json] = json.loads("\n".join(data))
        if name == "end":
            self.is_over = True
        yield cast("Event", {"type": name, **event})
