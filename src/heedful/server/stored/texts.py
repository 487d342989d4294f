"""The words behind a row: from the run folder where it keeps them, otherwise from the corpus, read once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from threading import Lock
from typing import get_args

from heedful.data.corpora.locate import nothing_fetched
from heedful.errors import Mistake
from heedful.records import Corpus, Example, Split
from heedful.server.stored.library import RunEntry, refuse_link_out, stamp_of
from heedful.server.stored.recent import Recent
from heedful.store.texts import read_texts, texts_files

KEPT = 3  # corpora held in memory
KEPT_TEXTS = 2048  # texts or pages of texts: a drag of an instance's attention reads nothing again
PATIENCE = 1.5  # seconds that a page waits for a corpus before it comes without its texts


class NotReady(Mistake):
    """The corpus is still being read: ask again in a moment."""


class StoredTexts:
    """Texts by run, split and place."""

    def __init__(self, data_dirs: Sequence[Path] = ()) -> None:
        self.data_dirs = tuple(data_dirs)
        self._lock = Lock()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="corpus")
        self._corpora: OrderedDict[str, Future[Corpus]] = OrderedDict()
        self._read = Recent(KEPT_TEXTS)

    def get(self, entry: RunEntry, split: str, places: Sequence[int], patience: float = PATIENCE) -> dict[int, Example]:
        """The texts at these places. Raises `NotReady` while the corpus is being read, `Mistake` if it is gone."""
        if split not in get_args(Split):
            raise Mistake(f"{entry.name} has results of the split {split!r}; known are train, dev and test.")
        files = texts_files(entry.path, split)
        refuse_link_out(entry.path, *(f"texts/{file.name}" for file in files))
        key = (entry.path, split, tuple(map(stamp_of, files)), tuple(places))
        kept = self._read.get(key, lambda: read_texts(entry.path, split, places, entry.run.hash_file))
        if kept is not None:
            return kept
        examples = self._corpus(entry, patience)[split]  # type: ignore[index]
        return {place: examples[place] for place in places if 0 <= place < len(examples)}

    def _corpus(self, entry: RunEntry, patience: float) -> Corpus:
        key = str(entry.info["data"].get("fingerprint", entry.name))
        with self._lock:
            if key not in self._corpora:
                self._corpora[key] = self._reader.submit(self._load, entry)
                while len(self._corpora) > KEPT:
                    self._corpora.popitem(last=False)
            future = self._corpora[key]
            self._corpora.move_to_end(key)
        try:
            return future.result(patience)
        except NotYet:
            raise NotReady(f"the texts of {entry.dataset} are being read: a moment, please.") from None
        except Mistake:
            with self._lock:  # it may be there the next time
                self._corpora.pop(key, None)
            raise

    def _load(self, entry: RunEntry) -> Corpus:
        from heedful.engine.sources.data import load_corpus, source_fingerprint
        from heedful.engine.sources.edited_data import corpus_of

        trial = entry.run.trial
        config, folders = trial or entry.run.config, (*self.data_dirs, *entry.run.data_folders)
        with nothing_fetched():  # a run folder can name any data of the hub
            if source_fingerprint(config.dataset, config.data, folders) != entry.info["data"].get("fingerprint"):
                raise Mistake(
                    f"the texts of {entry.dataset} have changed since these results were made, so they cannot be shown "
                    "beside them: give the folder of the right data with --data-dir."
                )
            if trial is None:
                return corpus_of(entry.run, folders)
            return load_corpus(trial.dataset, trial.data, folders)


def split_of(entry: RunEntry, made_by: dict[str, object]) -> str:
    """The split that rows are of: what their file says, otherwise what training was measured on."""
    return str(made_by.get("split") or entry.performance.get("split") or "test")
