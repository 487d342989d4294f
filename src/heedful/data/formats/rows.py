"""What every reader gives, and the ledger of what it could not give."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from heedful.errors import Mistake
from heedful.records import Saying, Split

Spans = tuple[tuple[int, int], ...]  # start and end (exclusive) of stretches of characters

SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
    "testing": "test",
}


@dataclass(frozen=True, slots=True)
class Raw:
    """One row as its file has it, before tokenisation.

    `id` is "file:line" (the file's name alone where a file holds one text). `label` is a name, or the
    number of a label as text. `split` is None where the source does not say it: then it is drawn.
    """

    id: str
    text: str
    label: str
    split: Split | None = None
    query: str | None = None
    evidence: Spans | None = None  # characters of `text` that decide the label, where known
    candidates: tuple[str, ...] | None = None  # the answers that are possible here
    saying: Saying | None = None  # of prompts for language models; `label` is then SAID
    marks: tuple[tuple[str, Spans], ...] = ()  # other characters of `text` that are marked, by the mark's name


@dataclass(slots=True)
class Ledger:
    """Keeps account of rows: what is wrong with them, and what a corpus leaves out by its definition.

    Without `skip_bad` the first bad row raises a `Mistake`; with it every bad row becomes a sentence.
    """

    skip_bad: bool = False
    skipped: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def bad(self, path: Path | str, line: int | None, what: str) -> None:
        place = f"{path}, line {line}" if line is not None else f"{path}"
        if not self.skip_bad:
            raise Mistake(f"{place}: {what} (fix it, or skip such rows with --skip-bad).")
        self.skipped.append(f"{place}: {what}.")

    def bad_row(self, row: Raw, folder: Path | None, what: str) -> None:
        """The same for a row that has been read already, whose place is in its id."""
        file, _, line = row.id.rpartition(":")
        numbered = line.isdigit() and file != ""
        name = file if numbered else row.id
        self.bad(folder / name if folder else name, int(line) if numbered else None, what)


def word_spans(text: str, separator: str | None = None) -> list[tuple[int, int]]:
    """Where the words of `text.split(separator)` stand in `text`."""
    spans, at = [], 0
    for word in text.split(separator):
        at = text.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word) + (separator is not None)
    return spans


# The lines of a text file, plain or gzipped, with their numbers, and JSON from them.


GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked when it begins like a gzip file, whatever its name."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would wait for ever, a device never end
            raise Mistake(f"{path} is not a file but a pipe or a device: write the rows to a file first.")
        file = path.open("rb")
    except FileNotFoundError:
        raise Mistake(f"there is no file {path}.") from None
    except IsADirectoryError:
        raise Mistake(f"{path} is a folder; a file is needed here.") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise Mistake(f"{str(path)!r} is not a valid file name: {error}.") from None
    start = file.peek(2)[:2]
    if start == GZIP:
        file.close()
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".gz" and start:
        file.close()
        raise Mistake(f"{path} is named .gz but is not a gzip file; rename it or pack it again.")
    return file


def byte_lines(path: Path, ledger: Ledger) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, line with its end); a byte order mark at the beginning is dropped."""
    number = 0
    with open_bytes(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise Mistake(f"{path} is written in UTF-16; save it as UTF-8.")
                    line = line.removeprefix(BOM)
                yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            ledger.bad(path, number + 1, "the gzip file is cut short or damaged from here on")


def text_lines(path: Path, ledger: Ledger) -> Iterator[tuple[int, str]]:
    """(line number, line without its end), decoded as UTF-8."""
    for number, line in byte_lines(path, ledger):
        try:
            yield number, line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            ledger.bad(path, number, not_utf8(error))


def not_utf8(error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return f"byte 0x{byte:02x} at position {error.start + 1} of the line is not valid UTF-8"


def json_lines(path: Path, ledger: Ledger) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) for each line that is not blank."""
    for number, line in text_lines(path, ledger):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            ledger.bad(path, number, f"this is not JSON ({error.msg} at column {error.colno})")
            continue
        except ValueError:  # Python reads no integer of more than 4300 digits
            ledger.bad(path, number, "a number has thousands of digits")
            continue
        except RecursionError:
            ledger.bad(path, number, "lists or objects are nested a thousand deep")
            continue
        if isinstance(value, dict):
            yield number, value
        elif number == 1 and isinstance(value, list):
            raise Mistake(f"{path} is one JSON array; write one object on each line (JSONL).")
        else:
            ledger.bad(path, number, f"a JSON object is needed, not {type(value).__name__}")


def whole_text(path: Path, ledger: Ledger, encoding: str = "utf-8") -> str | None:
    """All of a small text file, for formats that keep one text in each file; None if it was bad."""
    try:
        with open_bytes(path) as file:
            data = file.read().removeprefix(BOM)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        ledger.bad(path, None, "the gzip file is cut short or damaged")
        return None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        ledger.bad(path, data.count(b"\n", 0, error.start) + 1, f"not valid {encoding}")
        return None
