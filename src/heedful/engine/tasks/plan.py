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
from typing import TYPE_CHECKING, Any

from heedful import experiments
from heedful.config import CROSS_ENTROPY, DataOptions, EvaluationConfig, RunConfig, SourceConfig
from heedful.data.edits.edit import parse_edit
from heedful.engine.sources.data import DataSource, find_data, vectors_fingerprint
from heedful.engine.sources.models import ModelSource, source_of
from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.task import (
    Request,
    Task,
    TaskKind,
    experiment_key,
    fit_key,
    score_key,
    summary_key,
    train_key,
    trial_key,
)
from heedful.errors import Mistake, short
from heedful.records import SPLITS
from heedful.registry import EXPLAINERS, OBJECTIVES
from heedful.store.checks import HashFile, sha256
from heedful.store.run import Run, run_name, trial_name

if TYPE_CHECKING:
    from heedful.engine.sources.subject import Subject


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
        threads = {
            name: max(1, cores // max(1, self.count(name))) if kind.computes else 1 for name, kind in TASK_KINDS.items()
        }
        tasks = {key: replace(task, threads=threads[task.kind]) for key, task in self.tasks.items()}
        return replace(self, tasks=tasks)


def ask(
    experiment: str, options: Mapping[str, Any] | None = None, split: str = "test", limit: int | None = None
) -> Request:
    """What was typed as a full question, with every default, or the sentence that says what is wrong."""
    found = experiments.find(experiment)
    settings = found.config.parse(dict(options or {}), f"the options of {experiment}")
    if split not in SPLITS:
        raise Mistake(f"--split {split!r}: the splits are {', '.join(SPLITS)}.")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit < 2**63):
        raise Mistake(f"--limit {short(limit)}: at least one text is needed, and a whole number of them.")
    values = {"experiment": experiment, "options": settings.model_dump(mode="json"), "split": split}
    return Request.parse({**values, "limit": limit, "version": found.version}, f"the experiment {experiment}")


def plan(
    configs: Iterable[RunConfig],
    asks: Sequence[Request] = (),
    data_dirs: Sequence[Path] = (),
    sources: Mapping[str, DataSource] | None = None,
    hash_file: HashFile = sha256,
    asks_on: Mapping[str, Sequence[Request]] | None = None,
) -> Plan:
    """Train every configuration, and ask each of the runs: `asks`, or `asks_on` of its dataset. Data and vectors are
    hashed once.

    `sources`, by dataset, are believed: for plans that are not to be carried out. What an objective needs is trained
    first, and is not asked.
    """
    known, asked = _Known(data_dirs, sources or {}, hash_file), _with_explainers(asks)
    asked_on = {dataset: _with_explainers(own) for dataset, own in (asks_on or {}).items()}
    tasks: dict[str, Task] = {}
    for config in configs:
        _add(tasks, _train(tasks, config, known), asked_on.get(config.dataset, asked), known)
    return Plan(tasks, known.by_dataset)


def plan_for_run(
    run: Run, asks: Sequence[Request], data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256
) -> Plan:
    """Ask a run that exists. Its folder may have another name by now; its data must be what they were."""
    if run.trial is not None:
        options, source = run.trial.data, source_of(run)
        return plan_trial(source, run.trial.dataset, options, asks, run.path.parent, data_dirs, hash_file)
    known = _Known(data_dirs, {}, hash_file)
    tasks: dict[str, Task] = {}
    train = _train(tasks, run.config, known)
    if run.info.get("key") != train.key:
        raise Mistake(
            f"{run.path} was trained on other data, or by another version of heedful, than those here now "
            f"({run.config.dataset}: {known.source(run.config).where}); train again."
        )
    tasks[train.key] = train = replace(train, run=run.name)
    _add(tasks, train, _with_explainers(asks), known)
    return Plan(tasks, known.by_dataset)


