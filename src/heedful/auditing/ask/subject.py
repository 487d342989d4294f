"""A model and the texts of its audit, in a folder or in memory alone: both can be asked experiments, and are looked at
before anything is computed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heedful.auditing.outcome.budget import Timing
from heedful.engine.running.progress import Progress
from heedful.engine.sources.models import ModelSource
from heedful.engine.sources.subject import Subject, SubjectOptions
from heedful.errors import Mistake
from heedful.experiments import Result, experiment_of, summary_with_verdict, without_verdict
from heedful.experiments.framework.verdict import Verdict
from heedful.records import Example, Split

if TYPE_CHECKING:
    import pyarrow as pa

    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.plan import Plan
    from heedful.engine.tasks.task import Request
    from heedful.models.model import Model

SECONDS = "audit-seconds.json"  # in the folder of the rows
LOOK = 500  # texts that are looked at before anything is asked, evenly spread


@dataclass(frozen=True, slots=True)
class Given:
    """The texts that a model is to be audited with, and what is said of them and of the model."""

    examples: Sequence[Example] | Sequence[str] | None
    queries: Sequence[str] | None
    data: str | None  # a corpus, a file, hf:ID; None: the examples, or a run's own data
    options: SubjectOptions  # how model and data are read
    runs: Path | None


@dataclass(frozen=True, slots=True)
class Answered:
    """An experiment's answer about some texts, and the seconds that it took when it was computed."""

    experiment: str
    table: pa.Table
    summary: Mapping[str, Any]
    verdict: Verdict | None
    texts: int
    seconds: float
    around: float = 0.0  # of these, what was not spent on the texts

    @property
    def asked(self) -> Timing:
        return Timing(self.texts, self.seconds, self.around)


class AuditSubject(Protocol):
    """A model on the texts of a split."""

    name: str
    description: str
    data: str
    split: Split
    labels: tuple[str, ...]
    size: int
    folder: Path | None
    looked: Mapping[int, Example]  # at most LOOK texts, by their place

    @property
    def model(self) -> Model: ...

    def trains(self, experiment: str, options: Mapping[str, Any]) -> bool:
        """Whether models that do not exist yet would be trained for it."""
        ...

    def ask(self, experiment: str, options: Mapping[str, Any], texts: int) -> Answered:
        """Of so many texts, evenly spread; raises what goes wrong."""
        ...

    def performance(self, texts: int) -> Mapping[str, Any]:
        """Scores of the model: of so many texts, evenly spread, or where more are known, of all."""
        ...


class InFolder(AuditSubject):
    """A model that can be found again: rows are kept in a folder and not computed twice."""

    def __init__(self, subject: Subject, workspace: Workspace, progress: Progress) -> None:
        from heedful.engine.running.executor import Executor

        source = subject.source
        self.subject, self.workspace, self.progress, self.split = subject, workspace, progress, subject.split
        self.name, self.description, self.labels = source.name, source.description, source.labels
        texts = subject.read(LOOK)
        self.data, self.size, self.looked = subject.title, texts.size, texts.examples
        self.executor = Executor(workspace)
        planned = self._plan(())
        self._do(planned)
        self.run = workspace.run([*planned.tasks.values()][-1].run)
        self.folder = self.run.path

    def _plan(self, asks: Sequence[Request]) -> Plan:
        from heedful.engine.tasks.plan import plan_questions

        workspace = self.workspace
        return plan_questions(self.subject, asks, workspace.runs, workspace.data_dirs, workspace.hash_file)

    @property
    def model(self) -> Model:
        return self.executor.model(self.run)[0]

    def trains(self, experiment: str, options: Mapping[str, Any]) -> bool:
        from heedful.engine.tasks.plan import ask
        from heedful.engine.tasks.status import task_status

        try:
            planned = self._plan([ask(experiment, options, self.split, 1)])
        except Mistake:
            return False  # it cannot be asked at all: that is said when it is
        return any(task_status(task, self.workspace).state != "finished" for task in planned.of("train"))

    def ask(self, experiment: str, options: Mapping[str, Any], texts: int) -> Answered:
        from heedful.engine.tasks.plan import ask

        planned = self._plan([ask(experiment, options, self.split, None)])
        if texts < self.size and not self._finished(planned):
            planned = self._plan([ask(experiment, options, self.split, texts)])
        (*_, rows), (*_, summary) = planned.of("experiment"), planned.of("summarise")
        began, finished = time.perf_counter(), self._finished(planned)
        self._do(planned)
        if not finished and rows.key not in self._remembered():  # else only its summary was missing
            self._remember(rows.key, time.perf_counter() - began)
        results = self.run.results
        seal = results.seal(experiment, rows.key) or {}
        stored = results.check_summary(experiment, summary.key) or {}
        found, verdict = without_verdict({n: v for n, v in stored.items() if n not in ("task", "sha256")})
        table = results.rows(experiment, rows.key)
        seconds = float(self._remembered().get(rows.key, seal["seconds"]))
        around = max(0.0, seconds - float(seal["seconds"]))
        return Answered(experiment, table, found, verdict, int(seal["n_texts"]), seconds, around)

    def performance(self, texts: int) -> Mapping[str, Any]:
        if self.run.trial is None:  # those of its training
            return self.run.results.summary("performance") or {}
        return scores_of(self.model, spread_over(list(self.looked.values()), texts), self.split)

    def _remembered(self) -> dict[str, float]:
        """What each question took with everything around it, by the key of its rows."""
        path = self.run.path / SECONDS
        try:
            known: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known

    def _remember(self, key: str, seconds: float) -> None:
        from heedful.files import write_json

        write_json(self.run.path / SECONDS, {**self._remembered(), key: round(seconds, 3)})

    def _finished(self, planned: Plan) -> bool:
        """All texts were asked about before: then nothing is gained by fewer."""
        from heedful.engine.tasks.status import plan_status

        return all(state.state == "finished" for state in plan_status(planned, self.workspace).values())

    def _do(self, planned: Plan) -> None:
        from heedful.engine.running.execute import execute

        execute(planned, self.workspace, self.progress, "here", strict=True, executor=self.executor)


