"""The command that does one task alone."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from heedful import experiments
from heedful.config import AS_PUBLISHED, FINE_TUNING, DataOptions, EvaluationConfig, RunConfig
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.task import Task


def command(task: Task, workspace: Workspace) -> str:
    """What to type to do this task again, and see its error as it happens."""
    if isinstance(task.config, RunConfig) and task.kind == "train":
        words = [*train_words(task.config), "--runs", str(workspace.runs)]
    else:
        words = run_words(task, workspace)
    for folder in workspace.data_dirs:
        words += ["--data-dir", str(folder)]
    return shlex.join(words)


def train_words(config: RunConfig) -> list[str]:
    """`heedful train` with every setting that is not what it would be anyway."""
    words = ["heedful", "train", config.dataset]
    chosen = {"encoder": config.model.encoder, "attention": config.model.attention}
    if config.start is not None:
        words += ["--start", config.start.place]
        usual = RunConfig(dataset=config.dataset, training=FINE_TUNING)
    else:
        words += ["--encoder", chosen["encoder"], "--attention", chosen["attention"]]
        usual = configure(config.dataset, model=chosen)
    words += ["--seed", str(config.seed), *(["--vectors", config.vectors] if config.vectors else [])]
    published: dict[str, Any] = {}
    for part in ("data", "model", "training"):
        given, default = (getattr(one, part).model_dump(mode="json") for one in (config, usual))
        published |= given.pop(AS_PUBLISHED, {})
        words += settings(given, default)
    return words + settings({AS_PUBLISHED: published} if published else {}, {})


def settings(given: dict[str, Any], default: dict[str, Any]) -> list[str]:
    """`--set KEY=VALUE` for everything that differs."""
    words: list[str] = []
    for name, value in given.items():
        if value != default.get(name):
            words += ["--set", f"{name}={plain(value)}"]
    return words


def plain(value: Any) -> str:
    """As it is typed: JSON, but a string without quotes, unless it would then be read as JSON (a column "1")."""
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return text
    try:
        json.loads(value)
    except ValueError:
        return value
    return text


def run_words(task: Task, workspace: Workspace) -> list[str]:
    """`heedful run` of one question; of a folder that was to be opened for one, the question is left open."""
    config, ask = task.config, task.ask
    words = ["heedful", "run", *([ask.experiment] if ask else [])]
    if isinstance(config, EvaluationConfig):
        words += trial_words(config, workspace.runs)
    else:
        words += ["--model", str(workspace.runs / task.run)]
    if ask is None:
        return words
    words += ["--split", ask.split] if ask.split != "test" else []
    words += ["--limit", str(ask.limit)] if ask.limit is not None else []
    default = experiments.find(ask.experiment).config().model_dump(mode="json")
    return words + settings(ask.options, default)


def trial_words(config: EvaluationConfig, runs: Path) -> list[str]:
    """The model and the data of a trial, as they are typed."""
    beside = runs / config.source.place
    words = ["--model", str(beside if beside.exists() else config.source.place), "--data", config.dataset]
    given, usual = (options.model_dump(mode="json") for options in (config.data, DataOptions()))
    return words + settings(given, usual)
