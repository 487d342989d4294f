"""One's own data: CSV, TSV, JSONL and Parquet files, plain or gzipped.

Columns are chosen by name. Without a choice, `text` and `label` are taken, or the one column with a
usual name for such a thing; where several could be meant we ask.

The evidence column holds, as JSON (or as a list, where the format has lists), one of
    [[3, 9], [20, 31]]    characters of the text, end exclusive
    [0, 4]                words of text.split(), from 0
    ["not", "worth it"]   strings; every place where they stand in the text
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import CorpusRows
from heedful.data.corpora.labels import label_name
from heedful.data.corpora.recipe import Lengths, Recipe
from heedful.data.corpora.splits import files_for_split
from heedful.data.formats.rows import SPLIT_NAMES, Ledger, Raw, Spans, word_spans
from heedful.data.formats.tables import FORMATS, InputTable, file_format, read_table
from heedful.data.text.tokenise import tokenise_all, tokenizer
from heedful.errors import Mistake
from heedful.records import Example, Split, TaskType

TEXT_NAMES = (
    *("text", "sentence", "review", "content", "document", "body", "comment", "tweet", "message"),
    *("passage", "premise", "context", "description", "article", "post", "story", "paragraph"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "sentiment", "target", "gold", "gold_label"),
    *("answer", "rating", "polarity", "y"),
)
QUERY_NAMES = ("hypothesis", "question", "query")
SPLIT_COLUMNS = ("split", "exp_split")


@dataclass(frozen=True, slots=True)
class ColumnNames:
    text: str
    label: str
    query: str | None
    evidence: str | None
    split: str | None

    def __str__(self) -> str:
        return say_columns(text=self.text, query=self.query, label=self.label, evidence=self.evidence, split=self.split)


def say_columns(**columns: str | None) -> str:
    return "columns read: " + ", ".join(f"{name!r} as the {what}" for what, name in columns.items() if name)


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
    return _open_files(folder.resolve().name, files, options, part, source=str(folder), folder=folder)


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
) -> CorpusRows:
    ledger = Ledger(options.skip_bad)
    wanted = [column for column in (options.text_column, options.label_column) if column]
    tables = [(s, read_table(p, ledger, options.delimiter, options.header, wanted)) for s, p in files]
    first = tables[0][1]
    if not first.columns:
        raise Mistake(f"{first.path}: there are no rows.")
    columns = choose_columns(first, options)
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
        warnings=task_warnings(columns, options),
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


def choose_columns(table: InputTable, options: DataOptions) -> ColumnNames:
    text = _column(table, options.text_column, "text", TEXT_NAMES)
    label = _column(table, options.label_column, "label", LABEL_NAMES, taken=text)
    query = _query_column(table, options, (text, label))
    split = options.split_column or _usual_column(table, "split", SPLIT_COLUMNS)
    for name, what in ((options.evidence_column, "evidence"), (split, "split")):
        if name is not None and name not in table.columns:
            raise Mistake(_no_column(table, name, what))
    for name in (text, label, query, options.evidence_column, split):
        if name is not None and table.columns.count(name) > 1:
            raise Mistake(f"{table.path} has more than one column {name!r}; give them different names.")
    return ColumnNames(text, label, query, options.evidence_column, None if options.only else split)


def _column(table: InputTable, asked: str | None, what: str, usual: tuple[str, ...], taken: str = "") -> str:
    if asked is not None:
        if asked in table.columns:
            return asked
        raise Mistake(_no_column(table, asked, what))
    names = {name.lower() for name in table.columns if name != taken}
    found = [name for name in usual if name in names]
    if len(found) == 1 or found[:1] == [what]:
        return _usual_column(table, what, found, (taken,)) or found[0]
    shown = ", ".join(repr(name) for name in table.columns)
    why = "more than one column could be the" if found else "no column is known to be the"
    raise Mistake(f"{table.path}: {why} {what}; say which with --{what}-column (columns: {shown}).")


def _usual_column(table: InputTable, what: str, usual: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """The first usual name that is a column's: exactly, or else but for case, where one column alone has it."""
    columns = [name for name in table.columns if name not in taken]
    for name in usual:
        alike = [column for column in dict.fromkeys(columns) if column.lower() == name]
        if name in alike:
            return name
        if len(alike) > 1:
            shown = " and ".join(map(repr, alike))
            raise Mistake(f"{table.path}: the columns {shown} differ in case only; say which with --{what}-column.")
        if alike:
            return alike[0]
    return None


def _no_column(table: InputTable, name: str, what: str) -> str:
    shown = ", ".join(repr(column) for column in table.columns)
    return f"{table.path} has no {what} column {name!r}; its columns are {shown}."


def raw_rows(table: InputTable, columns: ColumnNames, given: Split | None, ledger: Ledger) -> Iterator[Raw]:
    for line, row in table.rows:
        missing = [c for c in (columns.text, columns.label, columns.query) if c and row.get(c) is None]
        if missing:
            ledger.bad(table.path, line, f"there is no value in column {missing[0]!r}")
            continue
        split = given
        if columns.split is not None:
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
                except (ValueError, TypeError, IndexError, OverflowError, RecursionError):
                    ledger.bad(table.path, line, f"the evidence in column {columns.evidence!r} cannot be read")
                    continue
            yield Raw(f"{table.path.name}:{line}", text, label, split, query, evidence)


def evidence_spans(value: Any, text: str) -> Spans | None:
    """The three forms described above; None where the row has no evidence."""
    if isinstance(value, str):
        value = json.loads(value) if value.strip() else None
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError("evidence is a list")
    words: list[tuple[int, int]] | None = None
    spans: list[tuple[int, int]] = []
    for item in value:
        if isinstance(item, str):
            spans += [match.span() for match in re.finditer(re.escape(item), text)]
        elif isinstance(item, int):
            words = words or word_spans(text)
            if item < 0:
                raise ValueError("words are counted from 0")
            spans.append(words[item])
        else:
            start, end = item
            if not 0 <= start <= end <= len(text):
                raise ValueError("evidence is outside of the text")
            spans.append((int(start), int(end)))
    return tuple(spans)


def has_label_column(table: InputTable, options: DataOptions) -> bool:
    """Whether a column is, or could be meant as, the label."""
    return options.label_column is not None or any(name.lower() in LABEL_NAMES for name in table.columns)


def text_columns(table: InputTable, options: DataOptions) -> tuple[str, str | None]:
    """The columns of the text and of its query, of a file without labels."""
    text = _column(table, options.text_column, "text", TEXT_NAMES)
    return text, _query_column(table, options, (text,))


def _query_column(table: InputTable, options: DataOptions, taken: Sequence[str]) -> str | None:
    """The one that is asked for, or the one with a usual name, unless the texts are to be classified without it."""
    if options.query_column is not None:
        if options.query_column not in table.columns:
            raise Mistake(_no_column(table, options.query_column, "query"))
        return options.query_column
    if options.task == "classification":
        return None
    return _usual_column(table, "query", QUERY_NAMES, taken)


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
    queries = tokenise_all(split, (rows[place][2] or "" for place in wanted)) if query else [None] * len(wanted)
    found = {
        place: Example(f"{path.name}:{rows[place][0]}", passage, query=asked)
        for place, passage, asked in zip(wanted, passages, queries, strict=True)
    }
    return len(rows), found, say_columns(text=text, query=query)


def _table(path: Path, options: DataOptions, ledger: Ledger) -> InputTable:
    wanted = [options.text_column] if options.text_column else []
    return read_table(path, ledger, options.delimiter, options.header, wanted)
