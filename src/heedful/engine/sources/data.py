"""What a corpus is made of and how large it is, known without reading it; and the one place that reads it.

Planning needs to know whether data have changed, for thousands of tasks, in seconds: a hash of the files' bytes, or of
what generates them, tells. Loading and tokenising would tell, too, in minutes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config import DataOptions, RunConfig
from heedful.data.corpora import load as corpora
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import spread_places
from heedful.data.corpora.locate import fingerprint
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.registry import CORPORA
from heedful.data.corpora.user_files import files_of
from heedful.data.edits.edit import edit_corpus
from heedful.data.formats.simple import split_files
from heedful.data.formats.tables import file_format
from heedful.data.text import vectors as word2vec
from heedful.data.text.vectors import check_folder, locate_vectors
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Example, Split, TaskType
from heedful.store.checks import HashFile, sha256
from heedful.store.run import Run

DATA_VERSION = "1"  # changes when the same files would be read as other examples
GENERATED_BYTES = 500_000  # what a generated corpus counts for where sizes are compared


@dataclass(frozen=True, slots=True)
class DataSource:
    """`size` in bytes, to guess which task takes longest; `where` in words."""

    fingerprint: str
    size: int
    where: str


def source_fingerprint(
    dataset: str, options: DataOptions | None = None, data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256
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
    path = locate.own_path(dataset.removeprefix("hf:"), locate.data_dirs(data_dirs))
    if entry is None and (files := _files_read(path, dataset.startswith("hf:"))):
        others = [other for other in (options.dev_file, options.test_file) if other is not None]
        return _of_files([*files, *filter(locate.is_file, others)], str(path), hash_file)
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
    columns: str | None = None  # which of one's own file were read, in words


def load_plain_corpus(dataset: str, options: DataOptions, data_dirs: Sequence[Path] = ()) -> Corpus:
    """As its files have it, whatever edit the options name."""
    return corpora.load(dataset, data_dirs=data_dirs, options=options)


def load_corpus(dataset: str, options: DataOptions, data_dirs: Sequence[Path] = ()) -> Corpus:
    """As its files have it, or edited; an edit by another run's scores is known to the run alone: edited_data.py."""
    corpus = load_plain_corpus(dataset, options, data_dirs)
    return corpus if options.edit is None else edit_corpus(corpus, options.edit)


def read_split(
    dataset: str, options: DataOptions, split: Split, limit: int | None, data_dirs: Sequence[Path] = ()
) -> SplitTexts:
    """`limit` texts of a split, evenly spread (corpora are often sorted by label); None: all."""
    if options.edit is not None:  # what an edit does to a text may depend on those before it
        corpus = load_corpus(dataset, options, data_dirs)
        places = spread_places(len(corpus[split]), limit).tolist()
        chosen = {place: corpus[split][place] for place in places}
        return SplitTexts(len(corpus[split]), chosen, corpus.labels, corpus.task, corpus.source)
    found = corpora.load_split(dataset, split, limit, data_dirs=data_dirs, options=options)
    examples = dict(zip(found.places, found.examples, strict=True))
    return SplitTexts(found.size, examples, found.labels, found.task, found.source, found.columns)


def vectors_fingerprint(vectors: str, data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256) -> str:
    """Of the file or folder of word vectors that is meant; word2vec depends on texts and settings alone."""
    if vectors == word2vec.NAME:
        return f"{word2vec.NAME}-{word2vec.VERSION}"
    place = locate_vectors(vectors, locate.data_dirs(data_dirs))
    if place.is_dir():
        check_folder(place)
    files = [place] if place.is_file() else _all_files(place)
    return _of_files(files, str(place), hash_file).fingerprint


def _is_path(dataset: str) -> bool:
    """What `corpora.load` takes for a file or folder of one's own, not for a corpus by name."""
    path = locate.expand(dataset)
    return dataset not in CORPORA and (
        dataset.startswith("hf:") or locate.exists(path) or file_format(path) is not None
    )


