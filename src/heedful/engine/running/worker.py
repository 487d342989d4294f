"""Messages between a command and its workers: one JSON object a line, over a pair of sockets. No pickle."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
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


# A worker: a process that does the tasks it is sent, `python -m heedful.engine.running.worker HANDLE`.
#
# When the command that started it is gone, however it went, its end of the channel closes and the worker ends
# at once: what it leaves is what a kill leaves, and the next command goes on from there.


def main(handle: int) -> None:
    channel = Channel(socket.socket(fileno=handle))
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(channel, inbox), daemon=True).start()
    try:
        work(channel, inbox)
    except KeyboardInterrupt:
        channel.send({"outcome": "stopped"})


def listen(channel: Channel, inbox: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Beside the work: take in tasks, and notice when it is time to stop."""
    for message in channel:
        if "stop" in message:
            main_thread = threading.main_thread().ident
            assert main_thread is not None
            signal.pthread_kill(main_thread, signal.SIGINT)  # also wakes it while it waits
        else:
            inbox.put(message)
    os._exit(1)


def work(channel: Channel, inbox: queue.SimpleQueue[dict[str, Any]]) -> None:
    from heedful.engine.running.executor import Executor
    from heedful.engine.running.progress import Relay
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.task import Task

    executor = Executor(Workspace.from_json(inbox.get()["workspace"]))
    while True:
        channel.send(executor.attempt(Task.from_json(inbox.get()["task"]), Relay(channel.send)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
