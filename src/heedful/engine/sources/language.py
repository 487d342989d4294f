"""Language models of transformers as a family of models, causal ones and encoder-decoders: a folder, or hf:ID.

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

OPTIONS = ("revision", "dtype", "offline", "language")


class LanguageModelSource(CheckpointSource):
    """A model that generates that may not be in memory yet."""

    labels = LABELS

    def __init__(self, given: str, options: dict[str, Any]) -> None:
        super().__init__(given, options)
        self.task = "generation"
        self._loaded: tuple[torch.device, Model] | None = None

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"a language model of transformers ({self.architecture})"

    def of_pairs(self) -> ModelSource | None:
        return None

    def load(self, device: torch.device) -> Model:
        """Once: its tokenizer makes questions of data, too."""
        from heedful.models.language.loading import load_language_model

        if self._loaded is None or self._loaded[0] != device:
            self._loaded = device, load_language_model(self.given, device=device, **self.decided)
        return self._loaded[1]


class LanguageModels:
    """The family of models that generate."""

    title = (
        "a language model or translator: a Hugging Face folder or id whose class generates (...ForCausalLM, ...MTModel)"
    )

    def claims(self, what: str | Path) -> bool:
        """Only what is here: of an id that was never fetched nobody knows what it is."""
        from heedful.models.huggingface.kinds import GENERATES

        if not CHECKPOINTS.claims(what):
            return False
        where = Path(str(what).removeprefix(PREFIX).partition("?")[0])
        try:
            config = json.loads((where / "config.json").read_text(encoding="utf-8")) if locate.is_dir(where) else {}
        except (OSError, ValueError, RecursionError):
            return False
        named = config.get("architectures") if isinstance(config, dict) else None
        return isinstance(named, list) and bool(named) and str(named[0]).endswith(GENERATES)

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        where, _, told = str(what).removeprefix(PREFIX).partition("?")
        options.pop("hash_file", None)
        given = (json.loads(told) if told else {}) | options
        for name, use in (("labels", "--say and --instead name what to explain"), ("query", "its prompt is one text")):
            if given.pop(name, None):
                raise Mistake(f"{where} is a language model, which has no {name}: {use}.")
        if unknown := sorted(set(given) - set(OPTIONS)):
            raise Mistake(f"{unknown[0]!r} is not an option of a language model. They are: {', '.join(OPTIONS)}.")
        return LanguageModelSource(where, given)


LANGUAGE_MODELS: ModelFamily = LanguageModels()
