"""Checkpoints of transformers as a family of models: a folder, or an id of the hub (`owner/name`, `hf:name`)."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.corpora import locate
from heedful.data.corpora.labels import check_names
from heedful.engine.sources.models import ModelSource, find_source
from heedful.errors import Mistake, one_of, short
from heedful.store.checks import SUMS

if TYPE_CHECKING:
    import torch

    from heedful.engine.sources.models import ModelFamily
    from heedful.models.model import Model

PREFIX = "hf:"
ID = re.compile(r"[\w.-]+/[\w.-]+")
OPTIONS = ("labels", "query", "long", "problem_type", "revision", "dtype", "offline", "ignore_weights")


class CheckpointSource(ModelSource):
    """A checkpoint that may not be in memory yet; what is asked of it is `models.huggingface.load`'s.

    What its files tell is read when it is asked for, not before: those of an id may have to be fetched.
    """

    attention = "self-attention"

    def __init__(self, given: str, options: dict[str, Any]) -> None:
        self.given, self.options, self.name = given, options, Path(given).name
        self.task = "nli" if options.get("query") else "classification"

    @cached_property
    def folder(self) -> Path:
        from heedful.models.huggingface.files import checkpoint_folder

        return checkpoint_folder(self.given, self.options.get("revision"), bool(self.options.get("offline", False)))

    @cached_property
    def place(self) -> str | None:  # type: ignore[override]
        """With its options, so that another process finds the same model: hf:owner/name?{"query": true}."""
        path = Path(self.given)
        where = str(path.absolute()) if locate.exists(path) else self.given
        return f"{PREFIX}{where}?{self._options}" if self.decided else f"{PREFIX}{where}"

    @cached_property
    def own_dtype(self) -> str | None:
        from heedful.models.huggingface.files import own_dtype

        return own_dtype(self.folder)

    @cached_property
    def decided(self) -> dict[str, Any]:
        """Its options, with the numbers that it computes in: said where the files are of 16 bits, or in others."""
        from heedful.models.huggingface.files import HALVES

        others = {name: value for name, value in self.options.items() if name != "dtype"}
        said, own = self.options.get("dtype"), self.own_dtype
        if own in HALVES:
            return others | {"dtype": "float32" if said in (None, "auto") else said}
        return others if said in (None, "auto", own) else others | {"dtype": said}

    def on_device(self, device: str | None) -> ModelSource:
        """Numbers of 16 bits are slow and rough on a processor: elsewhere they stay as they are."""
        if device in (None, "cpu") or self.options.get("dtype") not in (None, "auto") or self.own_dtype is None:
            return self
        return self.with_options({**self.options, "dtype": self.own_dtype})

    def with_options(self, options: dict[str, Any]) -> CheckpointSource:
        """The same files, read otherwise."""
        return CheckpointSource(self.given, options)

    @property
    def caution(self) -> str | None:
        if self.options.get("dtype") not in (None, "auto") or "dtype" not in self.decided:
            return None
        own = self.own_dtype
        return f"the weights are {own}; computed in float32 on this CPU: --dtype {own} keeps them"

    @property
    def _options(self) -> str:
        return json.dumps(self.decided, sort_keys=True)

    @cached_property
    def fingerprint(self) -> str | None:
        """Of the files, and of the options that decide what the model says."""
        from heedful.models.huggingface.files import fingerprint

        files = fingerprint(self.folder)
        return files if not self.decided else hashlib.sha256((files + self._options).encode()).hexdigest()

    @cached_property
    def _told(self) -> Any:
        from heedful.models.huggingface.files import read_config

        return read_config(self.folder)

    @cached_property
    def architecture(self) -> str:  # type: ignore[override]
        return str((self._told.get("architectures") or [self._told.get("model_type", "unknown")])[0])

    @cached_property
    def description(self) -> str:  # type: ignore[override]
        return f"a checkpoint of transformers ({self.architecture})"

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        from types import SimpleNamespace

        from heedful.models.huggingface.files import read_labels

        names = self._told.get("id2label") or {i: f"LABEL_{i}" for i in range(int(self._told.get("num_labels", 2)))}
        config = SimpleNamespace(
            id2label=names, label2id=self._told.get("label2id"), problem_type=self._told.get("problem_type")
        )
        return read_labels(config, self.options.get("labels"), self.options.get("problem_type"))[1]

    def of_pairs(self) -> ModelSource | None:
        """A checkpoint does not tell whether it was trained on pairs."""
        if "query" in self.options:
            return None
        return self.with_options({**self.options, "query": True})

    def load(self, device: torch.device) -> Model:
        from heedful.models.huggingface import load

        return load(self.given, device=device, **self.decided)


def checkpoint_of(what: str | Path) -> CheckpointSource:
    """A checkpoint that training can begin with."""
    found = find_source(what)
    if not isinstance(found, CheckpointSource):
        raise Mistake(f"{what} is not a folder or id of Hugging Face: training can only start from those.")
    return found


def _model_type(config: Path) -> str | None:
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found.get("model_type") if isinstance(found, dict) else None


def check_dtype(dtype: object) -> None:
    from heedful.models.huggingface.files import DTYPES

    if dtype not in DTYPES:
        raise one_of("dtype", dtype, list(DTYPES))


def _patterns(given: object) -> list[str]:
    if not isinstance(given, list | tuple) or not all(isinstance(pattern, str) for pattern in given):
        raise Mistake(f"ignore_weights={short(given)}: it should be a list of names, ['bert.encoder.layer.3.*'].")
    return list(given)


class Checkpoints:
    """The family of transformers' folders and ids."""

    title = "a Hugging Face folder or id (owner/name, or hf:name)"

    def claims(self, what: str | Path) -> bool:
        """A folder by the `model_type` in its config.json; an id by its form, where no such folder could be meant."""
        given, folder = str(what), Path(what)
        if given.startswith(PREFIX):
            return True
        if locate.is_dir(folder):
            own = any((folder / name).exists() for name in ("vocabulary.json", SUMS))
            return not own and _model_type(folder / "config.json") is not None
        return ID.fullmatch(given) is not None and not locate.exists(folder) and not locate.exists(folder.parent)

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        where, _, told = str(what).removeprefix(PREFIX).partition("?")
        try:
            given = (json.loads(told) if told else {}) | options
        except (ValueError, TypeError):
            raise Mistake(f"{short(str(what))}: write options after the ? as a JSON object.") from None
        given.pop("hash_file", None)
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise Mistake(f"{unknown[0]!r} is not an option of a checkpoint. They are: {', '.join(OPTIONS)}.")
        if (dtype := given.get("dtype")) is not None:
            check_dtype(dtype)
        if "labels" in given:
            check_names(given["labels"])
            given["labels"] = list(given["labels"])
        if "ignore_weights" in given:
            given["ignore_weights"] = _patterns(given["ignore_weights"])
        source = CheckpointSource(where, given)
        if locate.exists(Path(where)):
            _ = source.folder  # what is wrong with a folder is said at once
        return source


CHECKPOINTS: ModelFamily = Checkpoints()
