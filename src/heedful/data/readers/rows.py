"""What every reader gives, and the ledger of what it could not give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from heedful.errors import Mistake
from heedful.records import Split

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
            raise Mistake(f"{place}: {what} (mend it, or leave such rows out with --skip-bad).")
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
