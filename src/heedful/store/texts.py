"""The texts behind a run's rows, kept with the run: `texts/<split>.parquet`, one row a text.

Results name a text by its place in the split. With this file, whoever shows them needs neither the corpus nor
its tokenizer; without it the corpus is read again. Rows of `n` texts of a split keep these in
`texts/<split>-<n>.parquet`: which ones `n` means is always the same, so a file that is there is never written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import Mistake
from heedful.files import whole_file
from heedful.records import Example, Words
from heedful.store.checks import Damaged, HashFile, check_sum, sha256, write_sum

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 256  # texts read at once: those of one page are in a few groups


def texts_path(run: Path, split: str, some: int | None = None) -> Path:
    return run / "texts" / (f"{split}.parquet" if some is None else f"{split}-{some}.parquet")


def texts_files(run: Path, split: str) -> list[Path]:
    """What a run has kept of a split: the file of all its texts, or those of some; none, where it has not."""
    whole = texts_path(run, split)
    return [whole] if whole.is_file() else sorted(whole.parent.glob(f"{split}-*.parquet"))


def keep_texts(
    run: Path,
    split: str,
    examples: Sequence[Example] | Mapping[int, Example],
    places: Sequence[int],
    whole: bool | None = None,
) -> None:
    """The texts at these places of a split, unless they are kept. `whole`: these are all that there are."""
    whole = len(places) == len(examples) if whole is None else whole
    path = texts_path(run, split, None if whole else len(places))
    if not path.is_file():
        _write(path, ((place, examples[place]) for place in places))


def count_kept(run: Path, split: str) -> int | None:
    """How many texts the split has, where the run has kept them all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = texts_path(run, split)
    if not path.is_file():
        return None
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def read_some(run: Path, split: str, some: int, hash_file: HashFile = sha256) -> dict[int, Example] | None:
    """The `some` texts of a split that a question about so many is of, by place; None where they are not kept."""
    path = texts_path(run, split, some)
    return _read(path, None, hash_file) if path.is_file() else None


def write_texts(run: Path, split: str, examples: Iterable[tuple[int, Example]]) -> None:
    """All texts of a split with their places."""
    _write(texts_path(run, split), sorted(examples, key=lambda pair: pair[0]))


def _write(path: Path, examples: Iterable[tuple[int, Example]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, rows = _schema(pa), (_row(place, example) for place, example in examples)
    how = {"compression": "zstd", "write_page_checksum": True}
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema, **how) as file:
        while some := list(islice(rows, GROUP)):
            file.write_table(pa.Table.from_pylist(some, schema=schema))
    write_sum(path)


def read_texts(run: Path, split: str, places: Sequence[int], hash_file: HashFile = sha256) -> dict[int, Example] | None:
    """The texts at some places; None where the run has not kept them, and of a whole split those there are."""
    found: dict[int, Example] = {}
    files, wanted = texts_files(run, split), set(places)
    for path in files:
        found |= _read(path, sorted(wanted - set(found)), hash_file)
        if wanted <= set(found):
            break
    whole = files == [texts_path(run, split)]
    return found if whole or (files and wanted <= set(found)) else None


def read_labels(run: Path, split: str, hash_file: HashFile = sha256) -> dict[int, int]:
    """The labels of the texts that a run has kept of a split, by place; without those that have none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[int, int] = {}
    for path in texts_files(run, split):
        _check(path, hash_file)
        try:
            table = pq.read_table(path, columns=["example", "label"])
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None
        pairs = zip(table["example"].to_pylist(), table["label"].to_pylist(), strict=True)
        found |= {place: label for place, label in pairs if label is not None}
    return found


def _read(path: Path, places: list[int] | None, hash_file: HashFile) -> dict[int, Example]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check(path, hash_file)
    try:
        these = None if places is None else [("example", "in", places)]
        table = pq.read_table(path, filters=these, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    return {row["example"]: _example(row) for row in table.to_pylist()}


def _check(path: Path, hash_file: HashFile) -> None:
    try:
        check_sum(path, hash_file)
    except Damaged as damage:
        raise Mistake(f"{damage}: remove it, and the texts are read from the corpus.") from None


def _unreadable(path: Path, error: Exception) -> Mistake:
    first = str(error).splitlines()[0]
    return Mistake(f"{path} cannot be read ({first}): remove it, and the texts are read from the corpus.")


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
