"""A worker: a process that does the tasks it is sent, `python -m heedful.engine.worker HANDLE`.

When the command that started it is gone, however it went, its end of the channel closes and the worker ends
at once: what it leaves is what a kill leaves, and the next command goes on from there.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
from typing import Any

from heedful.engine.channel import Channel


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
    from heedful.engine.executor import Executor
    from heedful.engine.progress import Relay
    from heedful.engine.task import Task
    from heedful.engine.workspace import Workspace

    executor = Executor(Workspace.from_json(inbox.get()["workspace"]))
    while True:
        channel.send(executor.attempt(Task.from_json(inbox.get()["task"]), Relay(channel.send)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