class InMemory(AuditSubject):
    """A model that nobody could find again, or texts that are given: nothing is kept."""

    folder = None

    def __init__(
        self,
        source: ModelSource,
        model: Model,
        examples: Mapping[int, Example],
        data: str,
        split: Split,
        progress: Progress,
    ) -> None:
        self.progress, self.examples, self.data, self.split = progress, examples, data, split
        self.name, self.description, self.labels = source.name, source.description, source.labels
        self.size, self.looked = len(examples), examples
        self._model = model

    @property
    def model(self) -> Model:
        return self._model

    def trains(self, experiment: str, options: Mapping[str, Any]) -> bool:
        return False

    def ask(self, experiment: str, options: Mapping[str, Any], texts: int) -> Answered:
        from heedful.api.experiments import ask_loaded
        from heedful.engine.tasks.plan import ask

        began = time.perf_counter()
        asked = ask(experiment, options, self.split, texts)
        table = ask_loaded(asked, self._model, self.examples, self.progress).table
        rows = time.perf_counter() - began
        trial = Result(experiment, table, {}, asked.options, self.labels, self._model.task)
        summary, verdict = without_verdict(summary_with_verdict(experiment_of(experiment), trial))
        seconds = time.perf_counter() - began
        texts = min(texts, self.size)
        return Answered(experiment, table, summary, verdict, texts, seconds, seconds - rows)

    def performance(self, texts: int) -> Mapping[str, Any]:
        return scores_of(self._model, spread_over(list(self.looked.values()), texts), self.split)


def spread_over(examples: Sequence[Example], texts: int) -> list[Example]:
    """So many of them, evenly spread."""
    from heedful.data.corpora.assemble import spread_places

    return [examples[place] for place in spread_places(len(examples), texts).tolist()]


def scores_of(model: Model, examples: Sequence[Example], split: Split) -> Mapping[str, Any]:
    from heedful.engine.running.executor import Executor
    from heedful.engine.sources.run_texts import AskedTexts

    some = AskedTexts(np.arange(len(examples)), dict(enumerate(examples)), whole=False)
    return Executor.performance(model, some, split)


def open_subject(model: object, given: Given, progress: Progress) -> AuditSubject:
    """Whatever was given, ready to be asked; what is wrong with it is said here."""
    from heedful.api.experiments import workspace_of
    from heedful.api.words import as_examples

    subject = Subject.resolve(model, given.data, given.options).say(progress)
    if given.examples is not None:
        loaded = subject.load()
        texts = as_examples(loaded, given.examples, given.queries)
        return InMemory(subject.source, loaded, dict(enumerate(texts)), "the texts given", subject.split, progress)
    if subject.source.fingerprint is None:
        examples, name = subject.read().examples, Path(subject.title).name
        return InMemory(subject.source, subject.load(), examples, name, subject.split, progress)
    return InFolder(subject, workspace_of(subject, given.runs), progress)
