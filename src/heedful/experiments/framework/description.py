"""What an experiment says about itself, so that engine, report, web and study need not know it by name.

Everything here is a frozen record, and every function of a `Result` is pure: no file, no torch, no chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from heedful.config import Config
from heedful.measure.columns import Floats, Frame, frame

Setting = tuple[str, str, str]  # dataset, encoder, attention (and the variant, in a study that has some)


@dataclass(frozen=True, slots=True)
class Column:
    """A number that rows have. Without a range, its range is that of the values."""

    title: str
    low: float | None = None
    high: float | None = None
    reading: str = ""  # one sentence: how to read a histogram of it
    unit: str = ""
    drawn: bool = True
    bins: int = 20
    edges: tuple[float, ...] | None = None  # of the bins, where they are not `bins` equal ones

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the greatest value that the measure can have; what has no limit is infinite."""
        return (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)

    def edges_of(self, values: Floats) -> Floats:
        """The edges of the bins that a histogram of these values has."""
        if self.edges is not None:
            return np.array(self.edges)
        low, high = self.range_of(values)
        return np.linspace(low, high, self.bins + 1)

    def range_of(self, values: Floats) -> tuple[float, float]:
        defined = values[np.isfinite(values)]
        low = self.low if self.low is not None else float(defined.min()) if defined.size else 0.0
        high = self.high if self.high is not None else float(defined.max()) if defined.size else low + 1.0
        return low, high if high > low else low + 1.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of each text that overviews, lists and comparisons of runs show."""

    key: str  # its name in an address
    title: str
    short: str
    column: str
    line: str  # where n, mean, low and high of it stand in the summary: a path of keys with dots
    group: str | None = None  # the value of `Experiment.by` whose rows are meant
    rising: bool = True  # more speaks for the attention
    undefined: float | None = None  # what an undefined value counts as where runs are compared; None: it is left out


@dataclass(frozen=True, slots=True)
class MethodMeasure:
    """A number that each text gives to each explainer: what `heedful audit` compares explainers by.

    A row belongs to the explainer that its column `method` names ("random 3": a draw of it), or `only` to one; under
    several conditions (how a word was removed) to the one in its column `condition`. Several rows of one text and
    method are averaged; an audit leaves out rows that belong to no explainer.
    """

    name: str  # in a bar: faithfulness(lrp).NAME
    title: str
    reading: str  # one sentence: what more of it means
    column: str
    method: str = "method"
    only: str | None = None
    condition: str | None = None
    setting: str | None = None  # of the experiment: which conditions it asks under; its default lists all there are
    chance: str | None = None  # the column of what a random order gets; None: the rows of the method `random`
    possible: str | float | None = None  # the column of what the best order that was found gets, or what that is
    missing: float | None = None  # what an undefined value counts as; None: it does not count
    rising: bool = True  # more is better
    about: Literal["faithfulness", "ground truth", "plausibility"] = "faithfulness"
    ranks: bool = False  # explainers are ordered by it


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number of a run, for a table that compares runs."""

    title: str
    path: str  # into the summary: "overall.q50"
    reading: str
    form: str = ".2f"


@dataclass(frozen=True, slots=True)
class WeightsPair:
    """Two columns that are lists of weights over the words of a text: the model's own, and another."""

    own: str
    other: str
    titles: tuple[str, str]
    heading: str  # of both together
    caption: Callable[[Mapping[str, Any]], str]  # of a text's row


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a text is worth a look; `places` from best to worst.

    `ranked_by` are two methods that the reason says to disagree: where they put the same word first, a page says so.
    """

    title: str
    reason: str
    places: list[int]
    ranked_by: tuple[str, ...] = ()


class Published(Config):
    """A number that somebody has published: of which experiment, which statistic, in which setting."""

    source: str
    experiment: str  # `performance` for the scores of the models
    statistic: str  # a path into the summary: "attention/omission.by_class.0.tau.mean"
    dataset: str
    encoder: str
    attention: str
    value: float
    variant: str = ""  # of a study that has some

    @property
    def setting(self) -> Setting:
        return setting_of(self.dataset, self.encoder, self.attention, self.variant)


def setting_of(dataset: str, encoder: str, attention: str, variant: str = "") -> Setting:
    """A setting, in which a variant stands beside the attention: tables of studies with and without are alike."""
    return dataset, encoder, f"{attention}, {variant}" if variant else attention


@dataclass(frozen=True, slots=True)
class Result:
    """What one experiment found of one model, and what is known around it."""

    experiment: str
    table: pa.Table
    summary: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)  # as asked; what is absent has its default
    labels: Sequence[str] = ()
    task: str = "classification"
    published: Sequence[Published] = ()  # of this experiment, in this setting
    sources: Sequence[str] = ()  # of published numbers, the most trusted first
    beside: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # summaries of the same run's other experiments, for figures that can be held against one of them

    def frame(self, column: str, by: str | None = None, group: str | None = None) -> Frame:
        return frame(self.table, column, by, group)


def value_at(summary: Any, path: str) -> Any:
    """The value at a path of keys with dots, which keys may have themselves; None where there is none."""
    if not isinstance(summary, Mapping):
        return None
    if path in summary:
        return summary[path]
    for key in summary:
        if path.startswith(f"{key}.") and (found := value_at(summary[key], path[len(key) + 1 :])) is not None:
            return found
    return None


def number_at(summary: Any, path: str) -> float | None:
    """The number at a path; None where there is none."""
    found = value_at(summary, path)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def places_by(rows: pa.Table, *keys: Floats) -> list[int]:
    """Places by the first key, ties by the next, then by place; undefined ones are left out."""
    places = rows["example"].to_numpy()
    order = np.lexsort((places, *keys[::-1]))
    return [int(places[i]) for i in order if not any(np.isnan(key[i]) for key in keys)]


def quartiles(line: Mapping[str, float | None]) -> str:
    """What is said instead of a figure, from a line of a summary."""
    if line["q50"] is None:
        return "undefined for all texts"
    return f"median {line['q50']:.3f}, a quarter below {line['q25']:.3f}, a quarter above {line['q75']:.3f}"
