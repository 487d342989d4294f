"""The texts behind a run's rows: from its folder where it keeps them, else from the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.engine.sources.data import source_fingerprint
from heedful.engine.sources.edited_data import corpus_of
from heedful.engine.sources.models import source_of
from heedful.engine.sources.other_data import as_the_model_reads, read_other
from heedful.engine.tasks.rows import Ints, select_places
from heedful.engine.tasks.task import Request
from heedful.errors import Mistake
from heedful.records import Example, Split
from heedful.store.run import Run
from heedful.store.texts import count_kept, read_some, read_texts


@dataclass(frozen=True)
class AskedTexts:
    """The texts that a question is about, by their places in the split. `whole`: these are all of it."""

    places: Ints
    examples: Mapping[int, Example]
    whole: bool


def kept_texts(run: Run, ask: Request) -> AskedTexts | None:
    """What the run folder has of the texts that are asked about."""
    size = count_kept(run.path, ask.split)
    if size is not None:
        places = select_places(size, ask)
        found = read_texts(run.path, ask.split, places.tolist(), run.hash_file)
        return None if found is None else AskedTexts(places, found, whole=len(places) == size)
    some = None if ask.limit is None else read_some(run.path, ask.split, ask.limit, run.hash_file)
    return None if some is None else AskedTexts(np.array(sorted(some), dtype=np.int64), some, whole=False)


def texts_of(run: Run, split: Split, places: Sequence[int], data_dirs: Sequence[Path] = ()) -> dict[int, Example]:
    """By place, in the order of the places. The corpus must be what it was when the rows were made."""
    kept = read_texts(run.path, split, places, run.hash_file)
    if kept is not None and set(places) <= set(kept):
        return {place: kept[place] for place in places}
    config = run.config if run.trial is None else run.trial
    if source_fingerprint(config.dataset, config.data, data_dirs) != run.info["data"]["fingerprint"]:
        raise Mistake(
            f"the data of {config.dataset} are not those that {run.path} was trained on: its results cannot be "
            "shown with their texts. Give the right data with --data-dir, or leave the texts out with --no-texts."
        )
    if run.trial is None:
        split_texts = corpus_of(run, data_dirs)[split]
        return {place: split_texts[place] for place in places}
    read = read_other(config.dataset, config.data, split, None, data_dirs)
    found = {place: read.examples[place] for place in places}
    return as_the_model_reads(found, read.task, read.labels, source_of(run), config.dataset, config.data)
