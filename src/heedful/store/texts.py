"""The texts behind a run's rows, kept with the run: `texts/<split>.parquet`, one row a text.

Results name a text by its place in the split. With this file, whoever shows them needs neither the corpus nor
its tokenizer; without it the corpus is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.records import Example, Words
from heedful.store.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 256  # texts read at once: those of one page are in a few groups


def texts_path(run: Path, split: str) -> Path:
    return run / "texts" / f"{split}.parquet"


def write_texts(run: Path, split: str, examples: Iterable[tuple[int, Example]]) -> None:
    """Texts with their places in the split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_row(place, example) for place, example in sorted(examples, key=lambda pair: pair[0])]
    with whole_file(texts_path(run, split)) as temporary:
        table = pa.Table.from_pylist(rows, schema=_schema(pa))
        pq.write_table(table, temporary, compression="zstd", row_group_size=GROUP)


def read_texts(run: Path, split: str, places: Sequence[int]) -> dict[int, Example] | None:
    """The texts at some places; None where the run has not kept them."""
    import pyarrow.parquet as pq

    path = texts_path(run, split)
    if not path.is_file():
        return None
    table = pq.read_table(path, filters=[("example", "in", sorted(set(places)))]) if places else None
    return {} if table is None else {row["example"]: _example(row) for row in table.to_pylist()}


def _schema(pa: Any) -> pa.Schema:
    string, places = pa.string(), pa.list_(pa.int32())
    words = [("text", string), ("forms", pa.list_(string)), ("starts", places), ("ends", places)]
    return pa.schema(
        [
            ("example", pa.int64()),
            ("id", string),
            *words,
            *((f"query_{name}", kind) for name, kind in words),
            ("label", pa.int32()),
            ("evidence", places),
            ("candidates", places),
        ]
    )


def _row(place: int, example: Example) -> dict[str, Any]:
    row = {"example": place, "id": example.id, "label": example.label}
    row |= {"evidence": example.evidence, "candidates": example.candidates}
    for prefix, words in (("", example.passage), ("query_", example.query)):
        if words is not None:
            starts, ends = np.asarray(words.offsets).reshape(-1, 2).T.tolist()
            row |= {f"{prefix}text": words.text, f"{prefix}forms": list(words.forms)}
            row |= {f"{prefix}starts": starts, f"{prefix}ends": ends}
    return row


def _example(row: dict[str, Any]) -> Example:
    def words(prefix: str) -> Words:
        offsets = np.array([row[f"{prefix}starts"], row[f"{prefix}ends"]], dtype=np.int32).T
        return Words(row[f"{prefix}text"], tuple(row[f"{prefix}forms"]), offsets.reshape(-1, 2))

    return Example(
        id=row["id"],
        passage=words(""),
        label=row["label"],
        query=None if row["query_text"] is None else words("query_"),
        evidence=None if row["evidence"] is None else tuple(row["evidence"]),
        candidates=None if row["candidates"] is None else tuple(row["candidates"]),
    )
