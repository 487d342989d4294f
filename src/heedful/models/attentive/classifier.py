"""The attentive classifier, as four public steps that can be called apart.

    embed (tokens)                      -> x       (batch, length, dim)      word embeddings
    encode(x, present)                  -> h       (batch, length, hidden)   contextual states
    attend(h, mask, query)              -> alpha   (batch, length)           weights, sum 1 over real words
    decode(h, alpha, query, candidates) -> logits  (batch, outputs)

Nothing mutates a batch or remembers anything between calls, so every experiment of the debate is an
argument: permuted attention is `decode(h, permuted)`, gradients start at a given `x`, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.models.attentive.attention import Attention
from heedful.models.attentive.encoders import Encoder
from heedful.models.link import link_of
from heedful.models.network import CAPABILITIES, Edit, Output, layer_number
from heedful.records import Batch, Tokens


@dataclass(frozen=True, slots=True)
class AttentiveOutput(Output):
    """Everything that one forward pass computed."""

    x: Tensor  # (batch, length, dim)
    h: Tensor  # (batch, length, hidden)
    alpha: Tensor  # (batch, length)
    x_query: Tensor | None = None  # (batch, query length, dim)
    query: Tensor | None = None  # (batch, hidden)

    @property
    def attentions(self) -> Tensor:
        """One layer, one head, one place that attends: (batch, 1, 1, 1, length)."""
        return self.alpha[:, None, None, None]

    def rows(self, which: Tensor, length: int) -> AttentiveOutput:
        """Some of the texts, their passages cut to a length that holds them."""
        x, h, alpha = (part[which, :length] for part in (self.x, self.h, self.alpha))
        of_query = (None if part is None else part[which] for part in (self.x_query, self.query))
        return AttentiveOutput(self.logits[which], self.link, x, h, alpha, *of_query)


class Decoder(nn.Module):
    """logits = theta . c + b, or W2 tanh(Wp c + Wq Q) where there is a query; c = sum_t alpha_t h_t.

    Both begin with a linear map of c, so `project` can be taken before the sum over words:
    readout(project(sum_t alpha_t h_t)) = readout(sum_t alpha_t project(h_t)). Experiments that decode the
    same states under many attentions use the right-hand side: its sum has few columns instead of `hidden`.
    """

    def __init__(self, hidden: int, outputs: int, has_query: bool) -> None:
        super().__init__()
        features = hidden // 2
        self.theta = None if has_query else nn.Linear(hidden, outputs)
        self.Wp = nn.Linear(hidden, features) if has_query else None
        self.Wq = nn.Linear(hidden, features, bias=False) if has_query else None
        self.W2 = nn.Linear(features, outputs) if has_query else None

    @property
    def first(self) -> nn.Linear:
        """The map of the context: theta, or Wp where there is a query."""
        first = self.theta or self.Wp
        assert first is not None
        return first

    def project(self, h: Tensor) -> Tensor:
        """The linear map without its bias: (..., hidden) -> (..., outputs or features)."""
        return h @ self.first.weight.T

    def readout(self, projected: Tensor, query: Tensor | None, candidates: Tensor | None = None) -> Tensor:
        """projected (batch, ..., features) -> logits (batch, ..., outputs); query and candidates by batch."""
        if self.theta is not None:
            return projected + self.theta.bias
        assert self.Wp is not None
        assert self.Wq is not None
        assert self.W2 is not None
        between = (1,) * (projected.dim() - 2)  # dimensions between batch and features
        asked = self.Wq(query)  # (batch, features)
        inner = projected + self.Wp.bias + asked.view(len(asked), *between, -1)
        logits: Tensor = self.W2(inner.tanh())
        if candidates is None:
            return logits
        allowed = candidates.view(len(candidates), *between, -1)
        return logits.masked_fill(~allowed, torch.finfo(logits.dtype).min)


@dataclass(frozen=True, slots=True)
class Dropout:
    """Shares of the numbers that are left out while training: see config.ModelConfig."""

    words: float = 0.0
    sentences: float = 0.0
    output: float = 0.0


NO_DROPOUT = Dropout()


class AttentiveClassifier(nn.Module):
    """The model of Jain & Wallace 2019, section 2, with or without a query: one code path for all tasks."""

    # not self_attends: one place attends, not every token
    can: ClassVar[frozenset[str]] = frozenset(CAPABILITIES) - {"self_attends", "generates", "compares", "selects"}

    def __init__(
        self,
        n_words: int,
        dim: int,
        hidden: int,
        n_labels: int,
        encoder: Callable[[int, int], Encoder],
        attention: Callable[[int, bool], Attention],
        has_query: bool = False,
        dropout: Dropout = NO_DROPOUT,
    ) -> None:
        super().__init__()
        self.dropout_words, self.dropout_output = nn.Dropout(dropout.words), nn.Dropout(dropout.output)
        self.n_labels = n_labels
        self.has_query = has_query
        self.embedding = nn.Embedding(n_words, dim, padding_idx=0)
        self.encoder = encoder(dim, hidden)
        self.query_encoder = encoder(dim, hidden) if has_query else None
        self.attention = attention(hidden, has_query)
        self.link = link_of(n_labels, has_query)
        self.decoder = Decoder(hidden, self.link.outputs(n_labels), has_query)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.weight.dtype

    @property
    def n_words(self) -> int:
        return self.embedding.num_embeddings

    @property
    def bytes_per_token(self) -> int:
        """Embeddings twice, gates or blocks, states."""
        weight, hidden = self.embedding.weight, self.decoder.first.in_features
        return weight.element_size() * (2 * weight.shape[1] + 8 * hidden)

    def embed(self, tokens: Tokens) -> Tensor:
        x: Tensor = self.embedding(tokens.ids)
        return x

    def encode(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.encoder(self.dropout_words(x), present)
        return h

    def encode_query(self, x_query: Tensor, present: Tensor) -> Tensor:
        """The query vector Q (batch, hidden) of a question or hypothesis."""
        assert self.query_encoder is not None
        states = self.query_encoder(self.dropout_words(x_query), present)
        return self.query_encoder.summary(states, present)

    def attend(self, h: Tensor, mask: Tensor, query: Tensor | None = None) -> Tensor:
        alpha: Tensor = self.attention(h, mask, query)
        return alpha

    def decode(self, h: Tensor, alpha: Tensor, query: Tensor | None = None, candidates: Tensor | None = None) -> Tensor:
        context = (alpha.unsqueeze(1) @ h).squeeze(1)  # (batch, hidden): sum_t alpha_t h_t
        context = self.dropout_output(context)
        return self.decoder.readout(self.decoder.project(context), query, candidates)

    def forward(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        alpha: Tensor | None = None,
        edit: Edit | None = None,
    ) -> AttentiveOutput:
        """The four steps in order; a step whose result is given is not taken. `edit` changes the attention."""
        query = None
        if self.has_query:
            assert batch.query is not None, "this model reads a query, and the batch has none"
            x_query = self.embed(batch.query) if x_query is None else x_query
            query = self.encode_query(x_query, batch.query.present)
        x = self.embed(batch.passage) if x is None else x
        h = self.encode(x, batch.passage.present)
        alpha = self.attend(h, batch.passage.mask, query) if alpha is None else alpha
        if edit is not None:
            alpha = edit(0, alpha[:, None, None])[:, 0, 0]  # one layer, one head, one place that attends
        logits = self.decode(h, alpha, query, batch.candidates)
        return AttentiveOutput(logits, self.link, x, h, alpha, x_query, query)

    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        layer_number(layer or 0, 1)
        return self(batch).attentions

    @property
    def module(self) -> AttentiveClassifier:
        """What holds the weights: itself."""
        return self

    def learn(self, batch: Batch, attention: bool = False) -> AttentiveOutput:
        """Attention is always told."""
        return self(batch)

    def __call__(self, batch: Batch, **given: Any) -> AttentiveOutput:
        """See `forward`."""
        output: AttentiveOutput = super().__call__(batch, **given)
        return output
