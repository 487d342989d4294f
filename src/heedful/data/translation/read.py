"""TrainingPairs by name, from one's own table, or from a corpus in a data folder.

planted-translation ...   generated, see planted.py
FILE                      a table with the columns source and target (or those that --text-column and --label-column
                          name), and perhaps links ("0-0 1-2", source-target from 0; possible ones "3?4") and split
FOLDER or its name        lines of JSON with text and target, and perhaps sure and possible: multi30k_ende, align_*
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.formats.rows import SPLIT_NAMES, Ledger, json_lines
from heedful.data.formats.simple import split_files
from heedful.data.formats.tables import InputTable, file_format, json_fields, read_table
from heedful.data.translation.pairs import Links, SentencePair
from heedful.data.translation.planted import GENERATED, generated_pairs
from heedful.errors import Mistake, one_of
from heedful.records import Split

SOURCES, TARGETS, LINKS = ("source", "text"), ("target", "translation"), ("links", "alignment")
LINK = re.compile(r"(\d+)([-?])(\d+)")


def read_pairs(
    name: str, data_dirs: Sequence[Path], seed: int, options: DataOptions, ledger: Ledger
) -> Iterator[SentencePair]:
    """All splits; a pair without one has None."""
    if name in GENERATED:
        return generated_pairs(name, seed)
    folders = locate.data_dirs(data_dirs)
    path = locate.own_path(name, folders)
    if locate.is_file(path) or file_format(path) is not None:
        table = read_table(path, ledger, options.delimiter, options.header)
        return _of_table(table, options, ledger)
    files = split_files(path) if name and locate.is_dir(path) else []
    if not files and name:
        found = locate.find(name, folders)
        files = [] if found is None or found.form != "simple" else split_files(found.folder)
    if not files:
        here = [other for other in locate.others(folders) if _holds_pairs(other, folders)]
        raise one_of("corpus of translations", name, sorted([*GENERATED, *here]))
    if not is_pairs(files):
        raise Mistake(f"{name} is no corpus of translations: its rows have no field 'target'.")
    return _of_corpus(files, ledger)


def is_pairs(files: Sequence[tuple[Split | None, Path]]) -> bool:
    """Whether a corpus in the simple form has a target beside each text."""
    keys = {key for _, file in files[:1] for key in json_fields(file)[0]}
    return "target" in keys


def _holds_pairs(name: str, folders: Sequence[Path]) -> bool:
    found = locate.find(name, folders)
    if found is None:
        return False
    for _, path in split_files(found.folder):
        for _, row in json_lines(path, Ledger(skip_bad=True)):
            return "target" in row
    return False


def columns_of(table: InputTable, options: DataOptions) -> tuple[str, str] | None:
    """Source and target of a table; None where it is no table of translations."""
    source = options.text_column or next((name for name in SOURCES if name in table.columns), None)
    target = options.label_column or next((name for name in TARGETS if name in table.columns), None)
    if source is None or target is None or not {source, target} <= set(table.columns):
        return None
    return source, target


def _of_table(table: InputTable, options: DataOptions, ledger: Ledger) -> Iterator[SentencePair]:
    named = columns_of(table, options)
    if named is None:
        shown = ", ".join(map(repr, table.columns)) or "none"
        raise Mistake(
            f"{table.path}: translation needs the columns 'source' and 'target', or others that --text-column and "
            f"--label-column name (its columns are {shown})."
        )
    source, target = named
    marked = options.evidence_column or next((name for name in LINKS if name in table.columns), None)
    split_column = options.split_column or ("split" if "split" in table.columns else None)
    for line, row in table.rows:
        split = options.only
        if split_column is not None:
            told = str(row.get(split_column, "")).strip().lower()
            if told not in SPLIT_NAMES:
                ledger.bad(table.path, line, f"the split {told[:40]!r} is not train, dev or test")
                continue
            split = SPLIT_NAMES[told]
        links = None if marked is None else _links(row.get(marked))
        yield from _checked(table.path, line, row.get(source), row.get(target), links, split, ledger)


def _links(given: object) -> tuple[Links, Links] | str:
    """Sure and possible ones, or what is wrong with them."""
    sure: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    for word in str(given or "").split():
        found = LINK.fullmatch(word)
        if found is None:
            return f"the link {word[:40]!r} is not of the form 0-0 (or 0?0 for a possible one)"
        (sure if found[2] == "-" else possible).append((int(found[1]), int(found[3])))
    return tuple(sure), tuple(possible)


def _of_corpus(files: Sequence[tuple[Split | None, Path]], ledger: Ledger) -> Iterator[SentencePair]:
    for split, path in files:
        for line, row in json_lines(path, ledger):
            yield from _checked(path, line, row.get("text"), row.get("target"), _pairs_of(row), split, ledger)


def _pairs_of(row: Mapping[str, Any]) -> tuple[Links, Links] | str | None:
    """`auto_align` are links that a program found, and no gold: they are not read."""
    if "sure" not in row:
        return None
    try:
        sure, possible = (tuple((int(i), int(j)) for i, j in row.get(name) or ()) for name in ("sure", "possible"))
    except (TypeError, ValueError):
        return "its links are not pairs of numbers"
    return sure, possible


def _checked(
    path: Path,
    line: int,
    source: object,
    target: object,
    links: tuple[Links, Links] | str | None,
    split: Split | None,
    ledger: Ledger,
) -> Iterator[SentencePair]:
    """One pair, or a note in the ledger of what is wrong with it."""
    for what, text in (("source", source), ("target", target)):
        if not isinstance(text, str) or not text.strip():
            ledger.bad(path, line, f"the {what} is empty, or is not a text")
            return
    if isinstance(links, str):
        ledger.bad(path, line, links)
        return
    sizes = len(str(source).split()), len(str(target).split())
    for i, j in () if links is None else (*links[0], *links[1]):
        if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            ledger.bad(
                path, line, f"the link {i}-{j} is outside a pair of {sizes[0]} and {sizes[1]} words, counted from 0"
            )
            return
    sure, possible = (None, ()) if links is None else links
    more = tuple(link for link in possible if sure is None or link not in sure)
    yield SentencePair(f"{path.name}:{line}", str(source), str(target), split, sure, more)
