"""The texts behind a run's rows, for whoever shows them: from its folder where it keeps them, else from the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heedful.engine.data_sources import load_corpus, source_fingerprint
from heedful.engine.model_sources import source_of
from heedful.engine.other_data import as_the_model_reads, read_other
from heedful.errors import Mistake
from heedful.records import Example, Split
from heedful.store.run import Run
from heedful.store.texts import read_texts


def texts_of(
    run: Run, split: Split, places: Sequence[int], data_dirs: Sequence[Path] = ()
) -> dict[int, Example]:
    """By place, in the order of the places. The corpus must be what it was when the rows were made."""
    kept = read_texts(run.path, split, places)
    if kept is not None and set(places) <= set(kept):
        return {place: kept[place] for place in places}
    config = run.config if run.trial is None else run.trial
    if source_fingerprint(config.dataset, config.data, data_dirs) != run.info["data"]["fingerprint"]:
        raise Mistake(
            f"the data of {config.dataset} are not those that {run.path} was trained on: its results cannot be "
            "shown with their texts. Give the right data with --data-dir, or leave the texts out with --no-texts."
        )
    if run.trial is None:
        split_texts = load_corpus(config.dataset, config.data, data_dirs)[split]
        return {place: split_texts[place] for place in places}
    read = read_other(config.dataset, config.data, split, None, data_dirs)
    found = {place: read.examples[place] for place in places}
    return as_the_model_reads(found, read.task, read.labels, source_of(run), config.dataset)
