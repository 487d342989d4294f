"""Messages between a command and its workers: one JSON object a line, over a pair of sockets. No pickle."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from threading import Lock
from typing import Any


class Channel:
    """`fileno` lets `select` wait for it. Sending is safe from several threads."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._rest = b""
        self._lock = Lock()

    def fileno(self) -> int:
        return self.end.fileno()

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self.end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]] | None:
        """The messages that have come, after waiting for something to come; None: the other end is closed."""
        try:
            data = self.end.recv(1 << 16)
        except (ConnectionError, OSError):
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every message until the other end is closed."""
        while (messages := self.receive()) is not None:
            yield from messages

    def close(self) -> None:
        self.end.close()
