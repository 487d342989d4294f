"""What stands beside each text in a file of explanations: what is predicted, and its row's own columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from heedful.data.corpora import locate
from heedful.data.formats.rows import Ledger
from heedful.data.formats.tables import file_format, read_table
from heedful.explanation.columns import begins
from heedful.explanation.explanation import Explanation
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.engine.sources.subject import Subject

TAKEN = frozenset(
    {
        *("run", "example", "part", "position", "word", "token", "start", "end", "method", "kind", "signed", "target"),
        *(
            "score",
            "layer",
            "other_part",
            "other_position",
            "other_word",
            "record",
            "predicted",
            "probability",
            "truth",
        ),
    }
)


def beside_of(found: Explanation, own: pa.Table | None) -> pa.Table:
    """A row for each example."""
    c = found.columns
    if len(c) and set(c.answers) <= {"one label"} and (c.n_labels > 1).all():
        first = begins(c.n_labels)[:-1].tolist()
        at = [int(c.probabilities[i : i + n].argmax()) for i, n in zip(first, c.n_labels.tolist(), strict=True)]
        predicted = [c.label_sets[labels][n] for labels, n in zip(c.examples.labels.tolist(), at, strict=True)]
    else:
        predicted = [one.predicted for one in found]
    columns: dict[str, Any] = {"predicted": pa.array(predicted, pa.string())}
    if own is not None:
        columns |= {name: own[name] for name in own.column_names}
    return pa.table(columns)


def own_columns(subject: Subject, examples: Sequence[Example]) -> pa.Table | None:
    """Those of the file that the examples were read from, without the one that is the text; None: it is not a table.
    A name that is a column of explanations already has `row_` before it."""
    path = None if subject.data is None else locate.expand(subject.data)
    if path is None or not locate.is_file(path) or file_format(path) is None or not examples:
        return None
    reading, place = subject.reading, {example.id: number for number, example in enumerate(examples)}
    wanted = [column for column in (reading.text_column, reading.label_column) if column]
    table = read_table(path, Ledger(skip_bad=True), reading.delimiter, reading.header, wanted)
    columns: dict[str, list[Any]] = {name: [None] * len(examples) for name in table.columns}
    for line, row in table.rows:
        number = place.get(f"{path.name}:{line}")
        if number is not None:
            for name, value in row.items():
                columns[name][number] = value
    texts = {text for one in islice(examples, 5) for text in (one.passage.text, one.query and one.query.text)}
    kept = {name: values for name, values in columns.items() if not {str(v) for v in values[:5]} & texts}
    if not any(value is not None for values in kept.values() for value in values):
        return None
    return pa.table({f"row_{name}" if name in TAKEN else name: _array(values) for name, values in kept.items()})


def _array(values: Sequence[Any]) -> pa.Array:
    """Of one type: words, where they are not."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