def plan_trial(
    source: ModelSource,
    dataset: str,
    options: DataOptions,
    asks: Sequence[Request],
    runs: Path,
    data_dirs: Sequence[Path] = (),
    hash_file: HashFile = sha256,
) -> Plan:
    """Ask a model about data that it was not trained on, in a folder of `runs` for the two."""
    if source.fingerprint is None or source.place is None:
        raise Mistake(f"{source.name} exists only in memory, so nothing computed with it can be kept.")
    data = find_data(dataset, options, data_dirs, hash_file)
    place = Path(source.place)
    told = SourceConfig(
        place=place.name if place.parent == runs.absolute() else source.place,
        name=place.name if place.exists() else source.name,
        fingerprint=source.fingerprint,
    )
    config = EvaluationConfig(source=told, dataset=dataset, data=options, seed=source.seed or 0, model=source.config)
    key = trial_key(config, data.fingerprint)
    first = asks[0] if asks else None  # its texts are read before there is a folder: labels may not match
    name = trial_name(config, key)
    trial = Task("trial", key, name, config, data.fingerprint, first, size=data.size)
    tasks: dict[str, Task] = {key: trial}
    known = _Known(data_dirs, {}, hash_file)
    _add(tasks, trial, _with_explainers(asks), known)
    return Plan(tasks, {**known.by_dataset, dataset: data})


def plan_questions(
    subject: Subject, asks: Sequence[Request], runs: Path, data_dirs: Sequence[Path], hash_file: HashFile
) -> Plan:
    """Questions about a run's own data, or about other data."""
    subject.need_data()
    if subject.data is None:
        assert subject.run is not None
        return plan_for_run(subject.run, asks, data_dirs, hash_file)
    return plan_trial(subject.source, subject.data, subject.reading, asks, runs, data_dirs, hash_file)


def _train(tasks: dict[str, Task], config: RunConfig, known: _Known) -> Task:
    """The training of a configuration, after that of the runs that its objective or the edit of its data needs."""
    source, scores = known.source(config), _score(tasks, config, known)
    scored, edited = (None, None) if scores is None else (scores.key, (scores.run, str(scores.explainer), scores.key))
    if config.training.objective == CROSS_ENTROPY:
        key = train_key(config, source.fingerprint, known.vectors(config), scores=scored)
        task = Task(
            "train",
            key,
            run_name(config, key),
            config,
            source.fingerprint,
            needs=() if scored is None else (scored,),
            size=source.size,
            edited=edited,
        )
    else:
        from heedful.models.objectives.objective import find_bases

        keys: dict[str, str] = {}
        inputs: list[tuple[str, str]] = []
        needs = [] if scored is None else [scored]
        for name, base in find_bases(config.training).items():
            if isinstance(base, RunConfig):
                before = _train(tasks, base, known)
                keys[name], folder = before.key, before.run
                needs.append(before.key)
            else:
                run = Run(Path(base).absolute(), known.hash_file)
                keys[name], folder = f"{source_of(run).fingerprint}", str(run.path)
            inputs.append((name, folder))
        version = OBJECTIVES.find(config.training.objective).version
        key = train_key(config, source.fingerprint, known.vectors(config), (version, keys), scored)
        task = Task(
            "train",
            key,
            run_name(config, key),
            config,
            source.fingerprint,
            needs=tuple(needs),
            size=source.size,
            inputs=tuple(inputs),
            edited=edited,
        )
    return tasks.setdefault(task.key, task)  # a run that exists may have another name


def _score(tasks: dict[str, Task], config: RunConfig, known: _Known) -> Task | None:
    """The scores of every word by which the data of a configuration are edited, after the training that they are of."""
    if config.data.edit is None:
        return None
    found, options = parse_edit(config.data.edit)
    needed = found.scored_by(options)
    if needed is None:
        return None
    base, method = needed
    before = _train(tasks, base, known)
    key = score_key(method, before.key)
    task = replace(before, kind="score", key=key, needs=(before.key,), inputs=(), explainer=EXPLAINERS.check(method))
    return tasks.setdefault(key, task)


