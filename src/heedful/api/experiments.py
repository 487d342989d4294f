"""Ask models: experiments on a run's own data, on other data, or on texts that are given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.models import as_paths
from heedful.api.words import as_examples
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.engine.running.execute import Engine
    from heedful.engine.running.schedule import Report
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.sources.models import ModelSource
    from heedful.engine.tasks.plan import Plan
    from heedful.engine.tasks.rows import ExperimentRows
    from heedful.engine.tasks.task import Request
    from heedful.models.model import Model
    from heedful.store.run import Run

FEW = 400  # texts that are done sooner here than a worker beside this process has started


@dataclass(frozen=True)
class Answers:
    """How questions to one model about one data set ended, and the folder that holds the answers."""

    asks: tuple[Request, ...]
    run: Run
    plan: Plan
    report: Report
    workspace: Workspace

    def summaries(self) -> dict[str, Any]:
        """By experiment; empty where something failed."""
        names = [ask.experiment for ask in self.asks] if self.report.complete else []
        return {name: self.run.results.summary(name) for name in names}


def run(
    experiment: str,
    model: Model | Run | ModelSource | str | Path,
    examples: Sequence[Example] | Sequence[str] | str | Path | None = None,
    *,
    data: str | Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    queries: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    runs: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    **options: Any,
) -> ExperimentRows:
    """An experiment's rows: of the examples given, of `data`, or of the corpus that a run was trained on.

    `data` is a corpus by name, one's own file, or hf:ID, and `data_options` say how to read it (text_column, ...). A
    model's labels and those of the data are matched by name. Rows are kept in the run's folder, or in one for the model
    on these data, and are not computed again; those of a model in memory, or of given examples, are not kept. `labels`
    are names for those of a Hugging Face model, which reads pairs of texts where the data have a query or `queries` are
    given. `options` are the experiment's.
    """
    from heedful.engine.tasks.plan import ask
    from heedful.engine.tasks.rows import ExperimentRows

    asked = ask(experiment, options, split, limit)
    progress = progress or Progress(quiet=True)
    if isinstance(examples, str | Path):
        data, examples = examples, None
    if examples is not None:
        return _ask_given(asked, model, examples, queries, labels, progress)
    source, run = find_model(model, labels)
    if source.fingerprint is None:
        return _ask_in_memory(asked, source, data, data_options or {}, as_paths(data_dirs), progress)
    answers = run_experiments(
        [asked],
        source if run is None else run,
        data=data,
        data_options=data_options,
        runs=runs,
        data_dirs=data_dirs,
        progress=progress,
    )
    *_, task = answers.plan.of("experiment")
    for failure in answers.report.failed:
        raise Mistake(f"{failure.task.name}: {failure.error}")
    about = answers.run
    return ExperimentRows(
        experiment, about.results.rows(experiment, task.key), about.labels, str(about.info["task"]), asked.options
    )


def run_experiments(
    asks: Sequence[Request],
    model: Run | ModelSource | str | Path,
    *,
    data: str | Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    runs: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    cores: int | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Ask a model that can be found again; the answers are kept. A single failure is raised, several are reported.

    A few texts are asked about in this process, which then reads data and weights once; many by workers beside it.
    `labels` are names for those of a Hugging Face model.
    """
    from heedful.engine.running.execute import execute
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.sources.overlap import doubts_of

    source, run = find_model(model, labels)
    folder = Path(runs) if runs is not None else Path("runs") if run is None else run.path.parent
    remembered = () if run is None or data is not None else run.data_folders
    workspace = Workspace(folder, (*as_paths(data_dirs), *remembered))
    planned = plan_questions(asks, source, run, None if data is None else str(data), data_options or {}, workspace)
    (name,) = {task.run for task in planned.of("experiment")}
    answering = workspace.run(name)
    alone = len(asks) == 1
    few = all(ask.limit is not None and ask.limit <= FEW for ask in asks)
    to_train = planned.count("train") > (run is not None and run.trial is None)  # beside the run that is asked
    engine: Engine = "local" if to_train or not (alone or few) else "here"
    report = execute(
        planned,
        workspace,
        progress or Progress(quiet=True),
        engine,
        cores=cores,
        strict=alone and engine == "here",
    )
    for sentence in doubts_of(answering) if answering.finished else ():
        warnings.warn(f"{sentence}.", stacklevel=2)
    return Answers(tuple(asks), answering, planned, report, workspace)


