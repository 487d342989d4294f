"""Can its attention be believed? The grade of the report's headline for many runs at once, without its sentences.

A grade goes by point estimates alone, and these stand in the summaries; only where some texts have no tau, one
query over their files finds the means of the texts that have all. The intervals, which take a bootstrap of each
table, are left to a run's own page (judged.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS
from heedful.report import grades
from heedful.report.grades import Grade
from heedful.web.library import Entry
from heedful.web.results import Results, Table, plain_path

PAIRS = ("attention/gradient_x_input", "attention/omission", "gradient_x_input/omission", "attention/random")
MEANS = f"""
    select filename, {", ".join(f"avg(tau{i})" for i in range(4))} from (
      select filename, {", ".join(f"max(tau) filter (pair = '{pair}') as tau{i}" for i, pair in enumerate(PAIRS))}
      from read_parquet(?, filename = true, union_by_name = true) where not isnan(tau) group by filename, example)
    where {" and ".join(f"tau{i} is not null" for i in range(4))} group by filename having count(*) >= 2"""


class Grades:
    """What was found by the query is kept until the files change."""

    def __init__(self, results: Results) -> None:
        self._results, self._lock = results, Lock()
        self._kept: dict[Table, Grade] = {}

    def of(self, entries: Sequence[Entry]) -> dict[str, Grade]:
        """By run; a run without results of the three experiments has none."""
        found: dict[str, dict[str, Grade | None]] = {
            e.name: {name: _summarised(e, name) for name in EXPERIMENTS if name in e.tables} for e in entries
        }
        unsure = [e for e in entries if found[e.name].get("correlation", "unclear") is None]
        with self._lock:
            missing = [table for e in unsure if (table := e.tables["correlation"]) not in self._kept]
            found_by_query = self._ask(missing) if missing else {}
            self._kept |= {table: found_by_query.get(table, "unclear") for table in missing}
            for e in unsure:
                found[e.name]["correlation"] = self._kept[e.tables["correlation"]]
        return {
            name: grades.overall_of([grade or "unclear" for grade in graded.values()])
            for name, graded in found.items()
            if graded
        }

    def _ask(self, tables: Sequence[Table]) -> dict[Table, Grade]:
        by_file = {str(path): (path, stamp) for path, stamp in tables}
        try:
            asked = [[plain_path(Path(name)) for name in by_file]]
            rows = self._results.query(MEANS, asked, "one of the results").fetchall()
        except Mistake:
            if len(tables) == 1:
                return {}  # a file without these columns, or a broken one: nothing is told of it
            parts = [self._ask([table]) for table in tables]
            return {table: grade for part in parts for table, grade in part.items()}
        return {by_file[file]: grades.grade_of_agreement(means) for file, *means in rows}


def _summarised(entry: Entry, experiment: str) -> Grade | None:
    """What a run's summary tells; None where it does not."""
    summary: Any = entry.summaries.get(experiment, {})
    if experiment == "correlation":
        taus = [summary.get(pair, {}).get("overall", {}).get("tau", {}) for pair in PAIRS]
        complete = all(tau.get("undefined") == 0 and tau.get("n", 0) >= 2 for tau in taus)
        same = complete and len({tau["n"] for tau in taus}) == 1
        return grades.grade_of_agreement([tau["mean"] for tau in taus]) if same else None
    overall = summary.get("overall", {})
    value = overall.get("q50" if experiment == "permutation" else "mean_of_ceiling")
    if value is None:
        return None
    if experiment == "permutation":
        return grades.grade_of_change(value)
    return grades.grade_of_freedom(value, overall.get("exact") == 1)
