"""Examples that are worth a look, each chosen for a reason that is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from heedful.experiments import Trial, find
from heedful.experiments.description import Reason
from heedful.records import Example

READABLE = (6, 45)  # words: texts that one takes in at a glance, where there are any
NEARLY = 20  # where all are long, the shortest of so many


@dataclass(frozen=True, slots=True)
class Choice:
    """A text by its place in the split, and why it is shown."""

    place: int
    title: str
    reason: str
    ranked_by: tuple[str, ...] = ()  # see `Reason`
    experiment: str = ""  # whose reason it is


def choose(trials: Iterable[Trial], examples: Mapping[int, Example]) -> list[Choice]:
    """One text for each reason that the results allow, no text twice."""
    taken: dict[int, Choice] = {}
    for experiment, why in _reasons(list(trials), examples):
        known = [p for p in why.places if p in examples and p not in taken and len(examples[p].passage)]
        short = [p for p in known if READABLE[0] <= len(examples[p].passage) <= READABLE[1]]
        shortest = sorted(known[:NEARLY], key=lambda p: len(examples[p].passage))
        for place in (short or shortest)[:1]:
            taken[place] = Choice(place, why.title, why.reason, why.ranked_by, experiment)
    return list(taken.values())


def _reasons(trials: list[Trial], examples: Mapping[int, Example]) -> Iterator[tuple[str, Reason]]:
    """Those of every experiment, with its name, and wrong predictions."""
    for trial in trials:
        yield from ((trial.experiment, why) for why in find(trial.experiment).examples(trial))
    for trial in trials[:1]:
        frame = trial.frame("predicted")
        predicted = dict(zip(frame.example.tolist(), frame.predicted.tolist(), strict=True))
        peaks = dict(zip(frame.example.tolist(), np.nan_to_num(frame.max_attention).tolist(), strict=True))
        wrong = [
            p for p, label in predicted.items() if p in examples and examples[p].label not in (None, label)
        ]
        wrong.sort(key=lambda place: (-peaks[place], place))
        yield "", Reason("A wrong prediction", "Wrong, with the sharpest attention.", wrong)
        yield "", Reason("Another wrong prediction", "Wrong, with the most even attention.", wrong[::-1])
