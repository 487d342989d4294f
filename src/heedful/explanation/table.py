"""Columns as Arrow tables: the tidy one that people read, and records that keep everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.explanation.columns import (
    Attributions,
    Cells,
    Columns,
    Examples,
    Ints,
    Method,
    Positions,
    Strings,
    TextColumns,
    begins,
)
from heedful.records import AnswerKind, Axes

TEXT = {"text": pa.large_string(), "split": pa.bool_()}
POSITION = {
    "form": pa.large_string(),
    "start": pa.int32(),
    "end": pa.int32(),
    "word": pa.int32(),
    "unknown": pa.bool_(),
}
ATTRIBUTION = {
    "method": pa.string(),
    "kind": pa.string(),
    "signed": pa.bool_(),
    "removal": pa.string(),
    "options": pa.string(),
    "target": pa.int64(),
    "passage": pa.bool_(),
    "query": pa.bool_(),
    "special": pa.float64(),
    "rest": pa.float64(),
    "spread": pa.float64(),
    "check": pa.string(),
    "value": pa.float64(),
    "ok": pa.bool_(),
    "relative": pa.float64(),
    "sentence": pa.string(),
    "forward": pa.int64(),
    "backward": pa.int64(),
    "axes": pa.string(),
}
SINCE = ("probability", "truth")  # columns of the tidy table that files of before do not have
CELL = {"layer": pa.int32(), "i": pa.int32(), "j": pa.int32()}  # their scores stand in the tidy table


def tidy_table(columns: Columns, run: str, axes: frozenset[Axes] = frozenset()) -> pa.Table:
    """One row for each example, method and position; strings are coded (`plain_strings`).

    `probability` is that of the target (its number, of a model that predicts numbers), `truth` the true label.

    With `axes`, the rows of an attribution's cells come after those of its positions, and columns say what they are of.
    """
    c, table = columns, _positions(columns, run)
    if not axes:
        return table
    first = begins(c.n_scores)[:-1][c.attribution_of_cell]  # (cells,)
    order = np.argsort(np.append(c.attribution_of_score, c.attribution_of_cell), kind="stable")  # (rows,)
    about = np.append(np.arange(len(c.scores)), first + c.cells.i)  # the score whose position a row is about
    found = table.take(pa.array(about[order]))
    scores = pa.array(np.append(c.scores, c.cells.score)[order], pa.float64())
    found = found.set_column(found.schema.get_field_index("score"), "score", scores)
    none = np.full(len(c.scores), -1)
    if "layers" in axes:
        layer = np.append(none, c.cells.layer)[order]
        found = found.append_column("layer", pa.array(layer, pa.int32(), mask=layer < 0))
    if "pairs" in axes:
        other = np.append(none, np.where(c.cells.j < 0, -1, first + c.cells.j))[order]
        for name in ("part", "position", "word"):
            found = found.append_column(f"other_{name}", table[name].take(pa.array(other, mask=other < 0)))
    return found


def _positions(columns: Columns, run: str) -> pa.Table:
    c, blocks = columns, columns.blocks
    attribution, position = c.attribution_of_score, c.position_of_score  # (rows,)
    block = np.repeat(np.arange(len(blocks.text)), blocks.n_words)  # (rows,)
    example = c.example_of_attribution  # (attributions,)
    query = blocks.text > c.begins.texts[example[blocks.attribution]]  # (blocks,)
    said = np.array([c.answers_of(i) == "next token" for i in range(len(c.label_sets))], dtype=np.int64)
    seconds = (1 + said[c.examples.labels])[example[blocks.attribution]]  # (blocks,) "query" or "said"
    target = begins(np.array([len(labels) for labels in c.label_sets]))[c.examples.labels[example]]
    target = target + c.attributions.target  # (attributions,) into all labels, one set after the other
    method = c.attributions.method[attribution]  # (rows,)
    answer = c.probabilities[c.begins.probabilities[:-1][example] + c.attributions.target]  # (attributions,)
    return pa.table(
        {
            "run": _spread([run], np.zeros(len(position), dtype=np.int64)),
            "example": _spread(c.examples.id, example[attribution]),
            "part": _spread(["passage", "query", "said"], (query * seconds)[block]),
            "position": pa.array(position - begins(c.texts.n_words)[blocks.text][block], pa.int32()),
            "word": _spread(c.surfaces(), position),
            "token": _spread(c.positions.form, position),
            "start": pa.array(c.positions.start[position], pa.int32()),
            "end": pa.array(c.positions.end[position], pa.int32()),
            "method": _spread([m.name for m in c.methods], method),
            "kind": _spread([m.kind for m in c.methods], method),
            "signed": pa.array(c.signed[attribution], pa.bool_()),
            "target": _spread([label for labels in c.label_sets for label in labels], target[attribution]),
            "probability": pa.array(answer[attribution], pa.float64()),
            "truth": _spread(c.examples.truth, example[attribution]),
            "score": pa.array(c.scores, pa.float64()),
        }
    )


def plain_strings(table: pa.Table) -> pa.Table:
    """The same table without codes."""
    kinds = ((f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema)
    return table.cast(pa.schema(kinds))


def _spread(values: Sequence[str | None] | Strings, places: Ints) -> pa.DictionaryArray:
    """The value at each of the places: different values once, and their codes, which is also how Parquet has them."""
    coded = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices.take(pa.array(places)), coded.dictionary)


def records_of(columns: Columns) -> pa.RecordBatch:
    """One row for each example, with all about it but the scores: its texts and attributions are lists in it."""
    c = columns
    method = c.attributions.method
    shared = {
        "method": _spread([m.name for m in c.methods], method),
        "kind": _spread([m.kind for m in c.methods], method),
        "signed": pa.array(c.signed),
        "removal": _spread([m.removal for m in c.methods], method),
        "options": _spread([m.options for m in c.methods], method),
        "axes": _spread([m.axes for m in c.methods], method),
    }
    facts = vars(c.attributions) | shared
    positions = _lists(_structs(POSITION, vars(c.positions)), c.texts.n_words)
    cells = _lists(_structs(CELL, vars(c.cells)), c.attributions.n_cells)
    texts = _structs(TEXT | {"positions": positions.type}, vars(c.texts) | {"positions": positions})
    return pa.RecordBatch.from_arrays(
        [
            pa.array(c.examples.id, pa.string()),
            pa.array(c.examples.labels, pa.int64()),
            pa.array(c.examples.truth, pa.string()),
            _lists(pa.array(c.probabilities, pa.float64()), c.n_labels),
            _lists(texts, c.examples.n_texts),
            _lists(_structs(ATTRIBUTION | {"cells": cells.type}, facts | {"cells": cells}), c.examples.n_attributions),
        ],
        ["id", "labels", "truth", "probabilities", "texts", "attributions"],
    )


def _structs(schema: dict[str, pa.DataType], columns: dict[str, Any]) -> pa.StructArray:
    arrays = [
        columns[name].cast(kind)
        if isinstance(columns[name], pa.Array)
        else pa.array(columns[name], kind, from_pandas=True)
        for name, kind in schema.items()
    ]  # from_pandas: NaN is null
    return pa.StructArray.from_arrays(arrays, list(schema))


def _lists(values: pa.Array, counts: Ints) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(begins(counts), pa.int32()), values)


def columns_of_records(
    records: pa.RecordBatch,
    table: pa.Table,
    label_sets: tuple[tuple[str, ...], ...],
    answers: tuple[AnswerKind, ...] = (),
) -> Columns:
    """What `records_of` and the tidy table were made of."""
    lists = {name: records[name] for name in ("texts", "attributions")}
    texts, facts = (each.flatten() for each in lists.values())
    positions = texts.field("positions")
    names = ["method", "kind", "signed", "removal", "options", "axes"]
    has_cells = facts.type.get_field_index("cells") >= 0  # files of before have none
    shared = (facts.field(name).to_pylist() for name in names[: len(names) - (not has_cells)])
    methods_of = [Method(*each) for each in zip(*shared, strict=True)]
    methods = {method: place for place, method in enumerate(dict.fromkeys(methods_of))}
    own = {
        field.name: _numpy(facts.field(field.name))
        for field in fields(Attributions)
        if field.name not in ("method", "n_cells")
    }
    n_cells, cells = np.zeros(len(facts), dtype=np.int64), Cells.none()
    is_cell = np.zeros(len(table), dtype=np.bool_)
    for name in ("layer", "other_position"):
        if name in table.column_names:
            is_cell |= table[name].is_valid().to_numpy()
    scores = table["score"].to_numpy()
    if has_cells:
        lists_of_cells = facts.field("cells")
        n_cells, flat = _counts(lists_of_cells), lists_of_cells.flatten()
        cells = Cells.of([_numpy(flat.field(name)) for name in CELL], scores[is_cell])
    columns = Columns(
        label_sets,
        tuple(methods),
        Examples(*(_numpy(records.column(name)) for name in ("id", "labels", "truth")), *map(_counts, lists.values())),
        TextColumns(_numpy(texts.field("text")), _numpy(texts.field("split")), _counts(positions)),
        Positions(*(_numpy(positions.flatten().field(name)) for name in POSITION)),
        Attributions(np.array([methods[method] for method in methods_of], dtype=np.int64), **own, n_cells=n_cells),
        scores[~is_cell],
        _numpy(records.column("probabilities").flatten()),
        cells,
        answers,
    )
    n_texts, begin = columns.examples.n_texts, columns.begins
    told = len(columns.scores), len(columns.probabilities), len(cells.i), len(cells.score)
    if (begin.scores[-1], begin.probabilities[-1], begin.cells[-1], begin.cells[-1]) != told or not (
        (n_texts == 1) | (n_texts == 2)
    ).all():
        raise ValueError("the records do not count what is there")
    return columns


def _counts(lists: pa.ListArray) -> Ints:
    counts: Ints = lists.value_lengths().to_numpy().astype(np.int64)
    return counts


def _numpy(column: pa.Array) -> NDArray[Any]:
    """Null is None among strings, of which equal ones become one, and NaN among numbers."""
    if column.type not in (pa.string(), pa.large_string()):
        plain: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return plain
    coded = column.dictionary_encode()
    pool = np.array([*coded.dictionary.to_pylist(), None], dtype=np.object_)
    shared: Strings = pool[coded.indices.fill_null(len(pool) - 1).to_numpy()]
    return shared
