"""The verdicts of the report, for a run page. Read and computed once for each version of the results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any

from heedful.errors import Mistake
from heedful.web.library import Entry
from heedful.web.results import Results

if TYPE_CHECKING:
    import pyarrow as pa

    from heedful.report.verdicts import Verdict

NEEDED = {  # columns that a verdict is computed from
    "correlation": ("pair", "tau"),
    "permutation": ("median",),
    "adversarial": ("jsd", "ceiling", "exact"),
}
KEPT = 600


class Judge:
    def __init__(self, results: Results) -> None:
        self._results, self._lock = results, Lock()
        self._kept: OrderedDict[Any, dict[str, Any]] = OrderedDict()

    def verdicts(self, entry: Entry) -> dict[str, Any]:
        """`headline`, its `grade`, and one verdict for each experiment that has results; empty without any."""
        tables = {name: entry.tables[name] for name in NEEDED if name in entry.tables}
        key = tuple(tables.values())
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._judge(entry) if tables else {}
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key]

    def _judge(self, entry: Entry) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from heedful.experiments.adversarial import epsilon_of
        from heedful.report import verdicts

        def adversarial(table: pa.Table) -> Verdict:
            options = self._results.footer(entry.tables["adversarial"]).made_by.get("options", {})
            has_query = entry.info.get("task") != "classification"
            return verdicts.adversarial(table, epsilon_of(options.get("epsilon"), has_query))

        asked: dict[str, Callable[[pa.Table], Verdict]] = {
            "permutation": verdicts.permutation,
            "correlation": verdicts.agreement,
            "adversarial": adversarial,
        }
        found = {}
        for name, judge in asked.items():
            if name in entry.tables:
                try:
                    table = pq.read_table(entry.tables[name][0], columns=list(NEEDED[name]))
                    found[name] = judge(table)
                except (pa.ArrowException, OSError, KeyError) as error:
                    file = entry.tables[name][0].name
                    raise Mistake(
                        f"{file} of {entry.name} cannot be read ({error}): make it again."
                    ) from None
        return {
            "headline": verdicts.headline(list(found.values())),
            "grade": verdicts.overall(list(found.values())),
            "verdicts": {name: asdict(verdict) for name, verdict in found.items()},
        }
