"""The verdicts of runs: as their summaries have them; of older summaries, made once from the rows.

Both come from the experiment's own `verdict`. What has to be made is made one after the other in the background,
so that a list of many old runs comes at once, and is complete a moment later.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Result, find
from heedful.experiments.framework.caveats import not_made_sentence, warnings_of
from heedful.experiments.framework.certainty import control
from heedful.experiments.framework.verdict import Grade, Verdict, grade_of, headline, to_json
from heedful.server.stored.library import RunEntry
from heedful.server.stored.results import File, StoredResults

KEPT = 20_000  # of several thousand old runs
PATIENCE = 1.5  # seconds that a list of runs waits for verdicts that have to be made


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """With the one sentence that stands beside its badge."""
    return {**to_json(verdict), "short": verdict.short}


class Verdicts:
    def __init__(self, results: StoredResults) -> None:
        self._results, self._lock = results, Lock()
        self._made: OrderedDict[File, Future[Verdict | None]] = OrderedDict()
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="verdicts")

    def of(self, entry: RunEntry, only: str | None = None) -> dict[str, Verdict]:
        """By experiment, or of one alone; a file that cannot be read is a mistake."""
        asked = self._asked(entry, only)
        found = {name: one if isinstance(one, Verdict) else one.result() for name, one in asked.items()}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def page(self, entry: RunEntry, entries: Iterable[RunEntry]) -> dict[str, Any]:
        """`headline`, its `grade`, the verdicts, `warnings` on all of them (`entries` are those that may know), and
        which tests it `rests` on, as JSON values; empty without any."""
        found = self.of(entry)
        if not found:
            return {}
        (found,) = control([found])
        all_of_them = list(found.values())
        return {
            "headline": headline(all_of_them),
            "grade": grade_of(all_of_them),
            "warnings": warnings_about(entry, entries),
            "rests": not_made_sentence(found, entry.trial, entry.name),
            "verdicts": {name: verdict_json(verdict) for name, verdict in found.items()},
        }

    def grades(self, entries: Sequence[RunEntry], patience: float = PATIENCE) -> tuple[dict[str, Grade], int]:
        """(the grade of the headline by run, runs whose verdicts are still being made).

        A run without results has no grade; one whose results cannot be read says nothing.
        """
        asked = {entry.name: list(self._asked(entry).values()) for entry in entries}
        futures = [one for found in asked.values() for one in found if isinstance(one, Future)]
        if futures:
            wait(futures, patience)
        grades: dict[str, Grade] = {}
        waiting = 0
        for name, found in asked.items():
            if any(isinstance(one, Future) and not one.done() for one in found):
                waiting += 1
                continue
            known = [_known(one) for one in found]
            if known:
                (kept,) = control([{str(i): v for i, v in enumerate(known) if v is not None}])
                grades[name] = grade_of(list(kept.values()))
        return grades, waiting

    def made(self, entry: RunEntry) -> dict[str, Verdict]:
        """By experiment those that are there: nothing is waited for."""
        found = {
            name: _known(one) if isinstance(one, Verdict) or one.done() else None
            for name, one in self._asked(entry).items()
        }
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def _asked(self, entry: RunEntry, only: str | None = None) -> dict[str, Verdict | Future[Verdict | None]]:
        """The verdict, or the promise of it, for each experiment that can give one."""
        found: dict[str, Verdict | Future[Verdict | None]] = {}
        for name, file in entry.tables.items():
            if name not in EXPERIMENTS or find(name).judge is None or only not in (None, name):
                continue
            kept = entry.verdicts.get(name)
            found[name] = kept if kept is not None else self._promise(entry, name, file)
        return found

    def _promise(self, entry: RunEntry, name: str, file: File) -> Future[Verdict | None]:
        with self._lock:
            if file not in self._made:
                self._made[file] = self._maker.submit(self._make, entry, name)
                while len(self._made) > KEPT:
                    self._made.popitem(last=False)
            return self._made[file]

    def _make(self, entry: RunEntry, name: str) -> Verdict | None:
        try:
            return find(name).verdict(trial(self._results, entry, name))
        except KeyError as error:
            if "does not exist in schema" not in str(error):
                raise
            # rows of another version lack a column: they have no verdict, and their page says so
            return None


def _known(one: Verdict | Future[Verdict | None]) -> Verdict | None:
    """What cannot be read tells nothing here; its own page says why."""
    if isinstance(one, Verdict):
        return one
    return None if one.exception() is not None else one.result()


def warnings_about(entry: RunEntry, entries: Iterable[RunEntry]) -> list[str]:
    """What outcomes of this run, or else of another on the same data, say of every other conclusion about them."""
    own = warnings_of(entry.summaries)
    if own:
        return own
    data = entry.info.get("data", {}).get("fingerprint")
    for other in entries:
        said: list[str] = []
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # a summary of another version: its own page
            said = warnings_of(other.summaries) if other.info.get("data", {}).get("fingerprint") == data else []
        if said:
            return [f"{sentence} (Found of {other.name}.)" for sentence in said]
    return []


def trial(results: StoredResults, entry: RunEntry, name: str) -> Result:
    """The whole of an experiment's rows, with what is known around them."""
    file = entry.tables[name]
    options = results.footer(file).made_by.get("options", {})
    try:
        table = pq.read_table(file[0])
    except (pa.ArrowException, OSError) as error:
        raise Mistake(f"{file[0].name} of {entry.name} cannot be read ({error}): make it again.") from None
    summary = entry.summaries.get(name, {})
    beside = {other: found for other, found in entry.summaries.items() if other != name}
    return Result(name, table, summary, options, entry.labels, str(entry.info.get("task")), beside=beside)
