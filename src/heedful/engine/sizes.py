"""How large a corpus is, without tokenising it where that can be avoided: for `--dry-run`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config import RunConfig
from heedful.data import corpora, locate
from heedful.data.readers.simple import split_files
from heedful.data.recipe import Recipe
from heedful.data.registry import CORPORA
from heedful.errors import Mistake
from heedful.records import SPLITS, Split
from heedful.store.run import Run


@dataclass(frozen=True, slots=True)
class Size:
    """Texts and words of one split."""

    texts: int
    words: int

    @property
    def length(self) -> float:
        return self.words / max(1, self.texts)


Sizes = Mapping[Split, Size]


def sizes(config: RunConfig, data_dirs: Sequence[Path], known: Run | None = None) -> Sizes:
    """From a run on the same data, else from a quick look at the files, else by loading the corpus."""
    if known is not None and "words" in known.info["data"]:
        data = known.info["data"]
        return {split: Size(data["examples"].get(split, 0), data["words"].get(split, 0)) for split in SPLITS}
    found = (
        None if config.dataset not in CORPORA else locate.find(config.dataset, locate.data_dirs(data_dirs))
    )
    if found is not None and found.form == "simple":
        return _quick(found.folder, CORPORA[config.dataset].recipe)
    corpus = corpora.load(config.dataset, data_dirs=data_dirs, options=config.data)
    words = {split: sum(len(e.passage) + len(e.query or ()) for e in corpus[split]) for split in SPLITS}
    return {split: Size(len(corpus[split]), words[split]) for split in SPLITS}


def published_sizes(dataset: str) -> Sizes:
    """As Table 1 of Jain & Wallace 2019 says; dev is drawn from train."""
    entry = CORPORA.get(dataset)
    if entry is None or entry.published is None:
        raise Mistake(f"nothing is published about the size of {dataset}.")
    row, fraction = entry.published, entry.recipe.dev_fraction
    train, test = sum(row.train), sum(row.test)
    dev = round(fraction * train)
    texts: dict[Split, int] = {"train": train - dev, "dev": dev, "test": test}
    return {split: Size(n, n * row.mean_length) for split, n in texts.items()}


def _quick(folder: Path, recipe: Recipe) -> Sizes:
    """Rows and blanks of the simple form. Punctuation is not split off, no text is too long: about right."""
    found: dict[Split, Size] = dict.fromkeys(SPLITS, Size(0, 0))
    for split, path in split_files(folder):
        texts = words = 0
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                row = json.loads(line)
                query = row.get("hypothesis", row.get("question")) or ""
                texts, words = texts + 1, words + (row["text"] + " " + query).count(" ") + 1
        found[split or "train"] = Size(texts, words)
    found["test"] = _part(found["test"], recipe.test_sample)
    if not found["test"].texts:
        found["test"] = _part(found["train"], recipe.test_fraction)
    if not found["dev"].texts:
        found["dev"] = _part(found["train"], recipe.dev_fraction)
        found["train"] = _part(found["train"], 1 - recipe.dev_fraction)
    return found


def _part(size: Size, fraction: float) -> Size:
    return Size(round(size.texts * fraction), round(size.words * fraction))
