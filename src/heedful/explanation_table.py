"""Columns as tables: the tidy one that people read, and one `record` for each example that keeps everything else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from heedful.columns import (
    ATTRIBUTIONS,
    EXAMPLES,
    POSITIONS,
    TEXTS,
    Columns,
    Floats,
    Ints,
    begins,
)


def tidy_table(columns: Columns, run: str) -> pa.Table:
    """One row for each example, method and position."""
    attribution, position = columns.attribution_of_score, columns.position_of_score
    block = np.repeat(np.arange(len(columns.blocks.text)), columns.blocks.n_words)
    query = columns.blocks.text > columns.begins.texts[columns.example_of_attribution[columns.blocks.attribution]]
    of_attribution, of_position = pa.array(attribution), pa.array(position)
    positions, attributions = columns.positions, columns.attributions
    return pa.table(
        {
            "run": pa.repeat(pa.scalar(run, pa.string()), len(columns.scores)),
            "example": columns.examples["id"].take(pa.array(columns.example_of_attribution[attribution])),
            "part": pa.array(["passage", "query"], pa.string()).take(pa.array(query[block].astype(np.int8))),
            "position": pa.array(position - begins(columns.n_words)[columns.blocks.text][block], pa.int32()),
            "word": pa.array(columns.surfaces(), pa.large_string()).take(of_position).cast(pa.string()),
            "token": positions["form"].take(of_position).cast(pa.string()),
            "start": positions["start"].take(of_position),
            "end": positions["end"].take(of_position),
            "method": attributions["method"].take(of_attribution),
            "kind": attributions["kind"].take(of_attribution),
            "signed": attributions["signed"].take(of_attribution),
            "target": attributions["target"].take(of_attribution),
            "score": pa.array(columns.scores, pa.float64()),
        }
    )


def record_column(columns: Columns) -> pa.Array:
    """A `record` for each row of the tidy table: everything about an example in its first row, null in the others."""
    texts = _nested(columns.texts, "positions", columns.positions, columns.n_words)
    examples = _nested(columns.examples, "texts", texts, columns.numbers("n_texts"))
    examples = _nested(
        examples, "attributions", columns.attributions, columns.numbers("n_attributions")
    )
    row = np.zeros(len(columns.scores), dtype=np.int64)
    others = np.ones(len(columns.scores), dtype=np.bool_)
    row[columns.begins.scores[:-1]] = np.arange(len(columns))
    others[columns.begins.scores[:-1]] = False
    return examples.to_struct_array().take(pa.array(row, mask=others))


def columns_of_records(records: pa.StructArray, scores: Floats, label_sets: tuple[tuple[str, ...], ...]) -> Columns:
    """What `record_column` and `tidy_table` were made of."""
    examples = pa.RecordBatch.from_struct_array(records)
    texts = pa.RecordBatch.from_struct_array(examples["texts"].flatten())
    return Columns(
        label_sets,
        examples.select(EXAMPLES.names).cast(EXAMPLES),
        texts.select(TEXTS.names).cast(TEXTS),
        pa.RecordBatch.from_struct_array(texts["positions"].flatten()).cast(POSITIONS),
        pa.RecordBatch.from_struct_array(examples["attributions"].flatten()).cast(ATTRIBUTIONS),
        scores,
    )


def _nested(owners: pa.RecordBatch, name: str, owned: pa.RecordBatch, counts: Ints) -> pa.RecordBatch:
    """`owners` with one more column: the list of the rows that each owns."""
    lists = pa.ListArray.from_arrays(pa.array(begins(counts), pa.int32()), owned.to_struct_array())
    return owners.append_column(name, lists)
