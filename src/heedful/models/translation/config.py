"""What a translator is made of and how it is trained, typed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from heedful.config import Config, DataOptions, EncoderName, Seed, Size
from heedful.errors import one_of
from heedful.registry import STEP_ATTENTIONS

StepAttentionName = Annotated[str, AfterValidator(STEP_ATTENTIONS.check)]


class TranslatorConfig(Config):
    """An encoder, an attention and a decoder. Sizes are for corpora of some ten thousand sentences."""

    encoder: EncoderName = "bilstm"
    attention: StepAttentionName = "additive"
    decoder: Literal["lstm", "gru"] = "lstm"
    input_feeding: bool = False  # the decoder reads what it attended to at its last step, too (Luong 2015, 3.3)
    embedding_dim: Size = 128
    hidden_dim: int = Field(default=128, ge=4, le=65_536, multiple_of=4)
    dropout: float = Field(default=0.2, ge=0, lt=1)  # of embeddings and of what the output is read from
    pieces: int | None = Field(default=None, ge=10, le=1_000_000)  # BPE with so many pieces; None: whole words
    min_count: int = Field(default=1, ge=1, lt=2**63)  # of words: how often one must occur to be known


class TranslatorTraining(Config):
    """Adam, teacher forcing; the epoch with the least perplexity on dev is kept."""

    epochs: int = Field(default=20, ge=1, le=1_000_000)
    batch_size: int = Field(default=64, ge=1, le=1_000_000)  # sentences
    learning_rate: float = Field(default=2e-3, gt=0, le=1e6)
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)  # Szegedy et al. 2016, section 7
    clip: float = Field(default=1.0, gt=0)
    patience: int = Field(default=3, ge=1, le=1_000_000)  # epochs without a better one, after which it stops
    halve_rate: bool = True  # after each epoch that was not the best


class TranslationRun(Config):
    """One training of a translator, as its folder tells it."""

    dataset: str
    model: TranslatorConfig = TranslatorConfig()
    training: TranslatorTraining = TranslatorTraining()
    data: DataOptions = DataOptions()
    seed: Seed = 0


def sort_translation(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by their names, each in its part."""
    parts: dict[str, type[Config]] = {"model": TranslatorConfig, "training": TranslatorTraining, "data": DataOptions}
    found: dict[str, Any] = {part: {} for part in parts}
    for name, value in settings.items():
        part = next((part for part, fields in parts.items() if name in fields.model_fields), None)
        if part is None:
            raise one_of("setting of a translator", name, sorted({n for f in parts.values() for n in f.model_fields}))
        found[part][name] = value
    return found