def plan_questions(
    asks: Sequence[Request],
    source: ModelSource,
    run: Run | None,
    data: str | None,
    given: Mapping[str, Any],
    workspace: Workspace,
) -> Plan:
    """Questions about a run's own data, or about other data."""
    from heedful.config import DataOptions
    from heedful.engine.sources.other_data import read_as, read_by
    from heedful.engine.tasks.plan import is_own_data, plan_for_run, plan_trial

    folders, hash_file = workspace.data_dirs, workspace.hash_file
    if data is None:
        if run is None:
            raise Mistake(f"{source.name} has no data of its own: say with --data what it is to be asked about.")
        if given:
            raise Mistake(f"{next(iter(given))} says how to read data: give --data, too.")
        return plan_for_run(run, asks, folders, hash_file)
    if run is not None and is_own_data(run, data, given, folders, hash_file):
        return plan_for_run(run, asks, folders, hash_file)
    options = DataOptions.parse(dict(given), f"reading {data}")
    options = read_as(source, data, options, asks[0].split)
    source = read_by(source, data, options, asks[0].split, folders)
    return plan_trial(source, data, options, asks, workspace.runs, folders, hash_file)


def find_model(model: object, labels: Sequence[str] | None = None) -> tuple[ModelSource, Run | None]:
    """The source of a model, and its run folder where it has one. Files are hashed once for both."""
    from heedful.engine.sources.models import RUN_FOLDERS, find_source
    from heedful.store.checks import FileHashes
    from heedful.store.run import Run

    hashes = FileHashes()
    if labels is not None:
        if not isinstance(model, str | Path):
            raise Mistake("labels are names for those of a checkpoint that is given by its folder or id.")
        return find_source(model, hashes, labels=list(labels)), None
    if isinstance(model, str | Path) and RUN_FOLDERS.claims(model):
        model = Run(Path(model).absolute(), hashes)
    source = find_source(model, hashes)
    return source, model if isinstance(model, Run) else None


def parse_questions(
    experiments: Sequence[str], settings: Mapping[str, Any], split: str, limit: int | None
) -> list[Request]:
    """Each setting goes to every experiment that has it; one that none has is a mistake."""
    from heedful.engine.tasks.plan import ask
    from heedful.experiments import EXPERIMENTS

    names = list(dict.fromkeys(experiments))
    known = {name: set(EXPERIMENTS.find(name).config.model_fields) for name in names}
    for key in settings:
        if not any(key in fields for fields in known.values()):
            all_known = ", ".join(sorted(set().union(*known.values())))
            raise Mistake(f"--set {key}: none of the experiments has this setting. Known: {all_known}.")
    return [
        ask(name, {key: value for key, value in settings.items() if key in known[name]}, split, limit) for name in names
    ]


def sort_data_settings(
    experiments: Sequence[str], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings that say how to read data, and those of the experiments, which come first where names are the same."""
    from heedful.config import DataOptions
    from heedful.experiments import EXPERIMENTS

    theirs: set[str] = set().union(*(EXPERIMENTS.find(name).config.model_fields for name in experiments))
    reading = set(DataOptions.model_fields) - theirs
    about_data = {name: value for name, value in settings.items() if name in reading}
    return about_data, {name: value for name, value in settings.items() if name not in reading}


def _ask_given(
    asked: Request,
    model: object,
    examples: Sequence[Example] | Sequence[str],
    queries: Sequence[str] | None,
    labels: Sequence[str] | None,
    progress: Progress,
) -> ExperimentRows:
    from heedful.data.text.batching import CPU

    source = find_model(model, labels)[0]
    loaded = ((queries is not None and source.of_pairs()) or source).load(CPU)
    texts = as_examples(loaded, examples, queries)
    return ask_loaded(asked, loaded, dict(enumerate(texts)), progress)


def _ask_in_memory(
    asked: Request,
    source: ModelSource,
    data: str | Path | None,
    given: Mapping[str, Any],
    data_dirs: tuple[Path, ...],
    progress: Progress,
) -> ExperimentRows:
    """Of a model that nobody could find again: nothing is kept."""
    from heedful.config import DataOptions
    from heedful.data.text.batching import CPU
    from heedful.engine.sources.other_data import as_the_model_reads, read_as, read_other
    from heedful.engine.sources.overlap import find_doubts
    from heedful.engine.tasks.rows import select_places

    if data is None:
        raise Mistake("give examples, data, or the run folder, whose corpus is known.")
    options = read_as(source, str(data), DataOptions.parse(dict(given), f"reading {data}"), asked.split)
    read = read_other(str(data), options, asked.split, asked.limit, data_dirs)
    select_places(read.size, asked)  # says so where there are none
    examples = as_the_model_reads(read.examples, read.task, read.labels, source, str(data))
    for sentence in find_doubts(source, str(data), options, data_dirs):
        warnings.warn(f"{sentence}.", stacklevel=3)
    return ask_loaded(asked, source.load(CPU), examples, progress)


def ask_loaded(asked: Request, model: Model, examples: Mapping[int, Example], progress: Progress) -> ExperimentRows:
    import numpy as np

    from heedful.engine.tasks.rows import ExperimentRows, ask_model, select_places

    places = np.array(sorted(examples), dtype=np.int64)[select_places(len(examples), asked)]
    with progress.bar(asked.experiment, total=len(places)) as bar:
        table = ask_model(model, examples, places, asked, model.seed, bar)
    return ExperimentRows(asked.experiment, table, tuple(model.labels), model.task, asked.options)
