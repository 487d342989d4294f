"""From configurations and experiments to a graph of tasks.

The plan does not depend on what is finished: a command that is given again makes the same plan, and with it
the same number of threads for each task, so that it ends with the same bits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from heedful import experiments
from heedful.config import RunConfig
from heedful.engine.data_sources import DataSource, find_source, vectors_fingerprint
from heedful.engine.task import KINDS, Ask, Task, TaskKind, experiment_key, summary_key, train_key
from heedful.errors import Mistake
from heedful.records import SPLITS
from heedful.store.run import Run, run_name


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks by key, each after those it needs."""

    tasks: Mapping[str, Task]
    sources: Mapping[str, DataSource]  # by dataset

    def __len__(self) -> int:
        return len(self.tasks)

    def count(self, kind: TaskKind) -> int:
        return sum(task.kind == kind for task in self.tasks.values())

    def of(self, kind: TaskKind) -> list[Task]:
        return [task for task in self.tasks.values() if task.kind == kind]

    def with_threads(self, cores: int) -> Plan:
        """Cores to tasks: as many tasks side by side as there are of a kind, and a thread for each core left.

        A recurrent network gains little from a second thread, a second task twice as much.
        """
        threads = {kind: max(1, cores // max(1, self.count(kind))) for kind in KINDS} | {"summarise": 1}
        tasks = {key: replace(task, threads=threads[task.kind]) for key, task in self.tasks.items()}
        return replace(self, tasks=tasks)


def ask(
    experiment: str, options: Mapping[str, Any] | None = None, split: str = "test", limit: int | None = None
) -> Ask:
    """What was typed as a full question, with every default, or the sentence that says what is wrong."""
    found = experiments.find(experiment)
    settings = found.config.parse(dict(options or {}), f"the options of {experiment}")
    if split not in SPLITS:
        raise Mistake(f"--split {split!r}: the splits are {', '.join(SPLITS)}.")
    if limit is not None and limit < 1:
        raise Mistake(f"--limit {limit}: at least one text is needed.")
    values = {"experiment": experiment, "options": settings.model_dump(mode="json"), "split": split}
    return Ask.parse({**values, "limit": limit, "version": found.version}, f"the experiment {experiment}")


def plan(
    configs: Iterable[RunConfig],
    asks: Sequence[Ask] = (),
    data_dirs: Sequence[Path] = (),
    sources: Mapping[str, DataSource] | None = None,
) -> Plan:
    """Train every configuration, and ask each of the runs. Data and vectors are hashed once.

    `sources`, by dataset, are believed: for plans that are not to be carried out.
    """
    known = _Known(data_dirs, sources or {})
    tasks: dict[str, Task] = {}
    for config in configs:
        source = known.source(config)
        key = train_key(config, source.fingerprint, known.vectors(config))
        name = run_name(config, key)
        _add(tasks, Task("train", key, name, config, source.fingerprint, size=source.size), asks)
    return Plan(tasks, known.by_dataset)


def plan_for_run(run: Run, asks: Sequence[Ask], data_dirs: Sequence[Path] = ()) -> Plan:
    """Ask a run that exists. Its folder may have another name by now; its data must be what they were."""
    known = _Known(data_dirs, {})
    config = run.config
    source = known.source(config)
    key = train_key(config, source.fingerprint, known.vectors(config))
    if run.info.get("key") != key:
        raise Mistake(
            f"{run.path} was trained on other data, or by another version of heedful, than what is here now "
            f"({config.dataset}: {source.where}); train again."
        )
    tasks: dict[str, Task] = {}
    _add(tasks, Task("train", key, run.name, config, source.fingerprint, size=source.size), asks)
    return Plan(tasks, known.by_dataset)


def _add(tasks: dict[str, Task], train: Task, asks: Sequence[Ask]) -> None:
    tasks[train.key] = train
    for one in asks:
        key = experiment_key(one, train.key)
        rows = replace(train, kind="experiment", key=key, ask=one, needs=(train.key,))
        summary = replace(rows, kind="summarise", key=summary_key(key, code(one.experiment)), needs=(key,))
        tasks[rows.key], tasks[summary.key] = rows, summary


@cache
def code(experiment: str) -> str:
    """A hash of the code that makes a summary. Summaries are made in a second: after any change, again."""
    digest = hashlib.sha256()
    for name in experiments.find(experiment).code:
        file = import_module(name).__file__
        assert file is not None
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


class _Known:
    """Each dataset and each file of vectors is looked at once."""

    def __init__(self, data_dirs: Sequence[Path], given: Mapping[str, DataSource]) -> None:
        self.data_dirs, self.given = data_dirs, given
        self.by_dataset: dict[str, DataSource] = dict(given)
        self._sources: dict[str, DataSource] = {}
        self._vectors: dict[str, str] = {}

    def source(self, config: RunConfig) -> DataSource:
        if config.dataset in self.given:
            return self.given[config.dataset]
        which = f"{config.dataset} {config.data.dev_file} {config.data.test_file}"
        if which not in self._sources:
            self._sources[which] = find_source(config.dataset, config.data, self.data_dirs)
            self.by_dataset[config.dataset] = self._sources[which]
        return self._sources[which]

    def vectors(self, config: RunConfig) -> str | None:
        if config.vectors is None:
            return None
        if config.vectors not in self._vectors:
            self._vectors[config.vectors] = vectors_fingerprint(config.vectors, self.data_dirs)
        return self._vectors[config.vectors]


def kinds_of(tasks: Iterable[Task]) -> dict[str, int]:
    counted = Counter(task.kind for task in tasks)
    return {kind: counted[kind] for kind in KINDS if counted[kind]}
