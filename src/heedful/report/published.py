"""Published numbers beside those of one run, where a study has them."""

from __future__ import annotations

from functools import cache

from heedful.experiments import Published
from heedful.experiments.framework.comparison import SETTING, Table
from heedful.experiments.framework.description import Setting
from heedful.report.findings import Findings
from heedful.studies.comparison import PERFORMANCE, Finished, compare, evidence
from heedful.studies.file import read_study, study_names


def published_in(setting: Setting) -> tuple[list[Published], list[str]]:
    """The numbers of a setting, and all sources."""
    numbers, sources = _published()
    return numbers.get(setting, []), sources


@cache
def _published() -> tuple[dict[Setting, list[Published]], list[str]]:
    """The numbers of all studies by setting, and their sources, the most trusted first."""
    numbers: dict[Setting, list[Published]] = {}
    sources: list[str] = []
    for study in map(read_study, study_names()):
        if study.like is None:
            sources += [source.name for source in study.sources if source.name not in sources]
            for row in study.numbers:
                numbers.setdefault(row.setting, []).append(row)
    return numbers, sources


def published_tables(findings: Findings) -> list[Table]:
    """Tables of this run's numbers beside the published ones, of experiments that have some."""
    known = findings.published
    summaries = {PERFORMANCE: findings.performance, **findings.summaries}
    here = {findings.setting: [Finished(findings.setting, findings.seed or 0, summaries)]}
    names = dict(enumerate(findings.labels))
    made: list[Table] = []
    for name in summaries:
        if any(row.experiment == name for row in known):
            made += compare(name, evidence(name, here, known, findings.sources)).tables
    return [
        Table(
            t.title,
            t.header[len(SETTING) :],
            tuple(_with_labels(row[len(SETTING) :], names) for row in t.rows),
            t.note.replace("`", ""),
        )
        for t in made
    ]


def _with_labels(row: tuple[str, ...], names: dict[int, str]) -> tuple[str, ...]:
    """Labels by name where the table has their number."""
    return tuple(names.get(int(cell), cell) if cell.isdecimal() else cell for cell in row)
