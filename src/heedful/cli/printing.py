"""What reaches the terminal, the log and the pipe: whatever names, labels and paths from outside hold.

A label can hold the escape sequences of a terminal, a path can begin with the `::error::` that a continuous
integration takes for its own, and a terminal may know no Greek. So both streams of a command go through `Printable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from heedful.errors import escape

DRAWN = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r)")  # colours, and the steps of a progress bar
COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)  # of GitHub's log, which reads the beginning of a line
OLD_COMMAND = "##["  # anywhere in a line


class Printable:
    """A stream that writes what cannot be shown as escapes, and hands everything else on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._begins = stream, True
        self.unread = False  # nobody will read what is written (`| head -1`)
        self._drawn = stream.isatty()  # elsewhere nobody draws: every control character is somebody else's
        encoding = (stream.encoding or "ascii").lower().replace("-", "").replace("_", "")
        self._encoding = None if encoding in ("utf8", "utf16", "utf32") else stream.encoding
        if encoding in ("ascii", "usascii", "ansix3.41968"):
            self.buffer = None  # or click writes UTF-8 to a terminal that says that it knows ASCII alone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: object) -> int:
        if not isinstance(text, str):  # click asks streams so whether they are of bytes
            raise TypeError(f"a stream of text, not of {type(text).__name__}")
        parts = DRAWN.split(text) if self._drawn else [text]
        shown = "".join(part if self._drawn and i % 2 else escape(part) for i, part in enumerate(parts))
        shown = self._quoted(shown).replace(OLD_COMMAND, r"\x23#[")
        encoding = self._encoding or "utf-8"
        with self._noticing():
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        self._begins = text.endswith("\n")
        return len(text)

    def flush(self) -> None:
        with self._noticing():
            self._stream.flush()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.unread = True
            raise

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def _quoted(self, text: str) -> str:
        """Without a `::` at the beginning of a line."""
        if self._begins:
            return COMMAND.sub(r"\1\\x3a:", text)
        first, end, rest = text.partition("\n")
        return first + end + COMMAND.sub(r"\1\\x3a:", rest)
