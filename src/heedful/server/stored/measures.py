"""What the cells of overview, cards and comparisons show of each run: the measures of every experiment."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.experiments import EXPERIMENTS, Experiment
from heedful.experiments.framework.description import Column, Measure, number_at
from heedful.server.answer import run_address
from heedful.server.stored.library import RunEntry
from heedful.server.stored.results import Counts, File, StoredResults

BINS = 24


class MeasureOf:
    """A measure with the experiment it is of."""

    def __init__(self, experiment: Experiment, measure: Measure) -> None:
        self.experiment, self.measure = experiment, measure
        self.title, self.short = measure.title, measure.short

    @property
    def column(self) -> Column:
        return self.experiment.column(self.measure.column)

    @property
    def group(self) -> tuple[str, str] | None:
        """(column, value) of the rows that are meant; None: all."""
        by, group = self.experiment.by, self.measure.group
        return None if by is None or group is None else (by, group)

    def number(self, entry: RunEntry, name: str) -> float | None:
        """`mean`, `low`, `high`, ... as the summary has it."""
        path = f"{self.measure.line}.{name}" if self.measure.line else name
        return number_at(entry.summaries.get(self.experiment.name), path)

    def address(self, run: str) -> str:
        group = {} if self.group is None else {group_parameter(self.group[0]): self.group[1]}
        return run_address(run, self.experiment.name, **group, column=self.measure.column)

    def files(self, entries: Sequence[RunEntry]) -> dict[str, File]:
        """Of the runs that have rows of it."""
        name = self.experiment.name
        return {entry.name: entry.tables[name] for entry in entries if name in entry.tables}

    def range(self, results: StoredResults, files: Sequence[File]) -> tuple[float, float]:
        """Of the column; where it says none, that of the values of all these files."""
        about = self.column
        if about.low is not None and about.high is not None:
            return about.low, about.high
        low, high = results.range(files, self.measure.column, self.group)
        low, high = (about.low if about.low is not None else low, about.high if about.high is not None else high)
        return low, high if high > low else low + 1.0

    def counts(self, results: StoredResults, files: Sequence[File], span: tuple[float, float]) -> dict[File, Counts]:
        return results.histograms(files, self.measure.column, self.group, *span, BINS)


def measures() -> dict[str, MeasureOf]:
    """By the name that stands in an address; the experiment is part of it where two have the same."""
    found: dict[str, MeasureOf] = {}
    for name, experiment in EXPERIMENTS.items():
        for measure in experiment.measures:
            key = f"{name}:{measure.key}" if measure.key in found else measure.key
            found[key] = MeasureOf(experiment, measure)
    return found


def group_parameter(by: str) -> str:
    """What an address calls the group: the column's own name, unless a page means something else by it."""
    return f"by_{by}" if by in RESERVED else by


RESERVED = frozenset(  # settings of an experiment's page
    ("column", "sort", "page", "low", "high", "alow", "ahigh", "label", "undefined", "format")
)
