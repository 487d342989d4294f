"""From a corpus's original distribution to the simple form in the data folder."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal

from heedful.data.corpora import locate
from heedful.data.corpora.registry import CORPORA, OTHERS, Entry
from heedful.data.originals import ORIGINALS, Ledger, Raw
from heedful.errors import Mistake, one_of

ALL = "all"  # the file of rows whose split is still to be drawn


@dataclass(frozen=True, slots=True)
class PreparedCorpus:
    folder: Path
    counts: Mapping[str, Mapping[str, int]]  # by split, then by label
    left_out: Mapping[str, int]
    skipped: tuple[str, ...]


def prepare(
    name: str, original: Path, data_folder: Path, *, skip_bad: bool = False, replace: bool = False
) -> PreparedCorpus:
    """Write `<data folder>/<name>/<split>.jsonl.gz`; the folder appears whole, or not at all."""
    if name not in ORIGINALS:
        built_in = name in CORPORA
        raise (
            Mistake(f"{name} is built in, so there is nothing to prepare.")
            if built_in
            else one_of("corpus to prepare", name, sorted(ORIGINALS))
        )
    target = data_folder / name
    if target.exists() and not replace:
        raise Mistake(f"{target} exists already; use --replace to overwrite it.")
    folder = _folder_of(name, original)
    ledger = Ledger(skip_bad)
    partial = data_folder / f".{name}.{os.getpid()}.partial"
    try:
        partial.mkdir(parents=True)
        counts = _write(partial, ORIGINALS[name].read(folder, ledger), CORPORA[name], ledger, folder)
        if not counts:
            raise Mistake(f"{folder}: no row of {name} was found there.")
        _put_in_place(partial, target)
    except OSError as error:
        raise Mistake(f"{data_folder} cannot be written: {error.strerror}; choose --data-dir.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return PreparedCorpus(target, counts, dict(ledger.left_out), tuple(ledger.skipped))


def _folder_of(name: str, original: Path) -> Path:
    source = ORIGINALS[name]
    root = original.parent if original.is_file() else original
    if not original.exists():
        raise Mistake(f"--from {original} does not exist.")
    folder = source.find(root)
    if folder is None:
        packed = " Unpack it first." if original.is_file() else ""
        raise Mistake(f"--from {original} has no {' or '.join(source.needs)} for {name}.{packed}")
    return folder


def _put_in_place(partial: Path, target: Path) -> None:
    old = partial.with_suffix(".old")
    if target.exists():
        target.rename(old)
    try:
        partial.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(folder: Path, rows: Iterator[Raw], entry: Entry, ledger: Ledger, source: Path) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    with ExitStack() as stack:
        files: dict[str, TextIOWrapper] = {}
        for row in rows:
            if not row.text.strip():
                ledger.bad_row(row, source, "the text is empty")
                continue
            split = row.split or ALL
            if split not in files:
                files[split] = stack.enter_context(_gzip_text(folder / f"{split}.jsonl.gz", stack))
            files[split].write(json.dumps(as_json(row, entry), ensure_ascii=False) + "\n")
            counts.setdefault(split, Counter())[row.label] += 1
    return counts


def _gzip_text(path: Path, stack: ExitStack) -> TextIOWrapper:
    """A gzip file without time or name inside: the same rows are always the same bytes."""
    file = stack.enter_context(path.open("wb"))
    packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6)
    return TextIOWrapper(stack.enter_context(packed), encoding="utf-8", newline="\n")


def as_json(row: Raw, entry: Entry) -> dict[str, Any]:
    """The simple form of a row: labels by number where the corpus lists them."""
    labels = entry.recipe.labels
    label = labels.index(row.label) if labels and row.label in labels else row.label
    values: dict[str, Any] = {"id": row.id, "text": row.text, "label": label}
    if row.query is not None:
        values["hypothesis" if entry.task == "nli" else "question"] = row.query
    if entry.task == "qa":
        values["answer"] = row.label
    if row.evidence is not None:
        values["evidence"] = [list(span) for span in row.evidence]
    if row.candidates is not None:
        values["candidates"] = list(row.candidates)
    return values


# What there is: every known corpus, and every other one found in the data folders.


State = Literal["found", "built in", "missing"]


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    title: str
    state: State
    licence: str
    get: str
    form: str | None = None  # simple or original, where found
    folder: str | None = None
    size: int | None = None  # bytes on disk

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def catalogue(data_dirs: Sequence[Path] = ()) -> list[Listed]:
    """The known corpora in their order, then others in the simple form by name."""
    folders = locate.data_dirs(data_dirs)
    rows = []
    for name, entry in CORPORA.items():
        found = locate.find(name, folders)
        state: State = "found" if found else "built in" if entry.built_in else "missing"
        row = Listed(name, entry.title, state, entry.licence, entry.get)
        rows.append(_with_place(row, found) if found else row)
    for name in locate.others(folders):
        found = locate.find(name, folders)
        if name in CORPORA or found is None:
            continue
        other = OTHERS.get(name)
        title = other.title if other else "found by its folder's name"
        row = Listed(name, title, "found", other.licence if other else "see its source", "found")
        rows.append(_with_place(row, found))
    return rows


def _with_place(row: Listed, found: locate.Location) -> Listed:
    return Listed(
        row.name,
        row.title,
        row.state,
        row.licence,
        row.get,
        found.form,
        str(found.folder),
        sum(path.stat().st_size for path in found.folder.rglob("*") if path.is_file()),
    )
