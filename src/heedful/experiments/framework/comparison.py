"""Runs of a study beside what was published, as tables: what an experiment makes of its summaries.

A difference stands beside what may be expected of it: a prediction interval from our seeds and from the spread between
the published sets (measure/prediction.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from heedful.experiments.framework.description import Measure, Published, Setting, number_at
from heedful.measure.prediction import Variation, variation
from heedful.measure.statistics import Spread, between_seeds

SETTING = ("dataset", "encoder", "attention")


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the terminal, for Markdown and for pages."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += [self.note, ""] if self.note else []
        lines += [_line(self.header), _line(["---"] * len(self.header)), *map(_line, self.rows)]
        return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@dataclass(frozen=True)
class Evidence:
    """What a study has of one experiment: our summaries by setting (one for each seed), and published numbers."""

    summaries: Mapping[Setting, Sequence[Mapping[str, Any]]]
    published: Sequence[Published] = ()
    sources: tuple[str, ...] = ()  # the order of their columns

    def __iter__(self) -> Iterator[tuple[Setting, Sequence[Mapping[str, Any]]]]:
        return ((setting, found) for setting, found in self.summaries.items() if found)

    @cached_property
    def _index(self) -> dict[tuple[str, Setting, str], float]:
        return {(row.source, row.setting, row.statistic): row.value for row in self.published}

    def theirs(self, setting: Setting, statistic: str) -> list[float | None]:
        """The published value of a statistic, for each source."""
        return [self._index.get((source, setting, statistic)) for source in self.sources]


@dataclass(frozen=True, slots=True)
class Point:
    """A number of ours beside the mean of the published ones."""

    setting: Setting
    name: str  # what it is a number of
    published: float
    ours: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sentences for the top of a study's page, and tables; and how well ours agree with what was published, in columns
    of a table (heading -> number), so that variants of a study can be set beside each other."""

    headlines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    agreement: Mapping[str, str] = field(default_factory=dict)
    points: tuple[Point, ...] = ()  # what a figure of the page shows


def measures_beside(title: str, measures: Sequence[Measure], evidence: Evidence) -> Comparison:
    """What an experiment without a comparison of its own gets: the mean of each measure, ours and published."""
    cells = []
    for setting, found in evidence:
        for measure in measures:
            path = f"{measure.line}.mean" if measure.line else "mean"
            means = [mean for one in found if (mean := number_at(one, path)) is not None]
            if means:
                cells.append(((*setting, measure.title), between_seeds(means), evidence.theirs(setting, path)))
    header = (*SETTING, "measure", "ours", *evidence.sources, "ours - published (± expected)")
    rows = beside(cells)
    return Comparison(tables=(Table(title, header, tuple(rows)),) if rows else ())


def beside(cells: Sequence[tuple[tuple[str, ...], Spread, list[float | None]]]) -> list[tuple[str, ...]]:
    """Rows of a table: what is compared, ours, theirs, and the difference beside what may be expected of it."""
    known = variation((ours, theirs) for _, ours, theirs in cells)
    return [(*about, seeds(o), *map(number, t), difference(o, t, known)) for about, o, t in cells]


def nearest(ours: float, theirs: Sequence[float | None]) -> float | None:
    known = [value for value in theirs if value is not None]
    return min(known, key=lambda value: abs(value - ours), default=None)


def difference(ours: Spread, theirs: Sequence[float | None], known: Variation | None = None) -> str:
    """From the mean of the published numbers, with what may be expected of it: "+0.02 (±0.12)"."""
    values = [value for value in theirs if value is not None]
    if not values:
        return "-"
    limit = math.nan if known is None else known.limit(ours.seeds, len(values))
    expected = "" if math.isnan(limit) else f" (±{limit:.2f})"
    return f"{ours.mean - sum(values) / len(values):+.2f}{expected}"


def seeds(spread: Spread) -> str:
    between = "" if math.isnan(spread.std) else f" ({spread.std:.2f})"
    return f"{spread.mean:.2f}{between}"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
