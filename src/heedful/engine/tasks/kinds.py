"""The kinds of task, each with all that the engine asks of it: `TASK_KINDS`, at the end.

    train        a run folder
    trial        the folder of a model on data that it was not trained on
    fit          what an explainer learns from a run's training data
    score        the scores of every word of a run's data by a method: other runs' data are edited by them
    experiment   the rows of one experiment on one run or trial
    summarise    the summary of those rows

A new kind is a class here and a line in that dictionary. Whatever computes is imported when it is needed: thousands of
tasks are planned and looked up without torch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful import experiments
from heedful.config import EvaluationConfig, RunConfig
from heedful.engine.tasks.task import Request, Status, Task, TaskKind
from heedful.errors import Mistake
from heedful.records import SPLITS
from heedful.registry import EXPERIMENTS, EXPLAINERS
from heedful.store.new_runs import write_trial
from heedful.store.results import MADE_BY
from heedful.store.run import SEALED_TRIAL, Run
from heedful.store.texts import keep_texts

if TYPE_CHECKING:
    from heedful.engine.running.executor import Executor
    from heedful.engine.running.progress import Progress
    from heedful.engine.sources.data import Sizes
    from heedful.engine.tasks.throughput import Throughput


class Kind:
    """How tasks of one kind are found, done and counted."""

    computes = True  # with all the cores and GPUs it is given; False: a moment of one core
    starts_run = False  # the others of its run wait for it: what ends a run is done before the next is begun

    def title(self, task: Task) -> str:
        """For people."""
        raise NotImplementedError

    def status(self, task: Task, run: Run) -> Status:
        """What there is of it, whole and of the right content; may raise `Damaged`."""
        raise NotImplementedError

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        raise NotImplementedError

    def cost(self, task: Task, here: Sizes, throughput: Throughput) -> tuple[float, float]:
        """(forward passes, seconds of a core)."""
        return 0.0, 0.5

    def heading(self, task: Task) -> str:
        """The column of a table of runs that shows its state."""
        return task.kind


class Train(Kind):
    starts_run = True

    def title(self, task: Task) -> str:
        return f"train {task.run}"

    def status(self, task: Task, run: Run) -> Status:
        if not run.path.exists():
            return Status("missing")
        if run.finished:
            run.check()
            return Status("finished")
        return Status("interrupted" if run.interrupted else "missing")

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        from heedful.engine.tasks.train import train

        start = run_config(task).start
        source = None if start is None else executor.source(start)
        train(task, executor.corpus(task), executor.bases(task), executor.workspace, progress, source)

    def cost(self, task: Task, here: Sizes, throughput: Throughput) -> tuple[float, float]:
        config = run_config(task)
        one_pass = throughput.train(config, here["train"])
        epochs = config.training.epochs
        return epochs * (here["train"].texts + here["dev"].texts), epochs * one_pass


class EvaluationTask(Kind):
    computes = False
    starts_run = True

    def title(self, task: Task) -> str:
        return f"open {task.run}"

    def status(self, task: Task, run: Run) -> Status:
        if not run.finished:
            return Status("missing")
        run.check(SEALED_TRIAL)
        return Status("finished" if run.info.get("key") == task.key else "missing")

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        """The texts are read first: where labels do not match, there is nothing to keep."""
        from heedful.engine.sources.overlap import find_doubts
        from heedful.engine.tasks.train import library_versions, remember_folders

        assert isinstance(task.config, EvaluationConfig)
        source, workspace = executor.source(task.config.source), executor.workspace
        if task.ask is not None:
            executor.texts(task)
        about = {name: getattr(source, name) for name in ("description", "architecture", "attention", "seed")}
        info: dict[str, Any] = {
            "key": task.key,
            "config": task.config.model_dump(mode="json"),
            "model": about,
            "task": source.task,
            "labels": list(source.labels),
            "tokenizer": task.config.data.tokenizer,
            "embedding_dim": None if source.config is None else source.config.embedding_dim,
            "data": {
                "name": Path(task.config.dataset).name,
                "fingerprint": task.source,
                "examples": {},
                "warnings": find_doubts(
                    source, task.config.dataset, task.config.data, workspace.data_dirs, workspace.hash_file
                ),
                "folders": remember_folders(executor.workspace.data_dirs),
            },
            "versions": library_versions(),
        }
        write_trial(executor.workspace.runs / task.run, info)


class Fit(Kind):
    def title(self, task: Task) -> str:
        return f"fit {task.explainer} to {task.run}"

    def status(self, task: Task, run: Run) -> Status:
        assert task.explainer is not None
        if not run.fitted_path(task.explainer, task.key).exists():
            return Status("missing")
        weights = run.fitted_weights(task.explainer, task.key)
        same = run.finished and weights == run.sums().get("model.safetensors")
        return Status("finished" if same else "missing")

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        from heedful.engine.running.processors import threads
        from heedful.engine.tasks.rows import TEXTS, TOKENS, RepeatedPasses

        assert task.explainer is not None
        explainer = EXPLAINERS.find(task.explainer)
        assert explainer.fit is not None
        run = executor.workspace.run(task.run)
        model, weights = executor.model(run)
        examples = executor.corpus(task)["train"]
        rng = np.random.default_rng([task.config.seed, *task.explainer.encode()])
        progress.say(f"{self.title(task)}: {len(examples)} training texts")
        with threads(task.threads):
            batches = RepeatedPasses(model.encode(examples), TEXTS, TOKENS)
            state = explainer.fit(model.network, batches, rng)
        run.write_fitted(task.explainer, task.key, state, weights)

    def cost(self, task: Task, here: Sizes, throughput: Throughput) -> tuple[float, float]:
        return float(here["train"].texts), throughput.train(run_config(task), here["train"])


class Score(Fit):
    """Kept as what an explainer learns is: of the same weights, in the same folder."""

    def title(self, task: Task) -> str:
        return f"score the words of {task.run} by {task.explainer}"

    def status(self, task: Task, run: Run) -> Status:
        from heedful.engine.sources.edited_data import words_scored_by

        return super().status(replace(task, explainer=words_scored_by(str(task.explainer))), run)

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        from heedful.engine.running.processors import threads
        from heedful.engine.sources.edited_data import score_words, words_scored_by

        run = executor.workspace.run(task.run)
        model, weights = executor.model(run)
        corpus = executor.corpus(task)
        total = sum(len(corpus[split]) for split in SPLITS)
        with threads(task.threads), progress.bar(task.name, total=total) as bar:
            scores: dict[str, NDArray[Any]] = {
                split: score_words(model, corpus[split], str(task.explainer), bar) for split in SPLITS if corpus[split]
            }
        run.write_fitted(words_scored_by(str(task.explainer)), task.key, scores, weights)


class ExperimentTask(Kind):
    def title(self, task: Task) -> str:
        return f"{question(task).experiment} of {task.run}"

    def heading(self, task: Task) -> str:
        return question(task).experiment

    def status(self, task: Task, run: Run) -> Status:
        """Rows count when they are whole, and of the weights that the model has now."""
        seal = run.results.check_rows(question(task).experiment, task.key)
        if seal is None or not run.finished or seal["weights"] != weights_of(task, run):
            return Status("missing")
        return Status("finished")

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        from heedful.data.corpora.registry import restricted
        from heedful.engine.running.processors import threads
        from heedful.engine.tasks.rows import ask_model

        ask, run = question(task), executor.workspace.run(task.run)
        model, weights = executor.model(run)
        texts = executor.texts(task)
        began = time.perf_counter()
        with threads(task.threads), progress.bar(task.name, total=len(texts.places)) as bar:
            states = {name: run.fitted(name, key) for name, key in task.inputs}
            others = executor.others(task)
            table = ask_model(model, texts.examples, texts.places, ask, task.config.seed, bar, states, others)
        seconds = time.perf_counter() - began
        if not restricted(task.config.dataset):  # first: rows are never without them
            keep_texts(run.path, ask.split, texts.examples, texts.places.tolist(), texts.whole)
        if isinstance(task.config, EvaluationConfig):
            run.results.write_performance(executor.performance(model, texts, ask.split))
        asked = ask.model_dump(mode="json", exclude={"experiment"})
        run.results.write_rows(ask.experiment, task.key, table, asked, weights, seconds)

    def cost(self, task: Task, here: Sizes, throughput: Throughput) -> tuple[float, float]:
        from heedful.engine.sources.data import SplitSize

        ask, whole = question(task), here[question(task).split]
        texts = min(ask.limit or whole.texts, whole.texts)
        size = SplitSize(texts, round(texts * whole.length))
        by_text, by_word = EXPERIMENTS.find(ask.experiment).takes.forwards
        return by_text * size.texts + by_word * size.words, throughput.ask(run_config(task), ask, size)


class Summarise(Kind):
    computes = False

    def title(self, task: Task) -> str:
        return f"summary of {question(task).experiment} of {task.run}"

    def heading(self, task: Task) -> str:
        return question(task).experiment

    def status(self, task: Task, run: Run) -> Status:
        name = question(task).experiment
        summary = run.results.check_summary(name, task.key)
        seal = run.results.seal(name, task.needs[0])
        if summary is None or seal is None or summary[MADE_BY]["rows"] != seal["rows"]:
            return Status("missing")
        return Status("finished")

    def do(self, task: Task, executor: Executor, progress: Progress) -> None:
        ask, (rows,) = question(task), task.needs
        name, run = ask.experiment, executor.workspace.run(task.run)
        results = run.results
        seal = results.check_rows(name, rows)
        if seal is None:
            raise Mistake(f"{results.rows_path(name, rows)} is not there.")
        table = results.rows(name, rows)
        trial = experiments.Result(name, table, {}, ask.options, run.labels, run.info["task"])
        summary = experiments.summary_with_verdict(EXPERIMENTS.find(name), trial)
        asked = ask.model_dump(mode="json", exclude={"experiment"})
        results.write_summary(name, task.key, summary, {"rows": seal["rows"], "n_rows": seal["n_rows"], **asked})
        results.publish(name, rows, task.key)


def question(task: Task) -> Request:
    assert task.ask is not None, task.kind
    return task.ask


def run_config(task: Task) -> RunConfig:
    assert isinstance(task.config, RunConfig), task.kind
    return task.config


def weights_of(task: Task, run: Run) -> str | None:
    """What rows must be of, to count: the weights of the run, or the model that is tried."""
    if isinstance(task.config, EvaluationConfig):
        return task.config.source.fingerprint
    return run.sums().get("model.safetensors")


TASK_KINDS: Mapping[TaskKind, Kind] = {
    "train": Train(),
    "trial": EvaluationTask(),
    "fit": Fit(),
    "score": Score(),
    "experiment": ExperimentTask(),
    "summarise": Summarise(),
}
