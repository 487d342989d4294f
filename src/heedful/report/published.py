"""Published numbers beside ours, where a study has them."""

from __future__ import annotations

from functools import cache
from typing import Any

from heedful.engine.study import read_study
from heedful.report.cells import MEASURES, Finished
from heedful.report.comparison import Table, correlations, scores
from heedful.report.findings import Findings

STUDY = "jain-wallace"
SETTING = 3  # columns that name dataset, encoder and attention: the same in every row here


@cache
def study() -> dict[str, Any]:
    return read_study(STUDY).model_dump(by_alias=True)


def published_tables(findings: Findings) -> list[Table]:
    """Tables of this run's numbers beside the published ones; none where nothing was published."""
    known = [row for row in (*study()["scores"], *study()["tau"]) if _setting(row) == findings.setting]
    if not known:
        return []
    summaries = {**findings.summaries, "performance": findings.performance}
    grouped = {findings.setting: [Finished(findings.setting, findings.info["config"]["seed"], summaries)]}
    names = dict(enumerate(findings.labels))
    made = [scores(grouped, study()), correlations(grouped, study())]
    return [
        Table(
            t.title,
            t.header[SETTING:],
            tuple(_named(row[SETTING:], names) for row in t.rows),
            t.note.replace("`", ""),
        )
        for t in made
        if t.rows
    ]


def published_tau(findings: Findings) -> dict[str, float]:
    """The published mean tau of each pair over all texts: from the paper, else from the authors' files.

    The paper gives some of them by class only; then it is their mean, weighted by our texts of each class.
    """
    found: dict[str, float] = {}
    summary = findings.summaries.get("correlation", {})
    for measure, pair in MEASURES.items():
        for source in ("paper", "files"):
            rows = {
                row["class"]: row["mean"]
                for row in study()["tau"]
                if (row["source"], row["measure"]) == (source, measure) and _setting(row) == findings.setting
            }
            sizes = {
                label: line["tau"]["n"] for label, line in summary.get(pair, {}).get("by_class", {}).items()
            }
            if "overall" in rows:
                found.setdefault(pair, rows["overall"])
            elif sizes and set(sizes) <= set(rows):
                weighted = sum(rows[label] * n for label, n in sizes.items()) / max(1, sum(sizes.values()))
                found.setdefault(pair, round(weighted, 4))
    return found


def _setting(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["dataset"], row["encoder"], row["attention"]


def _named(row: tuple[str, ...], names: dict[int, str]) -> tuple[str, ...]:
    """Labels by name where the table has their number."""
    return tuple(names.get(int(cell), cell) if cell.isdecimal() else cell for cell in row)
