"""A task: one thing to be made, named by a key that changes with everything that decides its result.

What kinds there are, and how each is done, stands in kinds.py. Nothing here reads a file or imports torch: thousands
of tasks are made in a second.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from heedful.config import Config, DataOptions, EvaluationConfig, RunConfig
from heedful.data.edits.edit import parse_edit
from heedful.records import Split

TaskKind = Literal["train", "trial", "fit", "score", "experiment", "summarise"]
TRAINING_VERSION = "1"  # changes when the same configuration and data would be trained to other weights
Condition = Literal["finished", "interrupted", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class Status:
    """What there is of a task. `note` names the file and says what is wrong with it, where it is damaged."""

    state: Condition
    note: str = ""


class Request(Config):
    """One experiment as it is asked of a run. `options` holds every setting, defaults included."""

    experiment: str
    options: dict[str, Any] = Field(default_factory=dict)
    split: Split = "test"
    limit: int | None = None  # so many texts, evenly spread over the split; None: all
    version: str = "1"  # of the experiment: changes whenever its rows would


@dataclass(frozen=True, slots=True)
class Task:
    kind: TaskKind
    key: str
    run: str  # the name of its run folder
    config: RunConfig | EvaluationConfig  # of the run: a training, or a model on other data
    source: str  # fingerprint of the data
    ask: Request | None = None  # of an experiment or a summary
    needs: tuple[str, ...] = ()  # keys of the tasks whose results it reads
    size: int = 0  # bytes of its data: the long tasks begin first
    threads: int = 1
    # What it reads of other tasks, by its own name for it: the run folder of an objective's base model, the key of
    # what an explainer has learnt.
    inputs: tuple[tuple[str, str], ...] = ()
    explainer: str | None = None  # of a fit, or of scores
    # Where its data are edited by scores of every word: the run folder that has them, the method, and their key.
    edited: tuple[str, str, str] | None = None
    others: tuple[tuple[str, str], ...] = ()  # of an experiment: the run folders that it compares with, by its names

    @property
    def name(self) -> str:
        """For people."""
        from heedful.engine.tasks.kinds import TASK_KINDS

        return TASK_KINDS[self.kind].title(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads: what is sent to a worker. No pickle."""
        values: dict[str, Any] = {field: getattr(self, field) for field in self.__slots__}
        values["config"] = self.config.model_dump(mode="json")
        values["ask"] = None if self.ask is None else self.ask.model_dump(mode="json")
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Task:
        kind: type[RunConfig | EvaluationConfig] = EvaluationConfig if "source" in values["config"] else RunConfig
        return cls(
            **{
                **values,
                "config": kind.model_validate(values["config"]),
                "ask": None if values["ask"] is None else Request.model_validate(values["ask"]),
                "needs": tuple(values["needs"]),
                "edited": None if values["edited"] is None else tuple(values["edited"]),
                **{field: tuple((name, at) for name, at in values[field]) for field in ("inputs", "others")},
            }
        )


def train_key(
    config: RunConfig,
    source: str,
    vectors: str | None,
    objective: tuple[str, dict[str, str]] | None = None,
    scores: str | None = None,
) -> str:
    """Paths do not decide a result, what is in the files does: of them only names count.

    `objective`: its version and the keys of the runs that it needs, where it is not the default. `scores`: the key of
    those by which the data are edited.
    """
    values = config.model_dump(mode="json")
    values["dataset"] = Path(config.dataset).name
    values["vectors"] = vectors
    values["data"] = _data_values(config.data, scores)
    if config.start is not None:
        values["start"] = config.start.fingerprint
    if objective is None:
        return key_of("train", TRAINING_VERSION, values, source)
    version, bases = objective
    options = values["training"].get("objective_options", {})
    values["training"]["objective_options"] = {n: v for n, v in options.items() if n not in bases}
    return key_of("train", TRAINING_VERSION, values, source, version, bases)


def trial_key(config: EvaluationConfig, source: str) -> str:
    """Model x data: the folder holds the answers to any question about the two."""
    name = Path(config.dataset).name
    return key_of("trial", config.source.fingerprint, config.seed, name, _data_values(config.data), source)


def fit_key(explainer: str, version: str, train: str) -> str:
    return key_of("fit", explainer, version, train)


def score_key(method: str, train: str) -> str:
    """Of the scores of every word by a method, for the model that was trained."""
    return key_of("score", method, train)


def experiment_key(ask: Request, run: str, fits: tuple[str, ...] = (), others: Mapping[str, str] | None = None) -> str:
    """`run` is the key of the training or trial whose model is asked; `fits` those of what its explainers learnt.

    `others`: the keys of the runs that it compares with, by its names for them.
    """
    compared = (dict(others),) if others else ()
    return key_of("experiment", ask.model_dump(mode="json"), run, *fits, *compared)


def summary_key(rows: str, code: str) -> str:
    return key_of("summarise", rows, code)


def _data_values(options: DataOptions, scores: str | None = None) -> dict[str, Any]:
    """`scores` stand for the run that an edit names to have its words scored by."""
    values = options.model_dump(mode="json")
    if options.edit is not None:
        found, settings = parse_edit(options.edit)
        told = settings.model_dump(mode="json", exclude={"base"} if scores else None)
        values["edit"] = {"name": options.edit.name, "version": found.version, "options": told, "scores": scores}
    for name in ("dev_file", "test_file"):
        values[name] = None if values[name] is None else Path(values[name]).name
    return values


def key_of(*parts: Any) -> str:
    """Twenty hexadecimal digits that change when anything in the JSON of `parts` does.

    None counts as not said: a new setting whose default is None leaves every key as it was.
    """
    text = json.dumps([_without_unset(part) for part in parts], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _without_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_unset(inner) for name, inner in value.items() if inner is not None}
    return value
