"""States from which their words can be told (Tutek & Snajder 2020): cross-entropy + lambda masked language modelling.

Of each text some words are hidden, and their states, made from the others, have to tell them:

    L = cross-entropy(whole text) - lambda mean over hidden t of log p(w_t | h_t of the text with words hidden)
    p(w | h) = softmax(E h)_w

with the embeddings E of the network itself, so that nothing is learnt that is thrown away; states and embeddings need
one size. The labels are predicted from the text as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config
from heedful.data.text.batching import Encoded
from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveClassifier, AttentiveOutput
from heedful.models.attentive.hierarchical import HierarchicalClassifier
from heedful.models.network import Trainable
from heedful.models.objectives.objective import Loss, WithTerm
from heedful.records import Batch, Tokens


class MaskedWordsOptions(Config):
    lambda_: float = Field(default=1.0, ge=0)
    share: float = Field(default=0.15, gt=0, le=1)  # of the words, each by itself (Devlin et al. 2019)


class MaskedWords(WithTerm):
    config = MaskedWordsOptions
    version = "1"

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:
        require_word_states(network, "masked_words")
        told: Any = network

        def term(output: Any, batch: Batch) -> Tensor:
            replacement = batch.passage.reserved.replacement
            assert replacement is not None, "our vocabularies have an unknown word"
            hidden = draw_hidden(batch.passage, options.share, network.module.training)  # (batch, length)
            ids = batch.passage.ids.masked_fill(hidden, replacement)
            h = told.learn(replace(batch, passage=replace(batch.passage, ids=ids))).h
            cost = word_surprise(h, network.embedding.weight, batch.passage.ids, hidden)  # (batch,)
            total: Tensor = options.lambda_ * cost.sum()
            return total

        return term


def draw_hidden(tokens: Tokens, share: float, training: bool) -> Tensor:
    """The words to hide, (batch, length); none that is unknown anyway. In training chance is that of (seed, epoch)
    (`training.dropout_of`); dev is always asked about the same words."""
    generator = None if training else torch.Generator().manual_seed(0)
    drawn = torch.rand(tokens.ids.shape, generator=generator).to(tokens.ids.device) < share
    return drawn & tokens.mask & (tokens.ids != tokens.reserved.unknown)


def word_surprise(h: Tensor, embeddings: Tensor, ids: Tensor, hidden: Tensor) -> Tensor:
    """The mean over hidden words of -log softmax(E h_t) at the word itself: (batch,), 0 where none is hidden."""
    at, _ = hidden.nonzero(as_tuple=True)  # (hidden words,) the text of each
    surprise = F.cross_entropy(h[hidden] @ embeddings.T, ids[hidden], reduction="none")  # (hidden words,)
    summed = surprise.new_zeros(len(ids)).index_add(0, at, surprise)
    return summed / hidden.sum(1).clamp(min=1)


MASKED_WORDS = MaskedWords()


# States that stay near their words (Tutek & Snajder 2020): cross-entropy + lambda mean over t of ||h_t - e_t||_2.
#
# A weight on a state is read as a weight on its word; the farther the state has moved from the word's embedding e_t,
# the less that is so. States and embeddings need one size.


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
