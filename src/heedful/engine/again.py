"""The command that does one task alone."""

from __future__ import annotations

import json
import shlex
from typing import Any

from heedful import experiments
from heedful.engine.configure import configure
from heedful.engine.place import Place
from heedful.engine.task import Task


def command(task: Task, place: Place) -> str:
    """What to type to do this task again, and see its error as it happens."""
    words = _train(task, place) if task.kind == "train" else _run(task, place)
    for folder in place.data_dirs:
        words += ["--data-dir", str(folder)]
    return shlex.join(["heedful", *words])


def _train(task: Task, place: Place) -> list[str]:
    config = task.config
    words = [
        "train",
        config.dataset,
        "--encoder",
        config.model.encoder,
        "--attention",
        config.model.attention,
    ]
    words += ["--seed", str(config.seed)]
    usual = configure(
        config.dataset, model={"encoder": config.model.encoder, "attention": config.model.attention}
    )
    for given, default in (
        (config.model, usual.model),
        (config.training, usual.training),
        (config.data, usual.data),
    ):
        words += _options(_different(given.model_dump(mode="json"), default.model_dump(mode="json")))
    words += ["--vectors", config.vectors] if config.vectors else []
    return [*words, "--runs", str(place.runs)]


def _run(task: Task, place: Place) -> list[str]:
    assert task.ask is not None
    words = ["run", task.ask.experiment, "--model", str(place.runs / task.run)]
    words += ["--split", task.ask.split] if task.ask.split != "test" else []
    words += ["--limit", str(task.ask.limit)] if task.ask.limit is not None else []
    default = experiments.find(task.ask.experiment).config().model_dump(mode="json")
    for name, value in _different(task.ask.options, default).items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _different(given: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value != default.get(name)}


def _options(values: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, str(value)]
    return words
