"""A model and the texts of its audit, in a folder or in memory alone: both can be asked experiments about some of the
texts, block by block, and are looked at before anything is computed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heedful.auditing.outcome.sequences import MOST
from heedful.engine.running.progress import Progress, ProgressBar
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
    from heedful.engine.tasks.task import Request, Task
    from heedful.models.model import Model

BLOCKS = "blocks"  # in the folder of results: rows of a few texts each, so that an interrupted audit goes on
LOOK = MOST  # texts that an audit can be about, evenly spread, where there are more


@dataclass(frozen=True, slots=True)
class Given:
    """The texts that a model is to be audited with, and what is said of them and of the model."""

    examples: Sequence[Example] | Sequence[str] | None
    queries: Sequence[str] | None
    data: str | None  # a corpus, a file, hf:ID; None: the examples, or a run's own data
    options: SubjectOptions  # how model and data are read
    runs: Path | None


@dataclass(frozen=True, slots=True)
class AskedRows:
    """What an experiment said of some texts, and the seconds that it took when it was computed."""

    table: pa.Table
    texts: int
    seconds: float
    key: str = ""  # by all that decides it; empty: nothing is kept


@dataclass(frozen=True, slots=True)
class Answered:
    """An experiment's answer about some texts, summed up."""

    experiment: str
    table: pa.Table
    summary: Mapping[str, Any]
    verdict: Verdict | None
    texts: int
    seconds: float


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

    def rows(self, experiment: str, options: Mapping[str, Any], places: Sequence[int]) -> AskedRows:
        """Of the texts at these places, which were looked at; raises what goes wrong."""
        ...

    def answer(self, experiment: str, options: Mapping[str, Any], rows: AskedRows) -> Answered:
        """What the rows say; kept, where there is a folder."""
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
        self._planned: dict[str, Task] = {}
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

    def rows(self, experiment: str, options: Mapping[str, Any], places: Sequence[int]) -> AskedRows:
        from heedful.engine.running.processors import cores, threads
        from heedful.engine.tasks.plan import ask
        from heedful.engine.tasks.rows import ask_model
        from heedful.engine.tasks.task import key_of

        asked = ask(experiment, options, self.split, None)
        task = self._task(asked)
        if task.inputs or task.others:
            return self._by_engine(experiment, options, len(places))
        model, weights = self.executor.model(self.run)
        key = key_of("audit", task.key, weights, list(places))
        path = self.run.results.path / BLOCKS / f"{experiment}-{key}.parquet"
        if (known := read_block(path)) is not None:
            return AskedRows(known[0], len(places), known[1], key)
        began = time.perf_counter()
        bar = ProgressBar(self.progress.say)  # there are many blocks: what is decided is said, not each of them
        with threads(cores()), self.progress.doing(lambda: f"{experiment}: {len(places)} texts are asked about"):
            table = ask_model(model, self.looked, np.array(places, dtype=np.int64), asked, task.config.seed, bar)
        seconds = time.perf_counter() - began
        write_block(path, table, seconds)
        return AskedRows(table, len(places), seconds, key)

    def answer(self, experiment: str, options: Mapping[str, Any], rows: AskedRows) -> Answered:
        from heedful.engine.tasks.plan import ask

        asked = ask(experiment, options, self.split, rows.texts if rows.texts < self.size else None)
        whole = summed_up(asked, rows.table, self.run.labels, str(self.run.info["task"]))
        if rows.key:
            self._keep(asked, rows, whole)
        return Answered(experiment, rows.table, *without_verdict(whole), rows.texts, rows.seconds)

    def _keep(self, asked: Request, rows: AskedRows, summary: Mapping[str, Any]) -> None:
        """As what was asked last of this experiment, with the texts that there are."""
        from heedful.data.corpora.registry import restricted
        from heedful.engine.tasks.plan import code
        from heedful.engine.tasks.task import summary_key
        from heedful.store.texts import keep_texts

        name, results, task = asked.experiment, self.run.results, self._task(asked)
        told = asked.model_dump(mode="json", exclude={"experiment"})
        if not restricted(task.config.dataset):
            keep_texts(self.run.path, self.split, self.looked, [*self.looked], len(self.looked) == self.size)
        if results.seal(name, rows.key) is None:
            results.write_rows(name, rows.key, rows.table, told, self.executor.model(self.run)[1], rows.seconds)
        seal, key = results.seal(name, rows.key) or {}, summary_key(rows.key, code(name))
        results.write_summary(name, key, summary, {"rows": seal["rows"], "n_rows": seal["n_rows"], **told})
        results.publish(name, rows.key, key)

    def _task(self, asked: Request) -> Task:
        """How the engine would ask it of all texts; planned once for all blocks."""
        told = asked.model_dump_json()
        if told not in self._planned:
            *_, self._planned[told] = self._plan([asked]).of("experiment")
        return self._planned[told]

    def _by_engine(self, experiment: str, options: Mapping[str, Any], texts: int) -> AskedRows:
        """A question that further models or explainers are trained for first: they are tasks, and so is it."""
        from heedful.engine.tasks.plan import ask

        planned = self._plan([ask(experiment, options, self.split, texts if texts < self.size else None)])
        began = time.perf_counter()
        self._do(planned)
        *_, rows = planned.of("experiment")
        table = self.run.results.rows(experiment, rows.key)
        return AskedRows(table, texts, time.perf_counter() - began)

    def performance(self, texts: int) -> Mapping[str, Any]:
        if self.run.trial is None:  # those of its training
            return self.run.results.summary("performance") or {}
        scores = scores_of(self.model, spread_over(list(self.looked.values()), texts), self.split)
        self.run.results.write_performance(scores)
        return scores

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

    def rows(self, experiment: str, options: Mapping[str, Any], places: Sequence[int]) -> AskedRows:
        from heedful.api.experiments import ask_loaded
        from heedful.engine.tasks.plan import ask

        began = time.perf_counter()
        asked = ask(experiment, options, self.split, None)
        some = {place: self.examples[place] for place in places}
        table = ask_loaded(asked, self._model, some, self.progress).table
        return AskedRows(table, len(places), time.perf_counter() - began)

    def answer(self, experiment: str, options: Mapping[str, Any], rows: AskedRows) -> Answered:
        from heedful.engine.tasks.plan import ask

        asked = ask(experiment, options, self.split, None)
        whole = summed_up(asked, rows.table, self.labels, self._model.task)
        return Answered(experiment, rows.table, *without_verdict(whole), rows.texts, rows.seconds)

    def performance(self, texts: int) -> Mapping[str, Any]:
        return scores_of(self._model, spread_over(list(self.looked.values()), texts), self.split)


def summed_up(asked: Request, table: pa.Table, labels: Sequence[str], task: str) -> dict[str, Any]:
    """The summary of rows, with their verdict."""
    result = Result(asked.experiment, table, {}, asked.options, tuple(labels), task)
    return summary_with_verdict(experiment_of(asked.experiment), result)


def read_block(path: Path) -> tuple[pa.Table, float] | None:
    """Rows of a few texts, and the seconds that they took; None where they are not there, or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, page_checksum_verification=True)
        return table, float((table.schema.metadata or {})[b"seconds"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None


def write_block(path: Path, table: pa.Table, seconds: float) -> None:
    import pyarrow.parquet as pq

    from heedful.files import whole_file

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        described = table.replace_schema_metadata({"seconds": f"{seconds:.6f}"})
        pq.write_table(described, temporary, compression="zstd", write_page_checksum=True)


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
