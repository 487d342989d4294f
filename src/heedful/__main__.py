"""`heedful`, and `python -m heedful`."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # the exit code of a command that was ended by Ctrl-C


def main() -> None:
    """The command. Ctrl-C while its parts are still being imported ends it without a traceback."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so in the background
    if interruptible:
        signal.signal(signal.SIGINT, _end)
    from heedful.cli import main as command

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
