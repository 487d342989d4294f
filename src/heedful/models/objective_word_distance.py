"""States that stay near their words (Tutek & Snajder 2020): cross-entropy + lambda mean over t of ||h_t - e_t||_2.

A weight on a state is read as a weight on its word; the farther the state has moved from the word's embedding e_t, the
less that is so. States and embeddings need one size.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from heedful.config import Config
from heedful.data.batching import Encoded
from heedful.errors import Mistake
from heedful.models.classifier import AttentiveClassifier, AttentiveOutput
from heedful.models.hierarchical import HierarchicalClassifier
from heedful.models.network import Trainable
from heedful.models.objectives import Loss, WithTerm
from heedful.records import Batch


class WordDistanceOptions(Config):
    lambda_: float = Field(default=1.0, ge=0)


class WordDistance(WithTerm):
    config = WordDistanceOptions
    version = "1"

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:
        require_word_states(network, "word_distance")

        def term(output: AttentiveOutput, batch: Batch) -> Tensor:
            cost: Tensor = options.lambda_ * word_distance(output.h, output.x, batch.passage.mask).sum()
            return cost

        return term


def word_distance(h: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    """h and x (batch, length, hidden), mask (batch, length) -> the mean over words of ||h_t - x_t||_2: (batch,)."""
    distance: Tensor = (h - x).norm(dim=-1)  # (batch, length); its gradient is 0 where both are equal
    return (distance * mask).sum(1) / mask.sum(1).clamp(min=1)


def require_word_states(network: Trainable, objective: str) -> None:
    """Refuse a network that does not have one state for each word, of the size of its embedding."""
    if not isinstance(network, AttentiveClassifier) or isinstance(network, HierarchicalClassifier):
        raise Mistake(
            f"{objective} ties the states that attention pools to words: it needs a flat model of heedful's own."
        )
    hidden, dim = network.decoder.first.in_features, network.embedding.embedding_dim
    if hidden != dim:
        raise Mistake(
            f"{objective} holds states against embeddings, which need one size: states have {hidden} numbers and "
            f"embeddings {dim}; set hidden_dim to {dim}."
        )


WORD_DISTANCE = WordDistance()
