"""Taggers, models that mark an answer and masked language models of transformers as a family: a folder, or hf:ID.

Which it is stands in its config.json. A folder of a classifier goes to `huggingface.py`.
"""

from __future__ import annotations

import json
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

OPTIONS = ("labels", "revision", "dtype", "offline")


class PlacesSource(CheckpointSource):
    """A model that answers at places of a text, and that may not be in memory yet."""

    labels = LABELS

    def __init__(self, given: str, options: dict[str, Any]) -> None:
        super().__init__(given, options)
        self.task = "places"
        self._loaded: tuple[torch.device, Model] | None = None

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"a model of transformers that answers at places of a text ({self.architecture})"

    def of_pairs(self) -> ModelSource | None:
        return None

    def load(self, device: torch.device) -> Model:
        """Once: questions about data are made with the model, too."""
        from heedful.models.places.loading import load_places_model

        if self._loaded is None or self._loaded[0] != device:
            self._loaded = device, load_places_model(self.given, device=device, **self.decided)
        return self._loaded[1]


class PlacesModels:
    """The family of models that answer at places of a text."""

    title = "a tagger, a question-answering or masked language model of Hugging Face (...ForTokenClassification, ...)"

    def claims(self, what: str | Path) -> bool:
        """Only what is here: of an id that was never fetched nobody knows what it is."""
        from heedful.models.huggingface.kinds import answered_at_places, architecture_of

        if not CHECKPOINTS.claims(what):
            return False
        where = Path(str(what).removeprefix(PREFIX).partition("?")[0])
        try:
            config = json.loads((where / "config.json").read_text(encoding="utf-8")) if locate.is_dir(where) else {}
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(config, dict) and answered_at_places(architecture_of(config)) is not None

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        where, _, told = str(what).removeprefix(PREFIX).partition("?")
        options.pop("hash_file", None)
        given = (json.loads(told) if told else {}) | options
        given.pop("query", None)  # it knows by itself whether it reads pairs
        if unknown := sorted(set(given) - set(OPTIONS)):
            raise Mistake(
                f"{unknown[0]!r} is not an option of a model that answers at places of a text. They are: "
                f"{', '.join(OPTIONS)}."
            )
        return PlacesSource(where, given)


PLACES_MODELS: ModelFamily = PlacesModels()
