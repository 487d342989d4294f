"""Which of a model's labels those of the data are, where their names do not say it: measured on a few labelled texts.

An order that is guessed turns a model upside down, so none is suggested that the model's own answers do not show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import perm
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora.assemble import spread_places
from heedful.data.corpora.labels import find_label, read_label_map, show_label_map, show_labels
from heedful.data.text.batching import CPU
from heedful.measure.paired import mcnemar
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.engine.sources.models import ModelSource

MOST_ROWS = 400  # labelled texts that the model is asked about: of one that is right three times in four 50 do not tell
MOST_WAYS = 720  # of giving labels to labels that are compared: six to six
SURE = 0.01  # the chance that the second best way is as good, over all ways
UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class LabelFit:
    """How well two ways of naming agree with a model's answers to some texts."""

    best: Mapping[str, str]  # from labels of the data to those of the model
    agrees: float
    second: Mapping[str, str]
    agrees_second: float
    rows: int
    sure: bool


def say_how_to_map(
    source: ModelSource, examples: Sequence[Example], labels: Sequence[str], label_map: Mapping[str, str]
) -> tuple[str, bool]:
    """What to type where labels do not match: as the model's answers show it, or a form; could more texts tell?

    `examples` are numbered by `labels`, the names of the data.
    """
    fit = measure_fit(source, examples, labels, label_map)
    used = [labels[number] for number in sorted({one.label for one in examples if one.label is not None})]
    if fit is None or not fit.sure:
        known = read_label_map(label_map, source.labels, used)
        numbers = {name: known.get(name, find_label(name, source.labels)) for name in used}
        form = {name: UNKNOWN if number is None else source.labels[number] for name, number in numbers.items()}
        measured = "" if fit is None else f" from the model's answers to {count_texts(fit)} ({compare(fit)})"
        how = f"with one of {show_labels(source.labels)} in place of each {UNKNOWN}."
        told = f"It is not clear which is which{measured}: type --label-map {show_label_map(form)} {how}"
        return told, fit is not None
    return f"Measured on {count_texts(fit)}: {compare(fit)}. Type --label-map {show_label_map(fit.best)}.", False


def count_texts(fit: LabelFit) -> str:
    return f"{fit.rows} labelled text{'s' if fit.rows > 1 else ''}"


def compare(fit: LabelFit) -> str:
    """ "neg = LABEL_0, pos = LABEL_1 agrees with 91%, the other way with 9%"."""
    best, second = (", ".join(f"{name} = {own}" for name, own in way.items()) for way in (fit.best, fit.second))
    other = "the other way" if len(fit.best) == 2 and set(fit.best.values()) == set(fit.second.values()) else second
    return f"{best} agrees with {fit.agrees:.0%}, {other} with {fit.agrees_second:.0%}"


def measure_fit(
    source: ModelSource, examples: Sequence[Example], labels: Sequence[str], label_map: Mapping[str, str]
) -> LabelFit | None:
    """Every way to give each label of the data another one of the model's; labels whose names match stay as they are.

    None where there is nothing to compare: too few labels or texts, or too many ways.
    """
    labelled = [example for example in examples if example.label is not None]
    some = [labelled[place] for place in spread_places(len(labelled), MOST_ROWS)]
    used = sorted({example.label for example in labelled if example.label is not None})
    names = [labels[number] for number in used]
    said = read_label_map(label_map, source.labels, names)
    known = {name: said.get(name, find_label(name, source.labels)) for name in names}
    open_names = [name for name in names if known[name] is None]
    free = [number for number in range(len(source.labels)) if number not in known.values()]
    if not 2 <= perm(len(free), len(open_names)) <= MOST_WAYS:
        return None
    predicted = predict_labels(source, some)  # (texts,)
    truths = np.array([labels[example.label or 0] for example in some])  # (texts,) of names
    ways = [known | dict(zip(open_names, numbers, strict=True)) for numbers in permutations(free, len(open_names))]
    right = np.array([[way[truth] for truth in truths] for way in ways]) == predicted  # (ways, texts)
    order = np.argsort(-right.mean(1), kind="stable")
    first, second = right[order[0]], right[order[1]]
    p = min(1.0, mcnemar(int((first & ~second).sum()), int((second & ~first).sum())) * (len(ways) - 1))

    def named(way: Mapping[str, int | None]) -> dict[str, str]:
        return {name: source.labels[number] for name, number in way.items() if number is not None}

    agrees = float(first.mean()), float(second.mean())
    return LabelFit(named(ways[order[0]]), agrees[0], named(ways[order[1]]), agrees[1], len(some), p < SURE)


def predict_labels(source: ModelSource, examples: Sequence[Example]) -> NDArray[np.int64]:
    """The number of the label that the model gives to each: (texts,)."""
    from heedful.models.training import predict

    model = source.load(CPU)
    plain = [replace(example, label=None, candidates=None) for example in examples]
    chosen: NDArray[np.int64] = predict(model.network, model.encode(plain)).argmax(-1)
    return chosen
