"""What each variant of a study changes, from the rows of its runs: paired differences from the first variant.

The same text is asked of both, in runs with the same seeds, and the difference is taken text by text; texts and seeds
are two levels of chance (measure/levels.py). All differences of a page are one family of tests (Benjamini & Hochberg).
Nothing here knows an experiment: which measures answer which question is said by the study, which way is better by the
measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from heedful.errors import one_of
from heedful.experiments import EXPERIMENTS
from heedful.experiments.framework.description import Measure
from heedful.measure.columns import column, frame
from heedful.measure.levels import OverRuns, crossed_mean, over_runs
from heedful.measure.statistics import SIGNIFICANT, Floats
from heedful.measure.tests import Statement, discoveries
from heedful.store.run import Run
from heedful.store.texts import read_labels

ACCURACY = "accuracy"
Change = Literal["better", "worse", "undecided"]
Values = Mapping[int, float]  # by the place of the text


@dataclass(frozen=True, slots=True)
class VariantMeasure:
    """A measure, and the experiment whose rows have it; `accuracy` is in the rows of every experiment."""

    measure: Measure
    experiment: str | None
    by: str | None = None


def find_measure(key: str) -> VariantMeasure:
    """By its key, or the mistake that lists the right ones."""
    if key == ACCURACY:
        return VariantMeasure(Measure(ACCURACY, ACCURACY, ACCURACY, "correct", ""), None)
    known = {
        measure.key: VariantMeasure(measure, name, experiment.by)
        for name, experiment in EXPERIMENTS.items()
        for measure in experiment.measures
    }
    if key not in known:
        raise one_of("measure", key, [ACCURACY, *known])
    return known[key]


@dataclass(frozen=True, slots=True)
class VariantRun:
    """A finished run of one variant, and by the key of a measure one number of each text."""

    dataset: str
    variant: str
    seed: int
    measured: Mapping[str, Values]  # without what was not asked


def measured(run: Run, keys: Iterable[str]) -> dict[str, Values]:
    """The measures of these keys that the rows of a run have."""
    asked = (name for name in EXPERIMENTS if run.results.summary(name) is not None)
    tables = {name: run.results.rows(name) for name in asked}
    found = {key: _values(find_measure(key), tables, run) for key in dict.fromkeys(keys)}
    return {key: values for key, values in found.items() if values}


def _values(asked: VariantMeasure, tables: Mapping[str, pa.Table], run: Run) -> Values:
    if asked.experiment is None:
        return _correct(tables, run)
    measure, table = asked.measure, tables.get(asked.experiment)
    if table is None or measure.column not in table.column_names:  # not asked, or by an older version
        return {}
    rows = frame(table, measure.column, asked.by, measure.group)
    values = rows.value if measure.undefined is None else np.nan_to_num(rows.value, nan=measure.undefined)
    places, at = np.unique(rows.example, return_inverse=True)
    means = np.bincount(at, values) / np.bincount(at)  # of several rows of a text
    return dict(zip(places.tolist(), means.tolist(), strict=True))


def _correct(tables: Mapping[str, pa.Table], run: Run) -> Values:
    """1 where the label is predicted, of all texts that were asked about; none where their texts may not be kept."""
    labels = read_labels(run.path, "test", run.hash_file)
    said: dict[int, float] = {}
    for table in tables.values():
        said |= zip(table["example"].to_pylist(), column(table, "predicted").tolist(), strict=True)
    return {place: float(labels[place] == label) for place, label in said.items() if place in labels}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a variant changes in one measure on one dataset; `reference` is the mean of the first variant."""

    dataset: str
    variant: str
    asked: VariantMeasure
    reference: OverRuns
    change: OverRuns
    p: float
    q: float = float("nan")

    @property
    def found(self) -> Change:
        """A finding by its q-value and by its interval, which knows how little two seeds tell; or undecided."""
        if not self.q <= SIGNIFICANT or self.change.low <= 0 <= self.change.high:
            return "undecided"
        return "better" if (self.change.mean > 0) == self.asked.measure.rising else "worse"

    def __str__(self) -> str:
        return f"{self.change.mean:+.2f} ({self.change.low:+.2f} to {self.change.high:+.2f})"


def effects(runs: Sequence[VariantRun], variants: Sequence[str], measures: Sequence[str]) -> list[Effect]:
    """Of every dataset, variant and measure that runs with the same seed of it and of the first variant have."""
    asked = [find_measure(key) for key in dict.fromkeys(measures)]
    first, *others = variants
    made: list[Effect] = []
    for dataset in dict.fromkeys(run.dataset for run in runs):
        here = {(run.variant, run.seed): run for run in runs if run.dataset == dataset}
        for one in asked:
            known = {at: run.measured.get(one.measure.key, {}) for at, run in here.items()}
            for variant in others:
                both = [
                    (known[at], known[first, at[1]]) for at in known if at[0] == variant and (first, at[1]) in known
                ]
                made += _effect(dataset, variant, one, both)
    found = discoveries([Statement(f"{e.dataset} {e.variant} {e.asked.measure.key}", e.p) for e in made])
    return [replace(effect, q=one.q) for effect, one in zip(made, found, strict=True)]


def _effect(
    dataset: str, variant: str, asked: VariantMeasure, both: Sequence[tuple[Values, Values]]
) -> Iterator[Effect]:
    """Of pairs of runs, (variant, reference), over the texts that all of them have."""
    pairs = [pair for pair in both if all(pair)]
    texts = sorted(set.intersection(*(set(values) for pair in pairs for values in pair))) if pairs else []
    own, reference = (np.array([[pair[i][text] for text in texts] for pair in pairs]) for i in (0, 1))  # (runs, texts)
    difference: Floats = own - reference
    if not pairs or (~np.isnan(difference).any(0)).sum() < 2:  # nothing to compare, or hardly a text that defines it
        return
    p = crossed_mean(difference).p if len(pairs) > 1 else float("nan")  # one seed tells nothing of seeds
    yield Effect(dataset, variant, asked, over_runs(reference), over_runs(difference), p)
