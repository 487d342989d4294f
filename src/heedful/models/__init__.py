"""embed -> encode -> attend -> decode: the models whose explanations are put on trial."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from heedful.config import ModelConfig
from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveClassifier, Dropout
from heedful.models.attentive.hierarchical import HierarchicalClassifier
from heedful.models.attentive.imposed import Concatenated, ImposedClassifier
from heedful.models.attentive.latent import Latent, LatentClassifier
from heedful.models.network import Output
from heedful.models.rationale.classifier import RationaleClassifier
from heedful.registry import ATTENTIONS, ENCODERS, RATIONALES


def build(
    config: ModelConfig, n_words: int, n_labels: int, has_query: bool = False, seed: int = 0
) -> AttentiveClassifier:
    """A fresh model, its weights drawn from `seed` without touching the global generator."""
    encoder, attention = ENCODERS.find(config.encoder), ATTENTIONS.find(config.attention)
    kind: Callable[..., AttentiveClassifier] = HierarchicalClassifier if config.hierarchical else AttentiveClassifier
    if isinstance(attention, type) and issubclass(attention, Latent):
        if config.hierarchical:
            raise Mistake(f"attention {config.attention!r} chooses one word of a text: hierarchical must be false.")
        kind = LatentClassifier
    if config.imposed is not None:  # whose weights come later: from its base, or from the run's file
        kind = partial(ImposedClassifier, build(config.imposed, n_words, n_labels, has_query))
    made, hidden = _with_settings(encoder, config), config.hidden_dim
    if config.concatenate:
        made, hidden = partial(Concatenated, made), hidden + config.embedding_dim
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(
            n_words=n_words,
            dim=config.embedding_dim,
            hidden=hidden,
            n_labels=n_labels,
            encoder=made,
            attention=_with_settings(attention, config),
            has_query=has_query,
            dropout=Dropout(config.dropout_words, config.dropout_sentences, config.dropout_output),
        )


def build_network(
    config: ModelConfig, n_words: int, n_labels: int, has_query: bool = False, seed: int = 0
) -> AttentiveClassifier | RationaleClassifier:
    """The same, or a model that selects the words that it reads, where the configuration says so."""
    if config.rationale is None:
        return build(config, n_words, n_labels, has_query, seed)
    if has_query:
        raise Mistake("a model that selects its words reads one text, and these data have two: leave out rationale.")
    attention = ATTENTIONS.find(config.attention)
    if isinstance(attention, type) and issubclass(attention, Latent):
        raise Mistake(
            f"attention {config.attention!r} chooses one word, and rationale several: give another attention."
        )
    encoder = _with_settings(ENCODERS.find(config.encoder), config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return RationaleClassifier(
            n_words,
            config.embedding_dim,
            config.hidden_dim,
            n_labels,
            encoder,
            _with_settings(RATIONALES.find(config.rationale), config),
            attention=_with_settings(attention, config),
            dropout=Dropout(config.dropout_words, config.dropout_sentences, config.dropout_output),
        )


def _with_settings(part: Callable[..., Any], config: ModelConfig) -> Callable[..., Any]:
    """A part that names a setting of the configuration (`activation`) as its keyword is given it."""
    settings = {**dict(config), **dict(config.as_published)}
    names = set(inspect.signature(part).parameters) & set(settings)
    return partial(part, **{name: settings[name] for name in names}) if names else part


__all__ = ["ATTENTIONS", "ENCODERS", "AttentiveClassifier", "Output", "build", "build_network"]
