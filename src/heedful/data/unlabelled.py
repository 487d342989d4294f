"""Texts without labels, from a file of one's own: enough for every question that is about the model alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.config import DataOptions
from heedful.data import locate
from heedful.data.readers import Ledger
from heedful.data.readers.tables import Table, file_format, read_table
from heedful.data.tokenise import tokenise_all, tokenizer
from heedful.data.user_files import has_label_column, text_columns
from heedful.errors import Mistake
from heedful.records import Example


def is_unlabelled(path: Path, options: DataOptions) -> bool:
    """A single file in which no column is, or could be meant as, the label."""
    if not locate.is_file(path) or file_format(path) is None or options.dev_file or options.test_file:
        return False
    return not has_label_column(_table(path, options, Ledger(options.skip_bad)), options)


def read_unlabelled(
    path: Path, options: DataOptions, places: Callable[[int], Sequence[int]]
) -> tuple[int, dict[int, Example]]:
    """How many texts there are, and those at the places that are wanted, by place. Only these are tokenised."""
    ledger = Ledger(options.skip_bad)
    table = _table(path, options, ledger)
    if not table.columns:
        raise Mistake(f"{path}: there are no rows.")
    text, query = text_columns(table, options)
    rows: list[tuple[int, str, str | None]] = []
    for line, row in table.rows:
        values = [row.get(column) for column in (text, query) if column is not None]
        if all(isinstance(value, str) and value.strip() for value in values):
            rows.append((line, str(values[0]), None if query is None else str(values[1])))
        else:
            ledger.bad(path, line, "the text is empty, or is no text")
    wanted = list(places(len(rows)))
    split = tokenizer(options.tokenizer or "spacy")
    passages = tokenise_all(split, (rows[place][1] for place in wanted))
    queries = (
        tokenise_all(split, (rows[place][2] or "" for place in wanted)) if query else [None] * len(wanted)
    )
    found = {
        place: Example(f"{path.name}:{rows[place][0]}", passage, query=asked)
        for place, passage, asked in zip(wanted, passages, queries, strict=True)
    }
    return len(rows), found


def _table(path: Path, options: DataOptions, ledger: Ledger) -> Table:
    wanted = [options.text_column] if options.text_column else []
    return read_table(path, ledger, options.delimiter, options.header, wanted)
