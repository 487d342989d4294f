"""`heedful`, and `python -m heedful`."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # the exit code of a command that was ended by Ctrl-C


def main() -> None:
    """The command. Ctrl-C while its parts are still being imported ends it without a traceback."""
    before = signal.signal(signal.SIGINT, _end)
    from heedful.cli import main as command

    signal.signal(signal.SIGINT, before)
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
