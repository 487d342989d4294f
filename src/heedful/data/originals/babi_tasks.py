"""bAbI (Weston et al. 2015): `qa<task>_<name>_{train,test}.txt`.

Lines are numbered from 1 within a story; a question line holds tab separated question, answer and the
line numbers of the supporting statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, text_lines
from heedful.errors import Mistake
from heedful.records import Split

SPLITS: tuple[Split, ...] = ("train", "test")


def read(folder: Path, ledger: Ledger, task: int) -> Iterator[Raw]:
    """One row is one question, its text all statements of the story so far (no earlier questions)."""
    for split in SPLITS:
        found = sorted(folder.glob(f"qa{task}_*_{split}.txt"))
        if not found:
            raise Mistake(f"{folder} has no qa{task}_..._{split}.txt.")
        yield from _read_file(found[0], ledger, split)


def _read_file(path: Path, ledger: Ledger, split: Split) -> Iterator[Raw]:
    story: list[tuple[str, str]] = []  # (line number within the story, statement)
    for line, text in text_lines(path, ledger):
        if not text.strip():
            continue
        number, _, rest = text.strip().partition(" ")
        if not number.isdigit() or not rest:
            ledger.bad(path, line, "a line begins with its number within the story")
            continue
        if number == "1":
            story = []
        if "\t" not in rest:
            story.append((number, rest.strip()))
            continue
        parts = [part.strip() for part in rest.split("\t")]
        spans, passage = {}, ""
        for statement_number, statement in story:
            passage += " " if passage else ""
            spans[statement_number] = (len(passage), len(passage) + len(statement))
            passage += statement
        supporting = parts[2].split() if len(parts) == 3 else []
        if not supporting or any(s not in spans for s in supporting):
            ledger.bad(path, line, "question, answer and the numbers of earlier statements are needed, tab separated")
            continue
        evidence = tuple(spans[s] for s in supporting)
        yield Raw(f"{path.name}:{line}", passage, parts[1], split, parts[0], evidence)
