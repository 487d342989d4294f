"""Embedding models of sentence-transformers as a family: a folder that says how its states become a vector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.corpora import locate
from heedful.engine.sources.huggingface import CHECKPOINTS, PREFIX, CheckpointSource
from heedful.errors import Mistake

if TYPE_CHECKING:
    import torch

    from heedful.engine.sources.models import ModelFamily, ModelSource
    from heedful.models.model import Model

OPTIONS = ("revision", "dtype", "offline")


class EmbeddingSource(CheckpointSource):
    """An embedding model that may not be in memory yet. Training may begin with its transformer."""

    labels = ("cosine",)

    def __init__(self, given: str, options: dict[str, Any]) -> None:
        super().__init__(given, options)
        self.task = "nli"

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"an embedding model ({self.architecture}), asked how alike two texts are"

    def of_pairs(self) -> ModelSource | None:
        return None

    def load(self, device: torch.device) -> Model:
        from heedful.models.embedding.loading import load_embedding_model

        return load_embedding_model(self.given, device=device, **self.decided)


class EmbeddingModels:
    """The family of embedding models."""

    title = "an embedding model of sentence-transformers (a folder with modules.json)"

    def claims(self, what: str | Path) -> bool:
        """Only what is here: of an id that was never fetched nobody knows what it is."""
        where = Path(str(what).removeprefix(PREFIX).partition("?")[0])
        return CHECKPOINTS.claims(what) and locate.is_dir(where) and locate.is_file(where / "modules.json")

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        where, _, told = str(what).removeprefix(PREFIX).partition("?")
        options.pop("hash_file", None)
        given = (json.loads(told) if told else {}) | options
        given.pop("query", None)  # it reads pairs
        if unknown := sorted(set(given) - set(OPTIONS)):
            raise Mistake(f"{unknown[0]!r} is not an option of an embedding model. They are: {', '.join(OPTIONS)}.")
        return EmbeddingSource(where, given)


EMBEDDING_MODELS: ModelFamily = EmbeddingModels()
