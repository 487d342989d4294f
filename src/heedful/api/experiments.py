"""Ask models: experiments on a run's own data, on other data, or on texts that are given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.models import subject_options
from heedful.api.words import as_examples
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import Subject
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
    label_map: Mapping[str, str] | None = None,
    split: str = "test",
    limit: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    runs: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    **options: Any,
) -> ExperimentRows:
    """An experiment's rows: of the examples given, of `data`, or of the corpus that a run was trained on.

    `data` is a corpus by name, one's own file, or hf:ID, and `data_options` say how to read it (text_column, ...). A
    model's labels and those of the data are matched by name, or as `label_map` says ({"good": "positive"}). Rows are
    kept in the run's folder, or in one for the model on these data, and are not computed again; those of a model in
    memory, or of given examples, are not kept. `labels` are names for those of a Hugging Face model, which reads pairs
    of texts where the data have a query or `queries` are given; of a run, the data's labels in their order. `options`
    are the experiment's.
    """
    from heedful.engine.tasks.plan import ask
    from heedful.engine.tasks.rows import ExperimentRows

    request = ask(experiment, options, split, limit)
    progress = progress or Progress(quiet=True)
    if isinstance(examples, str | Path):
        data, examples = examples, None
    given = subject_options(
        data_options, labels, label_map, split, dtype, device, batch_size, data_dirs, queries is not None
    )
    subject = Subject.resolve(model, data, given).say(progress)
    if examples is not None:
        loaded = subject.load()
        texts = as_examples(loaded, examples, queries)
        return ask_loaded(request, loaded, dict(enumerate(texts)), progress)
    if subject.source.fingerprint is None:
        if data is None:
            raise Mistake("give examples, data, or the run folder, whose corpus is known.")
        from heedful.engine.sources.overlap import find_doubts

        read = subject.read(limit).examples
        for sentence in find_doubts(subject.source, str(data), subject.reading, subject.data_dirs):
            warnings.warn(f"{sentence}.", stacklevel=2)
        return ask_loaded(request, subject.load(), read, progress)
    answers = ask_subject([request], subject, runs=runs, progress=progress)
    *_, task = answers.plan.of("experiment")
    for failure in answers.report.failed:
        raise Mistake(f"{failure.task.name}: {failure.error}")
    about = answers.run
    return ExperimentRows(
        experiment, about.results.rows(experiment, task.key), about.labels, str(about.info["task"]), request.options
    )


def ask_subject(
    asks: Sequence[Request],
    subject: Subject,
    *,
    runs: str | Path | None = None,
    cores: int | None = None,
    progress: Progress | None = None,
) -> Answers:
    """The answers are kept. A single failure is raised, several are reported.

    A few texts are asked about in this process, which then reads data and weights once; many by workers beside it.
    """
    from heedful.engine.running.execute import execute
    from heedful.engine.sources.overlap import doubts_of
    from heedful.engine.tasks.plan import plan_questions

    workspace = workspace_of(subject, runs)
    planned = plan_questions(subject, asks, workspace.runs, workspace.data_dirs, workspace.hash_file)
    (name,) = {task.run for task in planned.of("experiment")}
    answering = workspace.run(name)
    alone = len(asks) == 1
    few = all(ask.limit is not None and ask.limit <= FEW for ask in asks)
    own = subject.run is not None and subject.run.trial is None
    to_train = planned.count("train") > own  # beside the run that is asked
    engine: Engine = "local" if to_train or not (alone or few) else "here"
    report = execute(
        planned, workspace, progress or Progress(quiet=True), engine, cores=cores, strict=alone and engine == "here"
    )
    for sentence in doubts_of(answering) if answering.finished else ():
        warnings.warn(f"{sentence}.", stacklevel=2)
    return Answers(tuple(asks), answering, planned, report, workspace)


def workspace_of(subject: Subject, runs: str | Path | None) -> Workspace:
    """Where the answers of a subject are kept: in a folder of runs, beside its run, or in `runs`."""
    from heedful.engine.running.workspace import Workspace

    run = subject.run
    folder = Path(runs) if runs is not None else Path("runs") if run is None else run.path.parent
    return Workspace(folder, subject.data_dirs, device=subject.device, batch_size=subject.batch_size)


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


def ask_loaded(asked: Request, model: Model, examples: Mapping[int, Example], progress: Progress) -> ExperimentRows:
    import numpy as np

    from heedful.engine.tasks.rows import ExperimentRows, ask_model, select_places

    places = np.array(sorted(examples), dtype=np.int64)[select_places(len(examples), asked)]
    with progress.bar(asked.experiment, total=len(places)) as bar:
        table = ask_model(model, examples, places, asked, model.seed, bar)
    return ExperimentRows(asked.experiment, table, tuple(model.labels), model.task, asked.options)
