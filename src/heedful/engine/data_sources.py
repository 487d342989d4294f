"""What a corpus is made of, known without reading it: a hash of its files' bytes, or of what generates it.

Planning needs to know whether data have changed, for thousands of tasks, in seconds. Loading and tokenising
would tell, too, in minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.config import DataOptions
from heedful.data import corpora, locate
from heedful.data.fingerprint import fingerprint
from heedful.data.readers.simple import split_files
from heedful.data.readers.tables import file_format
from heedful.data.registry import CORPORA
from heedful.data.vectors import locate_vectors
from heedful.records import Corpus, Example, Split, TaskType
from heedful.store.checks import HashFile, sha256

DATA_VERSION = "1"  # changes when the same files would be read as other examples
GENERATED_BYTES = 500_000  # what a generated corpus counts for where sizes are compared


@dataclass(frozen=True, slots=True)
class DataSource:
    """`size` in bytes, to guess which task takes longest; `where` in words."""

    fingerprint: str
    size: int
    where: str


def source_fingerprint(
    dataset: str,
    options: DataOptions | None = None,
    data_dirs: Sequence[Path] = (),
    hash_file: HashFile = sha256,
) -> str:
    return find_data(dataset, options or DataOptions(), data_dirs, hash_file).fingerprint


def find_data(
    dataset: str, options: DataOptions, data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256
) -> DataSource:
    """Where `corpora.load` would read `dataset` from, and the hash of it; its own mistakes where it is nowhere."""
    entry = CORPORA.get(dataset)
    found = None if _is_path(dataset) else locate.find(dataset, locate.data_dirs(data_dirs))
    if found is not None and found.form == "simple":
        return _of_files([path for _, path in split_files(found.folder)], str(found.folder), hash_file)
    if found is not None:
        return _of_files(_all_files(found.folder), str(found.folder), hash_file)
    if entry is not None and entry.built_in:
        digest = hashlib.sha256(f"generated {dataset} {DATA_VERSION}".encode())
        return DataSource(digest.hexdigest(), GENERATED_BYTES, "built in")
    path = Path(dataset.removeprefix("hf:")).expanduser()
    if entry is None and path.exists():
        others = [
            other for other in (options.dev_file, options.test_file) if other is not None and other.exists()
        ]
        return _of_files([*([path] if path.is_file() else _all_files(path)), *others], str(path), hash_file)
    corpus = corpora.load(dataset, data_dirs=data_dirs, options=options)  # hf:ID, or says what is wrong
    size = sum(len(example.passage.text) for examples in corpus.splits.values() for example in examples)
    return DataSource(fingerprint(corpus), size, corpus.source)


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Some texts of a split by their places in it, and what is known of all of them."""

    size: int  # of the split
    examples: Mapping[int, Example]
    labels: tuple[str, ...]
    task: TaskType
    source: str  # where they came from, in words


def load_corpus(dataset: str, options: DataOptions, data_dirs: Sequence[Path] = ()) -> Corpus:
    return corpora.load(dataset, data_dirs=data_dirs, options=options)


def read_split(
    dataset: str,
    options: DataOptions,
    split: Split,
    limit: int | None,
    data_dirs: Sequence[Path] = (),
) -> SplitTexts:
    """`limit` texts of a split, evenly spread (corpora are often sorted by label); None: all."""
    corpus = load_corpus(dataset, options, data_dirs)
    examples = corpus[split]
    wanted = {place: examples[place] for place in spread_places(len(examples), limit).tolist()}
    return SplitTexts(len(examples), wanted, corpus.labels, corpus.task, corpus.source)


def spread_places(size: int, limit: int | None) -> NDArray[np.int64]:
    """All places of a split, or `limit` of them, evenly spread."""
    n = min(limit or size, size)
    return np.arange(n, dtype=np.int64) * size // max(n, 1)


def vectors_fingerprint(vectors: str, data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256) -> str:
    """Of the file or folder of word vectors that is meant."""
    place = locate_vectors(vectors, locate.data_dirs(data_dirs))
    files = [place] if place.is_file() else _all_files(place)
    return _of_files(files, str(place), hash_file).fingerprint


def _is_path(dataset: str) -> bool:
    """What `corpora.load` takes for a file or folder of one's own, not for a corpus by name."""
    path = Path(dataset).expanduser()
    return dataset not in CORPORA and (
        dataset.startswith("hf:") or path.exists() or file_format(path) is not None
    )


def _all_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _of_files(paths: Iterable[Path], place: str, hash_file: HashFile) -> DataSource:
    """Names and bytes, in order. The folder's own name does not count: data may be moved."""
    digest = hashlib.sha256(f"files {DATA_VERSION}".encode())
    size = 0
    for path in paths:
        digest.update(f"\x1e{path.name}\x1f{hash_file(path)}".encode())
        size += path.stat().st_size
    return DataSource(digest.hexdigest(), size, place)
