"""Where tasks are done, one at a time: the only place that computes and writes results.

The same for every engine: in the command's own process, in a worker beside it, or on another machine. It
keeps the last corpus and the last model, because the next task often needs them, and no more than that.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal

from heedful.config import DataOptions, EvaluationConfig, RunConfig, SourceConfig
from heedful.engine.running.processors import find_device
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import load_plain_corpus, read_split, source_fingerprint
from heedful.engine.sources.edited_data import edit_by_scores
from heedful.engine.sources.models import ModelSource, find_source, source_of
from heedful.engine.sources.other_data import as_the_model_reads, read_other
from heedful.engine.sources.run_texts import AskedTexts, kept_texts, texts_of
from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.rows import select_places
from heedful.engine.tasks.status import task_status
from heedful.engine.tasks.task import Request, Task
from heedful.errors import Mistake
from heedful.experiments.framework.other_runs import OtherRun
from heedful.measure.performance import performance
from heedful.models.model import Model
from heedful.models.training import predict
from heedful.records import Corpus, Example, Split
from heedful.store.locks import lock
from heedful.store.run import Run

Outcome = Literal["done", "kept", "busy"]


class Executor:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._corpus: tuple[str, Corpus] | None = None
        self._plain: tuple[str, Corpus] | None = None
        self._texts: tuple[tuple[str, Split, int | None], AskedTexts] | None = None
        self._model: tuple[str, Model] | None = None
        self._source: tuple[SourceConfig, ModelSource] | None = None

    def attempt(self, task: Task, progress: Progress, wait: bool = False) -> dict[str, Any]:
        """`do`, told in plain values: one task's error must not end the others. See `Schedule.record`."""
        try:
            return {"outcome": self.do(task, progress, wait)}
        except Mistake as mistake:
            return {"outcome": "failed", "error": str(mistake), "details": ""}
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return {"outcome": "failed", "error": said, "details": traceback.format_exc()}

    def do(self, task: Task, progress: Progress, wait: bool = False) -> Outcome:
        """Do a task unless it is done. "busy": another process is at it, and `wait` was not asked for."""
        with ExitStack() as held:
            if not held.enter_context(lock(self.workspace.runs, task.key)):
                if not wait:
                    return "busy"
                progress.say(f"another process is at {task.name}; waiting for it")
                held.enter_context(lock(self.workspace.runs, task.key, wait=True))
            if task_status(task, self.workspace).state == "finished":
                return "kept"
            TASK_KINDS[task.kind].do(task, self, progress)
            return "done"

    def corpus(self, task: Task) -> Corpus:
        """The corpus of a task, which must be the one that was planned with."""
        which = _data_of(task)
        if self._corpus is None or self._corpus[0] != which:
            self._corpus = self._texts = self._model = None  # let go of the old before there is a new one
            config = task.config
            plain = self._plain_corpus(config.dataset, config.data)
            self._check_data(task, plain.source)
            corpus = edit_by_scores(plain, config.data.edit, task.edited, self.workspace.runs)
            self._corpus = which, corpus
        return self._corpus[1]

    def _plain_corpus(self, dataset: str, options: DataOptions) -> Corpus:
        """Without its edit, kept: many runs are edited copies of one corpus."""
        options = options.model_copy(update={"edit": None})
        which = f"{dataset} {options.model_dump_json()}"
        if self._plain is None or self._plain[0] != which:
            self._plain = None
            self._plain = which, load_plain_corpus(dataset, options, self.workspace.data_dirs)
        return self._plain[1]

    def texts(self, task: Task) -> AskedTexts:
        """What a question is about: from memory, from the run folder where it keeps them, else from the corpus."""
        assert task.ask is not None
        ask, run = task.ask, self.workspace.run(task.run)
        which = (f"{task.run} {_data_of(task)}", ask.split, ask.limit)
        if self._texts is None or self._texts[0] != which:
            self._texts = None
            in_memory = self._corpus is not None and self._corpus[0] == _data_of(task)
            again = task.config.data.task == "generation"  # kept are texts, not the tokens that are asked about
            kept = None if in_memory or again else kept_texts(run, ask)
            self._texts = which, kept or self._read_texts(task, ask)
        return self._texts[1]

    def _read_texts(self, task: Task, ask: Request) -> AskedTexts:
        """All of a corpus is read only where all is asked for: the next task will, too."""
        config, folders = task.config, self.workspace.data_dirs
        if isinstance(config, EvaluationConfig):
            read = read_other(config.dataset, config.data, ask.split, ask.limit, folders)
            source = self.source(config.source)
            select_places(read.size, ask)  # says so where there are none
            examples = as_the_model_reads(read.examples, read.task, read.labels, source, config.dataset, config.data)
        elif (
            ask.limit is None
            or task.edited is not None
            or (self._corpus is not None and self._corpus[0] == _data_of(task))
        ):
            split = self.corpus(task)[ask.split]
            places = select_places(len(split), ask)
            examples = {place: split[place] for place in places.tolist()}
            return AskedTexts(places, examples, whole=len(places) == len(split))
        else:
            read = read_split(config.dataset, config.data, ask.split, ask.limit, folders)
            examples = dict(read.examples)
        self._check_data(task, read.source)
        places = select_places(read.size, ask)
        return AskedTexts(places, examples, whole=len(places) == read.size)

    def _check_data(self, task: Task, where: str) -> None:
        config, workspace = task.config, self.workspace
        found = source_fingerprint(config.dataset, config.data, workspace.data_dirs, workspace.hash_file)
        if found != task.source:
            raise Mistake(
                f"the data of {config.dataset} ({where}) have changed since this was planned, "
                "or are different on this machine."
            )

    def source(self, told: SourceConfig) -> ModelSource:
        """The model that a trial is about, beside the runs or elsewhere."""
        if self._source is None or self._source[0] != told:
            beside = self.workspace.runs / told.place
            found = find_source(beside if beside.exists() else told.place, self.workspace.hash_file)
            if found.fingerprint != told.fingerprint:
                raise Mistake(f"the model {told.place} has changed since this was planned.")
            self._source = told, found
        return self._source[1]

    def model(self, run: Run) -> tuple[Model, str]:
        """The model that a folder is about, and the checksum of its weights (of a trial: the model's fingerprint)."""
        weights = run.check()["model.safetensors"] if run.trial is None else run.trial.source.fingerprint
        which = f"{run.path} {weights}"
        if self._model is None or self._model[0] != which:
            self._model = None
            source = source_of(run) if run.trial is None else self.source(run.trial.source)
            model = source.load(find_device(self.workspace))
            self._model = which, replace(model, batch_size=self.workspace.batch_size)
        return self._model[1], weights

    def bases(self, task: Task) -> dict[str, Run]:
        """The finished runs that a training needs, by the objective's names for them."""
        found = {name: self.workspace.run(folder) for name, folder in task.inputs}
        for name, run in found.items():
            if not run.finished:
                raise Mistake(f"{run.path}, which the objective needs as {name!r}, is not finished: train it first.")
            run.check()
        return found

    def others(self, task: Task) -> dict[str, OtherRun]:
        """The finished runs that an experiment compares with, by its names for them."""
        return {name: self._other(task, self.workspace.run(folder)) for name, folder in task.others}

    def _other(self, task: Task, run: Run) -> OtherRun:
        """Its weights, and its texts where its data are others, are read when they are needed."""
        assert task.ask is not None
        split, asked = task.ask.split, self.texts(task)
        same = (run.config.dataset, run.config.data) == (task.config.dataset, task.config.data)

        def load() -> Model:
            run.check()
            return source_of(run).load(find_device(self.workspace))

        def read() -> Mapping[int, Example]:
            if same and isinstance(task.config, RunConfig):
                return asked.examples
            edit = run.config.data.edit
            if edit is not None:
                plain = self._plain_corpus(run.config.dataset, run.config.data)
                edited = edit_by_scores(plain, edit, run.info.get("edited"), self.workspace.runs)[split]
                return {place: edited[place] for place in asked.places.tolist()}
            return texts_of(run, split, asked.places.tolist(), self.workspace.data_dirs)

        return OtherRun(run.name, run.config, run.summary("performance"), load, read)

    @staticmethod
    def performance(model: Model, texts: AskedTexts, split: str) -> dict[str, Any]:
        """Scores of the texts that were asked about; without those where a text has no label."""
        encoded = model.encode([texts.examples[place] for place in texts.places.tolist()])
        about = {"split": split, "examples": len(encoded)}
        if encoded.labels is None:
            return about
        return about | finite(performance(encoded.labels, predict(model.network, encoded)))


def finite(scores: Mapping[str, float]) -> dict[str, float | None]:
    """What is undefined (nan) is None."""
    return {name: None if math.isnan(score) else score for name, score in scores.items()}


def _data_of(task: Task) -> str:
    return f"{task.config.dataset} {task.config.data.model_dump_json()} {task.source}"
