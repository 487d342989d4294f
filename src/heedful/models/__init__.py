"""embed -> encode -> attend -> decode: the models whose explanations are put on trial."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from heedful.config import ModelConfig
from heedful.errors import one_of
from heedful.models.attention import Additive, Attention, Dot, General, Uniform
from heedful.models.classifier import AttentiveClassifier, Output
from heedful.models.encoders import CNN, Average, BiLSTM, Encoder, Transformer

ENCODERS: dict[str, Callable[[int, int], Encoder]] = {
    "bilstm": BiLSTM,
    "cnn": CNN,
    "average": Average,
    "transformer": Transformer,
}
ATTENTIONS: dict[str, Callable[[int, bool], Attention]] = {
    "additive": Additive,
    "dot": Dot,
    "general": General,
    "uniform": Uniform,
}


def build(
    config: ModelConfig, n_words: int, n_labels: int, has_query: bool = False, seed: int = 0
) -> AttentiveClassifier:
    """A fresh model, its weights drawn from `seed` without touching the global generator."""
    if config.encoder not in ENCODERS:
        raise one_of("encoder", config.encoder, list(ENCODERS))
    if config.attention not in ATTENTIONS:
        raise one_of("attention", config.attention, list(ATTENTIONS))
    encoder = ENCODERS[config.encoder]
    if config.encoder == "average":
        encoder = partial(Average, activation=config.activation)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AttentiveClassifier(
            n_words=n_words,
            dim=config.embedding_dim,
            hidden=config.hidden_dim,
            n_labels=n_labels,
            encoder=encoder,
            attention=ATTENTIONS[config.attention],
            has_query=has_query,
        )


__all__ = ["ATTENTIONS", "ENCODERS", "AttentiveClassifier", "Output", "build"]
