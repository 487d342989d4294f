"""Runs that differ only in their seed: one verdict for each configuration and question, with both uncertainties."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from heedful.experiments.framework.certainty import over_seeds
from heedful.experiments.framework.comparison import SETTING, Table
from heedful.experiments.framework.description import Setting
from heedful.experiments.framework.verdict import MARKS, Verdict

NOTE = (
    "Runs that differ only in their seed are one line. The interval is over texts and training runs: what other texts "
    "and other seeds would change. A verdict is undecided where it holds a bar; the last column says whether other "
    "bars would change it."
)


def verdicts_by_configuration(
    runs: Iterable[tuple[Hashable, int | None, Setting, Mapping[str, Verdict]]],
) -> Table | None:
    """Of (what identifies a configuration, seed, setting, verdicts by experiment) of each run; None where no
    configuration has several seeds. A seed that is given twice counts once."""
    groups: dict[Hashable, tuple[Setting, dict[int | None, Mapping[str, Verdict]]]] = {}
    for configuration, seed, setting, verdicts in runs:
        groups.setdefault(configuration, (setting, {}))[1].setdefault(seed, verdicts)
    rows = [row for setting, found in groups.values() for row in _rows(setting, list(found.values()))]
    header = (*SETTING, "question", "runs", "verdict", "value (95% interval)", "at half and at twice the bars")
    return Table("Verdicts over training runs", header, tuple(rows), NOTE) if rows else None


def _rows(setting: Setting, runs: Sequence[Mapping[str, Verdict]]) -> Iterable[tuple[str, ...]]:
    for name in dict.fromkeys(name for run in runs for name in run):
        combined = over_seeds([run[name] for run in runs if name in run])
        if combined is not None:
            value = f"{combined.value:.2f} ({combined.low:.2f} to {combined.high:.2f})"
            answer = f"{MARKS[combined.grade]} {combined.answer}"
            many = str(sum(name in run for run in runs))
            yield (*setting, combined.question, many, answer, value, combined.sensitivity)
