"""The figures of an experiment's page: those of the report, drawn by the same functions, and kept while rows stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heedful.experiments import Result, experiment_of
from heedful.figures.figure import Figure
from heedful.server.stored.library import RunEntry
from heedful.server.stored.recent import Recent
from heedful.server.stored.results import StoredResults
from heedful.server.stored.verdicts import trial

KEPT = 32


class Figures:
    def __init__(self, results: StoredResults) -> None:
        self._results, self._kept = results, Recent(KEPT)

    def of(self, entry: RunEntry, name: str) -> tuple[Sequence[Figure], str]:
        """(an experiment's own figures, a sentence where they cannot be drawn)."""
        found = self._kept.get(entry.tables[name], lambda: self._draw(entry, name))
        return ((), found) if isinstance(found, str) else (found, "")

    def _trial(self, entry: RunEntry, name: str) -> Result:
        """With the numbers that were published of this setting."""
        from heedful.report.published import published_in

        numbers, sources = published_in((str(entry.info["config"]["dataset"]), entry.encoder, entry.attention))
        own = [row for row in numbers if row.experiment == name]
        return replace(trial(self._results, entry, name), published=own, sources=sources)

    def _draw(self, entry: RunEntry, name: str) -> Sequence[Figure] | str:
        experiment = experiment_of(name)
        if experiment.pages.draw is None:  # then the page's own are all there are
            return ()
        try:
            return tuple(experiment.figures(self._trial(entry, name)))
        except Exception as error:  # rows of another version, or another package's mistake: the rest can be shown
            return f"The figures of {name} cannot be drawn from these rows ({type(error).__name__}: {error})."
