"""One small reader for each source format; all of them give the same `Raw` rows.

`ORIGINALS` maps a known corpus to the reader of its original distribution and to the layout by which
that distribution is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, Spans
from heedful.data.originals import (
    acl_imdb,
    adr,
    ag_news,
    babi_tasks,
    class_csv,
    cnn,
    imdb_ratings,
    mimic,
    newsgroups,
    snli,
    trees,
)

__all__ = ["ORIGINALS", "Ledger", "Original", "Raw", "Spans"]


@dataclass(frozen=True, slots=True)
class Original:
    """`read(folder, ledger)` for the folder that has one of `needs`: the given one or one of `folders`."""

    read: Callable[[Path, Ledger], Iterator[Raw]]
    needs: tuple[str, ...]
    folders: tuple[str, ...]

    def find(self, root: Path, *, exactly_named: bool = False) -> Path | None:
        """Where in `root` the distribution is, if it is; `exactly_named` asks for a folder of its name."""
        for folder in self.folders if exactly_named else ("", *self.folders):
            if any((root / folder / need).exists() for need in self.needs):
                return root / folder
        return None


_AG = ("ag_news_csv", "ag_news")
_MIMIC = ("mimic", "mimiciii", "mimic-iii", "mimic-iii-clinical-database-1.4")
_NOTES = ("NOTEEVENTS.csv", "NOTEEVENTS.csv.gz")
_BABI = ("tasks_1-20_v1-2/en-10k", "en-10k", "tasks_1-20_v1-2/en")

ORIGINALS: dict[str, Original] = {
    "sst": Original(trees.read, ("train.txt",), ("trees", "trainDevTestTrees_PTB/trees")),
    "imdb": Original(acl_imdb.read, ("train/pos",), ("aclImdb",)),
    "imdb10": Original(imdb_ratings.read, imdb_ratings.FILES, ("imdb10", "imdb", "emnlp-2015-data")),
    "adr": Original(adr.read, adr.FILES, ("adr", "Tweets")),
    "20news": Original(newsgroups.read, ("20news-bydate-train",), ("20news-bydate", "20news_home")),
    "agnews": Original(partial(ag_news.read, classes=ag_news.WORLD_BUSINESS), ("train.csv",), _AG),
    "agnews4": Original(partial(ag_news.read, classes=ag_news.CLASSES), ("train.csv",), _AG),
    "diabetes": Original(partial(mimic.read, judge=mimic.diabetes), _NOTES, _MIMIC),
    "anemia": Original(partial(mimic.read, judge=mimic.anemia), _NOTES, _MIMIC),
    "cnn": Original(cnn.read, ("questions/training",), ("cnn",)),
    "babi1": Original(partial(babi_tasks.read, task=1), ("qa1_single-supporting-fact_train.txt",), _BABI),
    "babi2": Original(partial(babi_tasks.read, task=2), ("qa2_two-supporting-facts_train.txt",), _BABI),
    "babi3": Original(partial(babi_tasks.read, task=3), ("qa3_three-supporting-facts_train.txt",), _BABI),
    "yahoo": Original(
        partial(class_csv.read, classes=class_csv.TOPICS, fields=3), ("train.csv",), ("yahoo_answers_csv",)
    ),
    "amazon_full": Original(
        partial(class_csv.read, classes=class_csv.STARS, fields=2), ("train.csv",), ("amazon_review_full_csv",)
    ),
    "yelp": Original(
        partial(class_csv.read, classes=class_csv.STARS, fields=1), ("train.csv",), ("yelp_review_full_csv",)
    ),
    "snli": Original(snli.read, ("snli_1.0_train.jsonl",), ("snli_1.0",)),
}
