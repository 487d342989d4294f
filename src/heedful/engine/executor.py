"""Where tasks are done, one at a time: the only place that computes and writes results.

The same for every engine: in the command's own process, in a worker beside it, or on another machine. It
keeps the last corpus and the last model, because the next task often needs them, and no more than that.
"""

from __future__ import annotations

import time
import traceback
from typing import Any, Literal

from heedful import experiments
from heedful.data import corpora
from heedful.data.registry import restricted
from heedful.engine.data_sources import source_fingerprint
from heedful.engine.device import find_device
from heedful.engine.progress import Progress
from heedful.engine.rows import ask_model, select_places
from heedful.engine.status import task_status
from heedful.engine.task import Task
from heedful.engine.threads import threads
from heedful.engine.train import load, train
from heedful.engine.workspace import Workspace
from heedful.errors import Mistake
from heedful.models.model import Model
from heedful.records import Corpus
from heedful.store.locks import lock
from heedful.store.run import Run
from heedful.store.texts import keep_texts

Outcome = Literal["done", "kept", "busy"]


class Executor:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._corpus: tuple[str, Corpus] | None = None
        self._model: tuple[str, Model] | None = None

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
        with lock(self.workspace.runs, task.key) as ours:
            if ours:
                return self._do(task, progress)
        if not wait:
            return "busy"
        progress.say(f"another process is at {task.name}; waiting for it")
        with lock(self.workspace.runs, task.key, wait=True):
            return self._do(task, progress)

    def _do(self, task: Task, progress: Progress) -> Outcome:
        if task_status(task, self.workspace.runs).state == "finished":
            return "kept"
        if task.kind == "train":
            train(task, self.corpus(task), self.workspace, progress)
        elif task.kind == "experiment":
            self._ask(task, progress)
        else:
            self._summarise(task)
        return "done"

    def corpus(self, task: Task) -> Corpus:
        """The corpus of a task, which must be the one that was planned with."""
        config = task.config
        which = f"{config.dataset} {config.data.model_dump_json()} {task.source}"
        if self._corpus is None or self._corpus[0] != which:
            self._corpus = self._model = None  # let go of the old before there is a new one
            corpus = corpora.load(config.dataset, data_dirs=self.workspace.data_dirs, options=config.data)
            found = source_fingerprint(config.dataset, config.data, self.workspace.data_dirs)
            if found != task.source:
                raise Mistake(
                    f"the data of {config.dataset} ({corpus.source}) are not what they were when this was planned: "
                    "they have been changed since, or are different on this machine."
                )
            self._corpus = which, corpus
        return self._corpus[1]

    def model(self, run: Run) -> tuple[Model, str]:
        """A run's model and the checksum of its weights."""
        weights = run.check()["model.safetensors"]
        which = f"{run.path} {weights}"
        if self._model is None or self._model[0] != which:
            self._model = None
            self._model = which, load(run, find_device(self.workspace))
        return self._model[1], weights

    def _ask(self, task: Task, progress: Progress) -> None:
        """Rows of one experiment on one run."""
        assert task.ask is not None
        run = Run(self.workspace.runs / task.run)
        examples = self.corpus(task)[task.ask.split]
        model, weights = self.model(run)
        began = time.perf_counter()
        places = select_places(len(examples), task.ask)
        with threads(task.threads), progress.bar(task.name, total=len(places)) as bar:
            table = ask_model(model, examples, task.ask, task.config.seed, bar)
        asked = task.ask.model_dump(mode="json", exclude={"experiment"})
        seconds = time.perf_counter() - began
        if not restricted(task.config.dataset):  # first: rows are never without them
            keep_texts(run.path, task.ask.split, examples, places.tolist())
        run.results.write_rows(task.ask.experiment, task.key, table, asked, weights, seconds)

    def _summarise(self, task: Task) -> None:
        assert task.ask is not None
        name, (rows,) = task.ask.experiment, task.needs
        run = Run(self.workspace.runs / task.run)
        results = run.results
        seal = results.check_rows(name, rows)
        if seal is None:
            raise Mistake(f"{results.rows_path(name, rows)} is not there.")
        table = results.rows(name, rows)
        trial = experiments.Trial(name, table, {}, task.ask.options, run.labels, run.info["task"])
        summary = experiments.summary_with_verdict(experiments.find(name), trial)
        asked = task.ask.model_dump(mode="json", exclude={"experiment"})
        results.write_summary(
            name, task.key, summary, {"rows": seal["rows"], "n_rows": seal["n_rows"], **asked}
        )
        results.publish(name, rows, task.key)