def _add(tasks: dict[str, Task], run: Task, asked: Sequence[tuple[Request, list[str]]], known: _Known) -> None:
    """The questions to a run (a training or a trial), after what its explainers learn and the runs beside it."""
    base = replace(run, needs=(run.key,), inputs=())
    for one, learning in asked:
        fits = _add_fits(tasks, base, learning)
        fitted = tuple((fit.explainer or "", fit.key) for fit in fits)
        others = {name: _train(tasks, config, known) for name, config in _runs_beside(one, run).items()}
        fit_keys = tuple(fit.key for fit in fits)
        other_keys = {name: other.key for name, other in others.items()}
        key = experiment_key(one, run.key, fit_keys, other_keys)
        rows = replace(
            base,
            kind="experiment",
            key=key,
            ask=one,
            inputs=fitted,
            needs=tuple(dict.fromkeys([run.key, *fit_keys, *other_keys.values()])),
            others=tuple((name, other.run) for name, other in others.items()),
        )
        summary = replace(
            rows, kind="summarise", key=summary_key(key, code(one.experiment)), needs=(key,), inputs=(), others=()
        )
        tasks[rows.key], tasks[summary.key] = rows, summary


def _runs_beside(one: Request, run: Task) -> Mapping[str, RunConfig]:
    """The configurations that a question compares with."""
    experiment = experiments.find(one.experiment)
    return experiment.takes.runs(experiment.config.parse(one.options, one.experiment), run.config)


def _with_explainers(asks: Sequence[Request]) -> list[tuple[Request, list[str]]]:
    """Each question with those of its explainers that learn."""
    found = [(one, experiments.find(one.experiment)) for one in asks]
    return [
        (one, that_learn(experiment.takes.explainers(experiment.config.parse(one.options, one.experiment))))
        for one, experiment in found
    ]


def that_learn(explainers: Iterable[str]) -> list[str]:
    """Those that have to be fitted."""
    return [name for name in dict.fromkeys(explainers) if EXPLAINERS.find(name).fit is not None]


def plan_fits(
    run: Run, explainers: Sequence[str], data_dirs: Sequence[Path] = (), hash_file: HashFile = sha256
) -> Plan:
    """Only what these explainers learn from a run."""
    planned = plan_for_run(run, (), data_dirs, hash_file)
    tasks = dict(planned.tasks)
    (first, *_) = (task for task in tasks.values() if task.run == run.name)
    _add_fits(tasks, replace(first, needs=(first.key,), inputs=()), explainers)
    return replace(planned, tasks=tasks)


def _add_fits(tasks: dict[str, Task], base: Task, explainers: Sequence[str]) -> list[Task]:
    fits = []
    for name in explainers:
        explainer = EXPLAINERS.find(name)
        if isinstance(base.config, EvaluationConfig):
            raise Mistake(
                f"{name} learns from a run's own training texts: ask {base.config.source.name} about its own data."
            )
        key = fit_key(name, explainer.version, base.needs[0])
        fits.append(replace(base, kind="fit", key=key, explainer=name))
        tasks[key] = fits[-1]
    return fits


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

    def __init__(self, data_dirs: Sequence[Path], given: Mapping[str, DataSource], hash_file: HashFile) -> None:
        self.data_dirs, self.given, self.hash_file = data_dirs, given, hash_file
        self.by_dataset: dict[str, DataSource] = dict(given)
        self._sources: dict[str, DataSource] = {}
        self._vectors: dict[str, str] = {}

    def source(self, config: RunConfig) -> DataSource:
        if config.dataset in self.given:
            return self.given[config.dataset]
        which = f"{config.dataset} {config.data.dev_file} {config.data.test_file}"
        if which not in self._sources:
            self._sources[which] = find_data(config.dataset, config.data, self.data_dirs, self.hash_file)
            self.by_dataset[config.dataset] = self._sources[which]
        return self._sources[which]

    def vectors(self, config: RunConfig) -> str | None:
        if config.vectors is None:
            return None
        if config.vectors not in self._vectors:
            self._vectors[config.vectors] = vectors_fingerprint(config.vectors, self.data_dirs, self.hash_file)
        return self._vectors[config.vectors]


def kinds_of(tasks: Iterable[Task]) -> dict[str, int]:
    counted = Counter(task.kind for task in tasks)
    return {kind: counted[kind] for kind in TASK_KINDS if counted[kind]}
