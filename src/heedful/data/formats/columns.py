"""Which columns of one's own files are the text, its label and what else is read.

Columns are chosen by name. Without a choice, `text` and `label` are taken, or the one column with a usual name for
such a thing; where several could be meant we ask. A name counts as it is written; only where no column has it so, one
that differs in upper and lower case does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.config import DataOptions
from heedful.data.formats.tables import InputTable
from heedful.errors import Mistake

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
        """text 'Review', label 'y'."""
        named = {"text": self.text, "label": self.label, "query": self.query}
        named |= {"evidence": self.evidence, "split": self.split}
        return ", ".join(f"{what} {name!r}" for what, name in named.items() if name is not None)


def choose_columns(tables: Sequence[InputTable], options: DataOptions) -> ColumnNames:
    """Of all files together: each must have the text, the label and the query; the others may be in some alone."""
    together = dict.fromkeys(name for table in tables for name in table.columns)
    first = InputTable(tables[0].path, tuple(together), iter(()))
    text = _column(first, options.text_column, "text", TEXT_NAMES)
    label = _column(first, options.label_column, "label", LABEL_NAMES, taken=text)
    query = _query_column(first, options, (text, label))
    split = options.split_column or next(iter(_named(first, SPLIT_COLUMNS, "split")), None)
    evidence = options.evidence_column
    for name, what in ((evidence, "evidence"), (split, "split")):
        if name is not None and name not in first.columns:
            raise Mistake(_no_column(first, name, what))
    for table in tables:
        for name, what in ((text, "text"), (label, "label"), (query, "query")):
            if name is not None and name not in table.columns:
                raise Mistake(_no_column(table, name, what))
        for name in (text, label, query, evidence, split):
            if name is not None and table.columns.count(name) > 1:
                raise Mistake(f"{table.path} has more than one column {name!r}; give them different names.")
    return ColumnNames(text, label, query, evidence, None if options.only else split)


def text_columns(table: InputTable, options: DataOptions) -> tuple[str, str | None]:
    """The columns of the text and of its query, of a file without labels."""
    text = _column(table, options.text_column, "text", TEXT_NAMES)
    return text, _query_column(table, options, (text,))


def has_label_column(table: InputTable, options: DataOptions) -> bool:
    """Whether a column is, or could be meant as, the label."""
    return options.label_column is not None or any(name.lower() in LABEL_NAMES for name in table.columns)


def lacking(tables: Sequence[InputTable], columns: ColumnNames) -> Iterator[str]:
    """A sentence for each field that some rows have and others do not."""
    used = (columns.text, columns.label, columns.query, columns.evidence, columns.split)
    for table in tables:
        for name in used:
            if name is not None and (missing := table.missing.get(name, 0)):
                yield f"{missing} of the {table.counted} rows of {table.path.name} have no field {name!r}"
            elif name is not None and name not in table.columns:
                yield f"{table.path.name} has no column {name!r}, which another file has"


def _named(table: InputTable, usual: Sequence[str], what: str, taken: Sequence[str] = ()) -> list[str]:
    """Columns by their usual names, in the order of these: as it is written, else in another case if only one is."""
    columns = [name for name in dict.fromkeys(table.columns) if name not in taken]
    found: list[str] = []
    for name in usual:
        alike = [name] if name in columns else [column for column in columns if column.lower() == name]
        if len(alike) > 1:
            names = " and ".join(map(repr, alike))
            raise Mistake(
                f"{table.path}: the columns {names} differ in upper and lower case only; "
                f"say which is the {what} with --{what}-column."
            )
        found += alike
    return found


def _column(table: InputTable, asked: str | None, what: str, usual: tuple[str, ...], taken: str = "") -> str:
    if asked is not None:
        if asked in table.columns:
            return asked
        raise Mistake(_no_column(table, asked, what))
    found = _named(table, usual, what, (taken,) if taken else ())
    if len(found) == 1 or (found and found[0].lower() == what):
        return found[0]
    shown = ", ".join(repr(name) for name in table.columns)
    why = "more than one column could be the" if found else "no column is known to be the"
    raise Mistake(f"{table.path}: {why} {what}; say which with --{what}-column (columns: {shown}).")


def _query_column(table: InputTable, options: DataOptions, taken: Sequence[str]) -> str | None:
    """The one that is asked for, or the one with a usual name, unless the texts are to be classified without it."""
    if options.query_column is not None:
        if options.query_column not in table.columns:
            raise Mistake(_no_column(table, options.query_column, "query"))
        return options.query_column
    if options.task == "classification":
        return None
    return next(iter(_named(table, QUERY_NAMES, "query", taken)), None)


def _no_column(table: InputTable, name: str, what: str) -> str:
    shown = ", ".join(repr(column) for column in table.columns)
    return f"{table.path} has no {what} column {name!r}; its columns are {shown}."
