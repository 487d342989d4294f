"""One's own data: CSV, TSV, JSONL and Parquet files, plain or gzipped.

Which columns are read: formats/columns.py; what an evidence column may hold: formats/evidence.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import CorpusRows
from heedful.data.corpora.describe import Content, content_of
from heedful.data.corpora.labels import label_name
from heedful.data.corpora.recipe import Lengths, Recipe
from heedful.data.corpora.splits import files_for_split
from heedful.data.formats.columns import ColumnNames, choose_columns, has_label_column, lacking, text_columns
from heedful.data.formats.evidence import evidence_spans
from heedful.data.formats.rows import SPLIT_NAMES, Ledger, Raw, Spans
from heedful.data.formats.simple import split_files
from heedful.data.formats.tables import FORMATS, InputTable, file_format, read_table
from heedful.data.text.tokenise import tokenise_all, tokenizer
from heedful.errors import Mistake
from heedful.records import Example, Split, TaskType

BEGINNING = re.compile(r"([a-z]+)(?:[^a-z]|$)")


def open_table(path: Path, options: DataOptions, part: Split | None = None) -> CorpusRows:
    """One file with all rows, or with the training rows where dev and test have files of their own."""
    files: list[tuple[Split | None, Path]] = [(options.only, path)]
    if options.dev_file or options.test_file:
        files = [("train", path)]
        files += [("dev", options.dev_file)] if options.dev_file else []
        files += [("test", options.test_file)] if options.test_file else []
        if options.test_file is None:
            files[0] = (None, path)  # test is drawn from what is not dev
    return _open_files(_stem(path), files, options, part, source=str(path), folder=path.parent)


def open_folder(folder: Path, options: DataOptions, part: Split | None = None) -> CorpusRows:
    """A folder with train.csv, dev.csv (or val, valid, validation) and test.csv, or any of our formats."""
    files: list[tuple[Split | None, Path]] = [*folder_files(folder)]
    if "train" not in [split for split, _ in files]:
        raise Mistake(f"{folder} has no train file (train.csv, for example; known: {', '.join(FORMATS)}).")
    twice = [path.name for i, (split, path) in enumerate(files) if split in [s for s, _ in files[:i]]]
    if twice:
        raise Mistake(f"{folder} has more than one file for the split of {twice[0]}; name the file to read.")
    if "test" not in [split for split, _ in files]:
        files = [(None if split == "train" else split, path) for split, path in files]
    beside = not_read(folder, [path for _, path in files])
    return _open_files(folder.resolve().name, files, options, part, source=str(folder), folder=folder, beside=beside)


def files_of(folder: Path) -> list[tuple[Split | None, Path]]:
    """What is read of a folder of one's own: in the simple form, or a file of any format for each split."""
    return [*folder_files(folder)] if is_mixed(folder) else split_files(folder) or [*folder_files(folder)]


def is_mixed(folder: Path) -> bool:
    """Whether a file for a split lies there that is not in the simple form (train.jsonl, test.csv)."""
    simple = {path for _, path in split_files(folder)}
    return any(path not in simple for _, path in folder_files(folder))


def not_read(folder: Path, read: Sequence[Path]) -> Iterator[str]:
    """A sentence for each file that is called like a split and is not read: test.xlsx, test-00000-of-00001.parquet."""
    for path in sorted(folder.iterdir()):
        called = BEGINNING.match(path.name.lower())
        if called and called[1] in SPLIT_NAMES and path not in read and not path.is_dir():
            yield f"{path.name} lies in {folder} and is not read; a file for a split is called {called[1]}.csv or alike"


def folder_files(folder: Path) -> list[tuple[Split, Path]]:
    """Of a folder with a file for each split: what is read, and nothing that lies beside it."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise Mistake(f"{folder} cannot be read: {error.strerror}.") from None
    named = [(SPLIT_NAMES.get(_stem(path).lower()), path) for path in paths if file_format(path) is not None]
    return [(split, path) for split, path in named if split is not None and path.is_file()]


def _open_files(
    name: str,
    files: Iterable[tuple[Split | None, Path]],
    options: DataOptions,
    part: Split | None,
    source: str,
    folder: Path,
    beside: Iterable[str] = (),
) -> CorpusRows:
    ledger = Ledger(options.skip_bad)
    wanted = [column for column in (options.text_column, options.label_column) if column]
    tables = [(s, read_table(p, ledger, options.delimiter, options.header, wanted)) for s, p in files]
    for _, table in tables:
        if not table.columns:
            raise Mistake(f"{table.path}: there are no rows.")
    every = [table for _, table in tables]
    columns = choose_columns(every, options)
    recipe = recipe_for(columns, options)
    needed = tables if columns.split is not None else files_for_split(tables, recipe, part)
    return CorpusRows(
        name,
        chain.from_iterable(raw_rows(table, columns, split, ledger) for split, table in needed),
        recipe,
        ledger,
        source,
        folder,
        label_column=columns.label,
        columns=str(columns),
        warnings=(*task_warnings(columns, options), *lacking(every, columns), *beside),
        partial=len(needed) < len(tables),
    )


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or path.name


def recipe_for(columns: ColumnNames, options: DataOptions) -> Recipe:
    task: TaskType = "classification"
    if columns.query is not None:
        task = "nli" if "hypothesis" in columns.query.lower() else "qa"
    whole = options.only is not None
    return Recipe(
        task=options.task or task,
        labels=options.labels,
        tokenizer=options.tokenizer or "spacy",
        lengths=Lengths(above=(options.as_published.min_words or 1) - 1),
        vocabulary=options.as_published.vocabulary,
        dev_fraction=0.0 if whole else options.dev_fraction,
        test_fraction=0.0 if whole else options.test_fraction,
    )


def task_warnings(columns: ColumnNames, options: DataOptions) -> tuple[str, ...]:
    """A column's name alone has made it another task than classification."""
    if columns.query is None or options.query_column is not None or options.task is not None:
        return ()
    task = recipe_for(columns, options).task
    what = "question answering" if task == "qa" else "NLI"
    return (
        f"the column {columns.query!r} makes this {what}; if the texts are to be classified without it, "
        "say so with --set task=classification",
    )


