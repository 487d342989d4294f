"""`python -m heedful`, and the command `heedful`."""

from __future__ import annotations

import signal


def main() -> None:
    """Ctrl-C ends the program at once while it is still loading, and is answered by the command after that."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so in the background
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from heedful.cli import main as command

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


if __name__ == "__main__":
    main()
