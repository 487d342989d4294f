"""A task: one thing to be made, named by a key that changes with everything that decides its result.

    train        a run folder
    experiment   the rows of one experiment on one run
    summarise    the summary of those rows

Nothing here reads a file or imports torch: thousands of tasks are made in a second.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from heedful.config import Config, RunConfig
from heedful.records import Split

TaskKind = Literal["train", "experiment", "summarise"]
KINDS: tuple[TaskKind, ...] = ("train", "experiment", "summarise")
TRAINING_VERSION = "1"  # changes when the same configuration and data would be trained to other weights


class Ask(Config):
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
    config: RunConfig
    source: str  # fingerprint of the data
    ask: Ask | None = None  # of an experiment or a summary
    needs: tuple[str, ...] = ()  # keys of the tasks whose results it reads
    size: int = 0  # bytes of its data: the long tasks begin first
    threads: int = 1

    @property
    def name(self) -> str:
        """For people."""
        what = "" if self.ask is None else f"{self.ask.experiment} of "
        return (
            f"{'summary of ' if self.kind == 'summarise' else ''}{what}{self.run}"
            if what
            else f"train {self.run}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads: what is sent to a worker. No pickle."""
        values: dict[str, Any] = {field: getattr(self, field) for field in self.__slots__}
        values["config"] = self.config.model_dump(mode="json")
        values["ask"] = None if self.ask is None else self.ask.model_dump(mode="json")
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Task:
        config = RunConfig.model_validate(values["config"])
        ask = None if values["ask"] is None else Ask.model_validate(values["ask"])
        return cls(**{**values, "config": config, "ask": ask, "needs": tuple(values["needs"])})


def train_key(config: RunConfig, source: str, vectors: str | None) -> str:
    """Paths do not decide a result, what is in the files does: of them only names count."""
    values = config.model_dump(mode="json")
    values["dataset"] = Path(config.dataset).name
    values["vectors"] = vectors
    for name in ("dev_file", "test_file"):
        given = values["data"][name]
        values["data"][name] = None if given is None else Path(given).name
    return key_of("train", TRAINING_VERSION, values, source)


def experiment_key(ask: Ask, train: str) -> str:
    return key_of("experiment", ask.model_dump(mode="json"), train)


def summary_key(rows: str, code: str) -> str:
    return key_of("summarise", rows, code)


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