def raw_rows(table: InputTable, columns: ColumnNames, given: Split | None, ledger: Ledger) -> Iterator[Raw]:
    for line, row in table.rows:
        missing = [c for c in (columns.text, columns.label, columns.query) if c and row.get(c) is None]
        if missing:
            others = f", which {has} other rows have" if (has := table.has(missing[0])) else ""
            ledger.bad(table.path, line, f"there is no value in column {missing[0]!r}{others}")
            continue
        split = given
        if columns.split is not None and columns.split in table.columns:  # else this file's name tells
            name = str(row.get(columns.split, "")).strip().lower()
            if name not in SPLIT_NAMES:
                ledger.bad(table.path, line, f"the split {name[:40]!r} is not train, dev or test")
                continue
            split = SPLIT_NAMES[name]
        text, query = row[columns.text], None if columns.query is None else row[columns.query]
        for what, value in (("text", text), ("question or hypothesis", query)):
            if not isinstance(value, str) and not (value is None and what != "text"):
                ledger.bad(table.path, line, f"the {what} is not a string but {type(value).__name__}")
                break
        else:
            try:
                label = label_name(row[columns.label])
            except ValueError as error:
                ledger.bad(table.path, line, str(error))
                continue
            evidence: Spans | None = None
            if columns.evidence is not None:
                try:
                    evidence = evidence_spans(row.get(columns.evidence), text)
                except ValueError as error:
                    ledger.bad(table.path, line, f"the evidence in column {columns.evidence!r} cannot be read: {error}")
                    continue
            yield Raw(f"{table.path.name}:{line}", text, label, split, query, evidence)


# Texts without labels, from a file of one's own: enough for every question that is about the model alone.


def is_unlabelled(path: Path, options: DataOptions) -> bool:
    """A single file in which no column is, or could be meant as, the label."""
    if not locate.is_file(path) or file_format(path) is None or options.dev_file or options.test_file:
        return False
    return not has_label_column(_table(path, options, Ledger(options.skip_bad)), options)


def read_unlabelled(
    path: Path, options: DataOptions, places: Callable[[int], Sequence[int]]
) -> tuple[int, dict[int, Example], str]:
    """How many texts there are, those at the places that are wanted, by place, and the columns that were read. Only
    these texts are tokenised."""
    rows, columns = _unlabelled_rows(path, options)
    wanted = list(places(len(rows)))
    split = tokenizer(options.tokenizer or "spacy")
    passages = tokenise_all(split, (rows[place][1] for place in wanted))
    has_queries = any(row[2] is not None for row in rows)
    queries = tokenise_all(split, (rows[place][2] or "" for place in wanted)) if has_queries else [None] * len(wanted)
    found = {
        place: Example(f"{path.name}:{rows[place][0]}", passage, query=asked)
        for place, passage, asked in zip(wanted, passages, queries, strict=True)
    }
    return len(rows), found, columns


def unlabelled_contents(path: Path, options: DataOptions) -> list[Content]:
    return [content_of(text, query) for _, text, query in _unlabelled_rows(path, options)[0]]


def _unlabelled_rows(path: Path, options: DataOptions) -> tuple[list[tuple[int, str, str | None]], str]:
    """(line, text, query) of each row, and which columns these are."""
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
            ledger.bad(path, line, "the text is empty, or is not a text")
    return rows, f"text {text!r}" + ("" if query is None else f", query {query!r}")


def _table(path: Path, options: DataOptions, ledger: Ledger) -> InputTable:
    wanted = [options.text_column] if options.text_column else []
    return read_table(path, ledger, options.delimiter, options.header, wanted)
