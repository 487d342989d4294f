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
from heedful.data.batching import Encoded
from heedful.models.network import Trainable
from heedful.models.objective_word_distance import require_word_states
from heedful.models.objectives import Loss, WithTerm
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
