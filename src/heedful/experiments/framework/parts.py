"""What an experiment may add to its question and its columns, in three optional records: what it takes to ask it, how
pages show it, and what it tells an audit of explainers. Each may be left out, and so may each of its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heedful.config import Config, EvaluationConfig, RunConfig
from heedful.experiments.framework.description import MethodMeasure, Reason, Result, Statistic, WeightsPair

if TYPE_CHECKING:
    from heedful.experiments.framework.comparison import Comparison, Evidence
    from heedful.figures.figure import Figure


def no_explainers(config: Config) -> tuple[str, ...]:
    return ()


def no_warning(summary: Mapping[str, Any]) -> str:
    return ""


def no_runs(config: Config, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    return {}


@dataclass(frozen=True, slots=True)
class Takes:
    """What it takes to ask an experiment, beside a model and texts."""

    forwards: tuple[float, float] = (1, 0)  # passes through the model by text, and by word
    explainers: Callable[[Any], Iterable[str]] = no_explainers  # that it uses, by name, given its configuration
    # Other runs that it compares with, by its own names for them, given its configuration and what it asks about (a run
    # or a model on other data). They are trained first, once for all that need them.
    runs: Callable[[Any, RunConfig | EvaluationConfig], Mapping[str, RunConfig]] = no_runs
    sentences: bool = False  # whether its batches are to say where sentences begin


@dataclass(frozen=True, slots=True)
class Presentation:
    """How pages show an experiment. Its functions are pure, and none needs torch."""

    group_title: Callable[[str], str] = str  # what a value of the column `by` is called
    statistics: tuple[Statistic, ...] = ()  # of a run, beside other runs; none: the means of the measures
    draw: Callable[[Result], Sequence[Figure]] | None = None  # None: a histogram of every column
    examples: Callable[[Result], Iterable[Reason]] | None = None  # None: the texts at both ends of the first column
    tabulate: Callable[[Evidence], Comparison] | None = None  # None: the measures beside published numbers
    weights: WeightsPair | None = None
    has_say: bool = True  # in the headline: whether people would point at the same words has none, for example
    # The warning that an outcome (a summary) puts on every other conclusion about the same data; empty: none.
    warn: Callable[[Mapping[str, Any]], str] = no_warning


@dataclass(frozen=True, slots=True)
class ForAudit:
    """What an experiment tells of each explainer, for `heedful audit`."""

    measures: tuple[MethodMeasure, ...] = ()
    fast_with: frozenset[str] = frozenset()  # what a model must be able to do, or it takes long (an audit must be told)
    within_budget: Mapping[str, Any] = field(default_factory=dict)  # options of an audit: more texts, each for less
    # Why its rows say nothing of explainers, given its summary: an audit then leaves them out; empty: they do.
    void: Callable[[Mapping[str, Any]], str] = no_warning
    only_for: str = ""  # the data that it is for, where of others it would say something else; asked only by name then