def _files_read(path: Path, saved: bool) -> list[Path]:
    """What would be read of a file or folder of one's own: never what lies beside it, be it a whole home folder."""
    if locate.is_file(path):
        return [path]
    if not locate.is_dir(path):
        return []
    if saved:  # a dataset of the Hugging Face library, saved to disk
        known = any(locate.is_file(path / name) for name in ("dataset_dict.json", "state.json"))
        return _all_files(path) if known else []
    return [file for _, file in files_of(path)]


def _all_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _of_files(paths: Iterable[Path], place: str, hash_file: HashFile) -> DataSource:
    """Names and bytes, in order. The folder's own name does not count: data may be moved."""
    digest = hashlib.sha256(f"files {DATA_VERSION}".encode())
    size = 0
    for path in paths:
        locate.check_name(path.name, "a file of the data")
        digest.update(f"\x1e{path.name}\x1f{hash_file(path)}".encode())
        size += path.stat().st_size
    return DataSource(digest.hexdigest(), size, place)


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Texts and words of one split."""

    texts: int
    words: int

    @property
    def length(self) -> float:
        return self.words / max(1, self.texts)


Sizes = Mapping[Split, SplitSize]


def sizes(config: RunConfig, data_dirs: Sequence[Path], known: Run | None = None) -> Sizes:
    """From a run on the same data, else from a quick look at the files, else by loading the corpus."""
    if known is not None and "words" in known.info["data"]:
        data = known.info["data"]
        return {split: SplitSize(data["examples"].get(split, 0), data["words"].get(split, 0)) for split in SPLITS}
    found = None if config.dataset not in CORPORA else locate.find(config.dataset, locate.data_dirs(data_dirs))
    if found is not None and found.form == "simple":
        return _quick(found.folder, CORPORA[config.dataset].recipe, config.data.subset)
    corpus = corpora.load(config.dataset, data_dirs=data_dirs, options=config.data)
    words = {split: sum(len(e.passage) + len(e.query or ()) for e in corpus[split]) for split in SPLITS}
    return {split: SplitSize(len(corpus[split]), words[split]) for split in SPLITS}


def published_sizes(dataset: str) -> Sizes:
    """As Table 1 of Jain & Wallace 2019 says; dev is drawn from train."""
    entry = CORPORA.get(dataset)
    if entry is None or entry.published is None:
        raise Mistake(f"nothing is published about the size of {dataset}.")
    row, fraction = entry.published, entry.recipe.dev_fraction
    train, test = sum(row.train), sum(row.test)
    dev = round(fraction * train)
    texts: dict[Split, int] = {"train": train - dev, "dev": dev, "test": test}
    return {split: SplitSize(n, n * row.mean_length) for split, n in texts.items()}


def _quick(folder: Path, recipe: Recipe, subset: Mapping[Split, int]) -> Sizes:
    """Rows and blanks of the simple form. Punctuation is not split off, no text is too long: about right."""
    found: dict[Split, SplitSize] = dict.fromkeys(SPLITS, SplitSize(0, 0))
    for split, path in split_files(folder):
        texts = words = 0
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                row = json.loads(line)
                query = row.get("hypothesis", row.get("question")) or ""
                texts, words = texts + 1, words + (row["text"] + " " + query).count(" ") + 1
        used = min(1.0, subset.get(split or "train", texts) / max(1, texts))
        found[split or "train"] = _part(SplitSize(texts, words), used)
    found["test"] = _part(found["test"], recipe.test_sample)
    if not found["test"].texts:
        found["test"] = _part(found["train"], recipe.test_fraction)
    if not found["dev"].texts:
        found["dev"] = _part(found["train"], recipe.dev_fraction)
        found["train"] = _part(found["train"], 1 - recipe.dev_fraction)
    return found


def _part(size: SplitSize, fraction: float) -> SplitSize:
    return SplitSize(round(size.texts * fraction), round(size.words * fraction))
