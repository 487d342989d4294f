"""What the texts say of each explainer: one number a text, beside what chance and the best order get on that text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.experiments.framework.description import MethodMeasure
from heedful.explainers.methods import usual_control
from heedful.measure.columns import Floats, Ints, column

RANDOM = usual_control().name  # the explainer that knows nothing
ROUNDING = 1e-6  # of the output: what is nearer to chance is not a gain, whatever the digits after it say


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One measure of one explainer under one condition: (texts,) each, nan where undefined, in the order of texts."""

    experiment: str
    measure: MethodMeasure
    method: str
    condition: str  # "" where there is only one
    examples: Ints
    value: Floats
    chance: Floats  # nan where nothing is known of chance
    possible: Floats  # nan where nothing is known of the best order

    @property
    def gain(self) -> Floats:
        """How much better than chance, whichever way is up."""
        return self._up(self.value)

    @property
    def rooms(self) -> Floats:
        """How much better than chance the best order is, text by text."""
        return self._up(self.possible)

    @property
    def room(self) -> float:
        """In the mean; nan where that is not known, or nothing."""
        known = self.rooms[~np.isnan(self.rooms)]
        mean = float(known.mean()) if known.size else float("nan")
        return mean if mean > 0 else float("nan")

    @property
    def beyond_room(self) -> Floats:
        """Gains without what a text gains only because there is more to gain in it than in others: their mean is that
        of the gains, and their spread that of the share, a ratio of two means (linearised: Cochran 1977, 6.4)."""
        defined = ~np.isnan(self.gain) & ~np.isnan(self.rooms)
        if not defined.any() or np.isnan(self.room):
            return self.gain
        more = np.where(defined, self.rooms - self.rooms[defined].mean(), 0.0)
        share = float(self.gain[defined].mean()) / self.room
        return self.gain - share * more

    def _up(self, values: Floats) -> Floats:
        more = values - self.chance
        more = np.where(np.abs(more) <= ROUNDING * np.maximum(1.0, np.abs(self.chance)), 0.0, more)
        return more if self.measure.rising else -more


def series_of(experiment: str, measures: tuple[MethodMeasure, ...], table: pa.Table) -> list[Series]:
    """Every measure of every explainer that the rows have."""
    return [one for measure in measures for one in _of_measure(experiment, measure, table)]


def _of_measure(experiment: str, measure: MethodMeasure, table: pa.Table) -> Iterator[Series]:
    if measure.column not in table.column_names:
        return
    examples, place = np.unique(table["example"].to_numpy(), return_inverse=True)
    methods = np.full(len(table), measure.only)
    if measure.only is None:
        methods = np.array([name.partition(" ")[0] for name in _names(table, measure.method)])
    conditions = np.full(len(table), "") if measure.condition is None else _names(table, measure.condition)

    def by_text(name: str | float | None, rows: NDArray[np.bool_]) -> Floats:
        if isinstance(name, int | float):
            return np.full(len(examples), float(name))
        if name is None or name not in table.column_names:
            return np.full(len(examples), np.nan)
        values = column(table, name)
        if name == measure.column and measure.missing is not None:
            values = np.where(np.isnan(values), measure.missing, values)
        kept = rows & ~np.isnan(values)
        n = np.bincount(place[kept], minlength=len(examples))
        total = np.bincount(place[kept], values[kept], minlength=len(examples))
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)

    for condition in dict.fromkeys(conditions.tolist()):
        here = conditions == condition
        control = by_text(measure.column, here & (methods == RANDOM)) if measure.chance is None else None
        for method in dict.fromkeys(methods[here].tolist()):
            rows = here & (methods == method)
            chance = by_text(measure.chance, rows) if control is None else control
            possible = by_text(measure.possible, rows)
            yield Series(
                experiment, measure, method, condition, examples, by_text(measure.column, rows), chance, possible
            )


def _names(table: pa.Table, name: str) -> NDArray[np.str_]:
    return np.array([str(value) for value in table[name].to_pylist()])
