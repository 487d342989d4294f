"""Checkpoints of transformers that are not classifiers of whole texts, as families of models: a folder, or hf:ID.

What a folder holds stands in its config.json (and in modules.json, beside an embedding model). Of an id that was never
fetched nobody knows what it is: it goes to `huggingface.py`, which says so once its files are here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.corpora import locate
from heedful.data.prompts import LABELS
from heedful.engine.sources.huggingface import CHECKPOINTS, PREFIX, CheckpointSource
from heedful.errors import Mistake

if TYPE_CHECKING:
    import torch

    from heedful.engine.sources.models import ModelFamily, ModelSource
    from heedful.models.model import Model


@dataclass(frozen=True, slots=True)
class OtherKind:
    """What there is to know of one kind of checkpoint."""

    title: str  # as a person is told what a model can be
    what: str  # "a language model"
    task: str
    labels: tuple[str, ...]
    options: tuple[str, ...]
    load: str  # where the function stands that reads it: "module:name"
    holds: Callable[[Path], bool]  # whether a folder is of this kind
    refused: Mapping[str, str]  # options of classifiers, and what to do instead; empty: they say nothing new


class OtherSource(CheckpointSource):
    """A checkpoint that may not be in memory yet."""

    def __init__(self, given: str, options: dict[str, Any], kind: OtherKind) -> None:
        super().__init__(given, options)
        self.kind, self.task = kind, kind.task
        self._loaded: tuple[torch.device, Model] | None = None

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.kind.labels

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"{self.kind.what} of transformers ({self.architecture})"

    def of_pairs(self) -> ModelSource | None:
        return None

    def with_options(self, options: dict[str, Any]) -> OtherSource:
        return OtherSource(self.given, options, self.kind)

    def load(self, device: torch.device) -> Model:
        """Once: questions about data are made with the model, too."""
        if self._loaded is None or self._loaded[0] != device:
            module, name = self.kind.load.split(":")
            read = getattr(import_module(module), name)
            self._loaded = device, read(self.given, device=device, **self.decided)
        return self._loaded[1]


class OtherCheckpoints:
    """The family of one kind."""

    def __init__(self, kind: OtherKind) -> None:
        self.kind, self.title = kind, kind.title

    def claims(self, what: str | Path) -> bool:
        """Only what is here."""
        where = Path(str(what).removeprefix(PREFIX).partition("?")[0])
        return CHECKPOINTS.claims(what) and locate.is_dir(where) and self.kind.holds(where)

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        where, _, told = str(what).removeprefix(PREFIX).partition("?")
        options.pop("hash_file", None)
        given = (json.loads(told) if told else {}) | options
        for name in ("labels", "query"):
            if name not in self.kind.options and given.pop(name, None) and name in self.kind.refused:
                raise Mistake(f"{where} is {self.kind.what}, which has no {name}: {self.kind.refused[name]}.")
        if unknown := sorted(set(given) - set(self.kind.options)):
            known = ", ".join(self.kind.options)
            raise Mistake(f"{unknown[0]!r} is not an option of {self.kind.what}. They are: {known}.")
        return OtherSource(where, given, self.kind)


def _architecture(folder: Path) -> str | None:
    from heedful.models.huggingface.kinds import architecture_of

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return architecture_of(config) if isinstance(config, dict) else None


def _generates(folder: Path) -> bool:
    from heedful.models.huggingface.kinds import GENERATES

    return (_architecture(folder) or "").endswith(GENERATES)


def _answers_at_places(folder: Path) -> bool:
    from heedful.models.huggingface.kinds import answered_at_places

    return answered_at_places(_architecture(folder)) is not None


OF_FILES = ("revision", "dtype", "offline")
LANGUAGE_MODELS: ModelFamily = OtherCheckpoints(
    OtherKind(
        "a language model or translator: a Hugging Face folder or id whose class generates (...ForCausalLM, "
        "...MTModel)",
        "a language model",
        "generation",
        LABELS,
        (*OF_FILES, "language"),
        "heedful.models.language.loading:load_language_model",
        _generates,
        {"labels": "--say and --instead name what it is asked about", "query": "its prompt is one text"},
    )
)
PLACES_MODELS: ModelFamily = OtherCheckpoints(
    OtherKind(
        "a tagger, a question-answering or masked language model of Hugging Face (...ForTokenClassification, ...)",
        "a model that answers at places of a text",
        "places",
        LABELS,
        (*OF_FILES, "labels"),
        "heedful.models.places.loading:load_places_model",
        _answers_at_places,
        {},
    )
)
EMBEDDING_MODELS: ModelFamily = OtherCheckpoints(
    OtherKind(
        "an embedding model of sentence-transformers (a folder with modules.json)",
        "an embedding model",
        "nli",
        ("cosine",),
        OF_FILES,
        "heedful.models.embedding.loading:load_embedding_model",
        lambda folder: locate.is_file(folder / "modules.json"),
        {"labels": "its answer is a cosine"},
    )
)
