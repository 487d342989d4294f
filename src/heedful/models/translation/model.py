"""What `heedful.load` returns of a translator of ours: a model that generates, and translates whole texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.data.prompts import LABELS
from heedful.errors import Mistake, short
from heedful.models.language.model import LanguageModel
from heedful.models.model import check_texts
from heedful.models.translation.config import TranslatorConfig
from heedful.models.translation.network import Translator
from heedful.models.translation.search import MOST, Translation, translate
from heedful.models.translation.text import TranslationText
from heedful.registry import ENCODERS, STEP_ATTENTIONS

TOGETHER = 64  # sources of one pass


@dataclass(frozen=True, slots=True)
class TranslationModel(LanguageModel):
    """Everything that is asked of a language model can be asked of it, too."""

    network: Translator  # type: ignore[assignment]
    text: TranslationText

    def translate(self, texts: Sequence[str], beam: int = 1, most: int = MOST) -> list[str]:
        """What it says of each source."""
        return [self.text.spell(said.ids) for said in self.search(texts, beam, most)]

    def search(self, texts: Sequence[str], beam: int = 1, most: int = MOST) -> list[Translation]:
        check_texts(texts, "text")
        for i, text in enumerate(texts):
            if not text.split():
                raise Mistake(f"text {i + 1} has no words: {short(text)}.")
        encoded = self.text.encode([self.text.split(text) for text in texts], "passage")
        order = np.argsort(encoded.lengths, kind="stable")
        found: dict[int, Translation] = {}
        for begin in range(0, len(order), TOGETHER):
            some = order[begin : begin + TOGETHER]
            passage = encoded.tokens(some).to(self.network.device)
            said = translate(self.network, passage, self.text.begins[0], beam, most)
            found |= dict(zip(some.tolist(), said, strict=True))
        return [found[i] for i in range(len(texts))]


def build_translator(config: TranslatorConfig, text: TranslationText, seed: int = 0) -> Translator:
    """Fresh weights, drawn from `seed` without touching the global generator."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Translator(
            len(text.vocabulary),
            config.embedding_dim,
            config.hidden_dim,
            ENCODERS.find(config.encoder),
            STEP_ATTENTIONS.find(config.attention),
            config.decoder,
            config.input_feeding,
            config.dropout,
            text.end,
        )


def as_model(name: str, network: Translator, text: TranslationText, seed: int = 0) -> TranslationModel:
    return TranslationModel(name, network, text, LABELS, "generation", seed)
