"""A run folder: `runs/<dataset>-<encoder>-<attention>-s<seed>-<hash8>/`, or `<dataset>-<checkpoint>-s<seed>-<hash8>/`.

    config.json          what was asked (RunConfig), what it was asked of (labels, task, data), and with what
    model.safetensors    the weights of the best epoch
    vocabulary.json      the words, in the order of their ids
    pretrained/          of a fine-tuned checkpoint: the configuration and the tokenizer that came with it
    training.parquet     one row an epoch
    results/<experiment>.parquet, results/<experiment>.summary.json   see results.py
    audit.json, audit.html   what `heedful audit` found last, and its page
    texts/<split>.parquet    the texts that the results are about, see texts.py
    explainers/<name>-<key>.safetensors   what an explainer has learnt from the run's training data
    SHA256SUMS           checksums of the files above, written last: a run that has it is finished
    checkpoint.safetensors   only while training is not finished: where to go on

A model that was tried on other data has a folder of the same form, `<model>-on-<data>-<hash8>/`, without weights,
words and training: its config.json holds a `EvaluationConfig`, which says where the model is.

A `Run` reads nothing until it is asked. No torch here: weights are read and written as numpy arrays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.config import EvaluationConfig, RunConfig, stored_settings
from heedful.errors import Mistake
from heedful.files import ENDING, whole_file, write_json
from heedful.store.arrays import read_arrays, write_arrays
from heedful.store.checks import (
    SUMS,
    Damaged,
    FileHashes,
    HashFile,
    check_file,
    check_info,
    check_sums,
    read_object,
    read_sums,
    write_sums,
)
from heedful.store.results import Results
from heedful.store.titles import attention_title

Arrays = Mapping[str, NDArray[Any]]
NONE: Mapping[str, bytes] = MappingProxyType({})
SEALED = ("config.json", "vocabulary.json", "model.safetensors", "training.parquet", "results/performance.summary.json")
SEALED_TRIAL = ("config.json",)
CHECKPOINT = "checkpoint.safetensors"
AUDIT, AUDIT_PAGE = "audit.json", "audit.html"
PRETRAINED = "pretrained"


def run_name(config: RunConfig, key: str) -> str:
    """Readable first, then the key of everything that decides the result."""
    model = config.start.name if config.start else f"{config.model.encoder}-{config.model.attention_name}"
    return f"{_stem(config.dataset)}-{model}-s{config.seed}-{key[:8]}"


def trial_name(config: EvaluationConfig, key: str) -> str:
    return f"{config.source.name}-on-{_stem(config.dataset)}-{key[:8]}"


def _stem(dataset: str) -> str:
    return Path(dataset).name.split(".")[0].replace(":", "-")


@dataclass(frozen=True)
class Run:
    """A run folder that exists."""

    path: Path
    hash_file: HashFile = field(default_factory=FileHashes, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def info(self) -> dict[str, Any]:
        """config.json: `config`, `labels`, `task`, `tokenizer`, `data`, `versions`."""
        try:
            info = read_object(self._checked("config.json"))
        except Damaged as damage:
            raise Mistake(f"{damage}: train again.") from None
        check_info(info, self.path / "config.json")
        return info

    @property
    def config(self) -> RunConfig:
        """How it was trained; a mistake where it was not trained here."""
        if self.trial is not None:
            raise Mistake(f"{self.path} was not trained: it holds what {self.trial.source.name} did on other data.")
        return RunConfig.parse(stored_settings(self.info["config"]), str(self.path / "config.json"))

    @property
    def data_folders(self) -> tuple[Path, ...]:
        """Where its data were when it was trained, as far as these folders are still there."""
        folders = self.info.get("data", {}).get("folders", ())
        return tuple(path for path in map(Path, folders) if path.is_dir())

    @cached_property
    def trial(self) -> EvaluationConfig | None:
        """What was tried on what; None where this is a run on the data that it was trained on."""
        config = self.info.get("config")
        if not isinstance(config, dict) or "source" not in config:
            return None
        return EvaluationConfig.parse(stored_settings(config), str(self.path / "config.json"))

    @property
    def dataset(self) -> str:
        """The data that the results are of: a name, or that of a file."""
        return Path(str(self.info["config"]["dataset"])).name

    @property
    def architecture(self) -> str:
        """What kind of model: the encoder of one of ours, the class of a foreign one."""
        return str(self._about_model("architecture") or self.info["config"]["model"]["encoder"])

    @property
    def attention(self) -> str:
        """What kind of attention it has, and what else makes it another model than others with that attention."""
        kind = str(self._about_model("attention") or self.info["config"]["model"]["attention"])
        return attention_title(kind, self.info["config"])

    @property
    def seed(self) -> int | None:
        """Of its training; None where nobody knows."""
        seed = self._about_model("seed") if self.trial is not None else self.info["config"]["seed"]
        return None if seed is None else int(seed)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.info["labels"])

    @property
    def description(self) -> str:
        """The model in words: "a bidirectional LSTM with additive attention"."""
        told = self._about_model("description")
        return str(told or f"a model with the encoder {self.architecture!r} and {self.attention} attention")

    def _about_model(self, what: str) -> Any:
        """What config.json tells of a model that is not here itself."""
        return self.info.get("model", {}).get(what)

    @property
    def words(self) -> tuple[str, ...]:
        path = self._checked("vocabulary.json")
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise ValueError("it is not a list of words")
        except (ValueError, RecursionError) as error:
            raise Mistake(f"{path} is damaged ({error}): train again.") from None
        return tuple(words)

    @property
    def results(self) -> Results:
        return Results(self.path / "results", self.hash_file)

    @property
    def finished(self) -> bool:
        return (self.path / SUMS).exists()

    @property
    def selects(self) -> bool:
        """Whether its model reads only the words that it selects."""
        return bool(self.info["config"].get("model", {}).get("rationale"))

    @property
    def interrupted(self) -> bool:
        return not self.finished and (self.path / CHECKPOINT).exists()

    def sums(self) -> dict[str, str]:
        """The checksums of a finished run, by file; empty before it is finished."""
        return read_sums(self.path)

    def check(self, sealed: tuple[str, ...] = SEALED) -> dict[str, str]:
        """The checksums of a finished run; a file that is not what was written raises `Damaged`."""
        sums = self.sums()
        missing = [name for name in sealed if name not in sums]
        if missing:
            raise Damaged(f"{self.path / SUMS} is damaged: it does not have {missing[0]}")
        check_sums(self.path, sums, self.hash_file)
        return sums

    def fingerprint(self) -> str:
        """Of what decides its model's answers: weights, words and their tokenizer, sizes, labels.

        Not of how it was trained, with which versions and from which path.
        """
        info, sums = self.info, self.sums()
        names = ("model.safetensors", "vocabulary.json", *self._pretrained())
        decides = {
            "files": [sums.get(name) or self.hash_file(self.path / name) for name in names],
            "model": info["config"]["model"],
            **{name: info[name] for name in ("embedding_dim", "labels", "task", "tokenizer")},
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def weights(self) -> dict[str, NDArray[Any]]:
        return self._arrays("model.safetensors")[0]

    def fitted_path(self, explainer: str, key: str) -> Path:
        return self.path / "explainers" / f"{explainer}-{key}.safetensors"

    def fitted(self, explainer: str, key: str) -> dict[str, NDArray[Any]]:
        """What an explainer has learnt; raises `Damaged`."""
        return read_arrays(self.fitted_path(explainer, key))[0]

    def fitted_weights(self, explainer: str, key: str) -> str:
        """The checksum of the weights that it was learnt from; raises `Damaged`."""
        return read_arrays(self.fitted_path(explainer, key))[1].get("weights", "")

    def write_fitted(self, explainer: str, key: str, state: Arrays, weights: str) -> None:
        """With the checksum of the weights that it was learnt from."""
        write_arrays(self.fitted_path(explainer, key), state, {"explainer": explainer, "weights": weights})

    def checkpoint(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and notes (`history`, `threads`) of an unfinished run; raises `Damaged`."""
        arrays, metadata = read_arrays(self.path / CHECKPOINT)
        return arrays, json.loads(metadata["notes"])

    def training(self) -> list[dict[str, Any]]:
        """One row an epoch."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._checked("training.parquet")
        try:
            rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise Mistake(f"{path} is damaged ({str(error).splitlines()[0]}): train again.") from None
        return rows

    def summary(self, experiment: str) -> dict[str, Any]:
        """results/<experiment>.summary.json, without the field that says how it was made."""
        summary = self.results.summary(experiment)
        if summary is None:
            raise Mistake(
                f"{self.path} has no results of {experiment!r}: run `heedful run {experiment} --model {self.path}`."
            )
        return summary

    def audit(self) -> dict[str, Any] | None:
        """What `heedful audit` found last, in plain values; None where there is none, or none that can be read."""
        try:
            found = read_object(self.path / AUDIT)
        except (OSError, Damaged):
            return None
        parts = ("recommendation", "header", "cells", "warnings")
        whole = isinstance(found, dict) and all(isinstance(found.get(part), list) for part in parts)
        whole = whole and all(isinstance(line, list) for line in found["cells"])
        return found if whole else None

    def write_audit(self, found: Mapping[str, Any], page: str) -> None:
        write_json(self.path / AUDIT, found)
        with whole_file(self.path / AUDIT_PAGE) as temporary:
            temporary.write_text(page, encoding="utf-8")

    def write_checkpoint(self, arrays: Arrays, notes: Mapping[str, Any]) -> None:
        write_arrays(self.path / CHECKPOINT, arrays, {"notes": json.dumps(notes)})

    def write_training(self, weights: Arrays, history: list[dict[str, Any]]) -> None:
        """The best weights so far, and the rows of the epochs."""
        write_arrays(self.path / "model.safetensors", weights, {})
        self._write_rows("training.parquet", history)

    def write_description(
        self, info: Mapping[str, Any], words: tuple[str, ...], pretrained: Mapping[str, bytes] = NONE
    ) -> None:
        """`pretrained`: files that came with the checkpoint that training began with, by name."""
        write_json(self.path / "config.json", info)
        write_json(self.path / "vocabulary.json", list(words))
        for name, content in pretrained.items():
            (self.path / PRETRAINED).mkdir(exist_ok=True)
            with whole_file(self.path / PRETRAINED / name) as temporary:
                temporary.write_bytes(content)

    def finish(self) -> None:
        """Seal the run: from now on it is finished, and damage is seen."""
        write_sums(self.path, (*SEALED, *self._pretrained()))
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def reopen(self) -> None:
        """Training is to be done again, from the start. Results stay: they know what weights they are of."""
        for name in (SUMS, CHECKPOINT, "model.safetensors"):
            (self.path / name).unlink(missing_ok=True)

    def write_summary(self, experiment: str, summary: Mapping[str, Any]) -> None:
        write_json(self.path / "results" / f"{experiment}.summary.json", summary)

    def _pretrained(self) -> list[str]:
        folder = self.path / PRETRAINED
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        return [f"{PRETRAINED}/{path.name}" for path in paths if path.suffix != ENDING]

    def _write_rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with whole_file(self.path / name) as temporary:
            pq.write_table(pa.Table.from_pylist(rows), temporary)

    def _checked(self, name: str) -> Path:
        """A file of the run that is what was written: of a finished run, what its SHA256SUMS says."""
        path = self.path / name
        if not path.is_file():
            raise Mistake(f"{self.path} is not a run folder: it has no {name}.")
        try:
            digest = self.sums().get(name)
            if digest is not None:
                check_file(path, digest, self.hash_file)
        except Damaged as damage:
            raise Mistake(f"{damage}: put back what it was, or train again.") from None
        return path

    def _arrays(self, name: str) -> tuple[dict[str, NDArray[np.generic]], dict[str, str]]:
        if not (self.path / name).exists():
            raise Mistake(f"{self.path} is not a run folder: it has no {name}.")
        try:
            return read_arrays(self.path / name)
        except Damaged as damage:
            raise Mistake(f"{damage}: delete {self.path} and train again.") from None


def runs_in(folder: Path) -> Iterator[Run]:
    """The runs of a folder by name. None of them is opened: that is for whoever asks them something."""
    if not folder.is_dir():
        raise Mistake(f"there is no folder of runs {folder}.")
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and (path / "config.json").is_file():
            yield Run(path)
