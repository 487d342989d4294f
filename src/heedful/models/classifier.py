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
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from heedful.models.attention import Attention
from heedful.models.encoders import Encoder
from heedful.records import Batch, Tokens

Of = Literal["logit", "probability"]


@dataclass(frozen=True, slots=True)
class Output:
    """Everything one forward pass computed."""

    x: Tensor  # (batch, length, dim)
    h: Tensor  # (batch, length, hidden)
    alpha: Tensor  # (batch, length)
    logits: Tensor  # (batch, 1) for two labels, (batch, labels) for more
    x_query: Tensor | None = None  # (batch, query length, dim)
    query: Tensor | None = None  # (batch, hidden)

    @property
    def probabilities(self) -> Tensor:
        return probabilities(self.logits)

    @property
    def predicted(self) -> Tensor:
        """The most probable label: (batch,)."""
        return self.probabilities.argmax(-1)

    def score(self, target: Tensor, of: Of = "logit") -> Tensor:
        return score(self.logits, target, of)

    def rows(self, which: Tensor, length: int) -> Output:
        """Some of the texts, their passages cut to a length that holds them."""
        x, h, alpha = (part[which, :length] for part in (self.x, self.h, self.alpha))
        of_query = (None if part is None else part[which] for part in (self.x_query, self.query))
        return Output(x, h, alpha, self.logits[which], *of_query)


def probabilities(logits: Tensor) -> Tensor:
    """(..., outputs) -> (..., labels). One logit z means two labels: [1 - sigmoid(z), sigmoid(z)]."""
    if logits.shape[-1] == 1:
        return torch.cat([(-logits).sigmoid(), logits.sigmoid()], dim=-1)
    return logits.softmax(-1)


def score(logits: Tensor, target: Tensor, of: Of = "logit") -> Tensor:
    """f_c, the number that is explained, for label c = target: (..., outputs), (...) -> (...).

    With two labels there is one logit z, the log-odds of label 1: f_1 = z and f_0 = -z.
    """
    if of == "probability":
        return probabilities(logits).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if logits.shape[-1] == 1:
        return logits.squeeze(-1) * (2 * target - 1)
    return logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)


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

    def project(self, h: Tensor) -> Tensor:
        """The linear map without its bias: (..., hidden) -> (..., outputs or features)."""
        first = self.theta or self.Wp
        assert first is not None
        return h @ first.weight.T

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


class AttentiveClassifier(nn.Module):
    """The model of Jain & Wallace 2019, section 2, with or without a query: one code path for all tasks."""

    can: ClassVar[frozenset[str]] = frozenset({"embed", "encode", "attention", "decode_with_attention"})

    def __init__(
        self,
        n_words: int,
        dim: int,
        hidden: int,
        n_labels: int,
        encoder: Callable[[int, int], Encoder],
        attention: Callable[[int, bool], Attention],
        has_query: bool = False,
    ) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.has_query = has_query
        self.embedding = nn.Embedding(n_words, dim, padding_idx=0)
        self.encoder = encoder(dim, hidden)
        self.query_encoder = encoder(dim, hidden) if has_query else None
        self.attention = attention(hidden, has_query)
        self.decoder = Decoder(hidden, 1 if n_labels == 2 and not has_query else n_labels, has_query)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def embed(self, tokens: Tokens) -> Tensor:
        x: Tensor = self.embedding(tokens.ids)
        return x

    def encode(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.encoder(x, present)
        return h

    def encode_query(self, x_query: Tensor, present: Tensor) -> Tensor:
        """The query vector Q (batch, hidden) of a question or hypothesis."""
        assert self.query_encoder is not None
        return self.query_encoder.summary(self.query_encoder(x_query, present), present)

    def attend(self, h: Tensor, mask: Tensor, query: Tensor | None = None) -> Tensor:
        alpha: Tensor = self.attention(h, mask, query)
        return alpha

    def decode(
        self, h: Tensor, alpha: Tensor, query: Tensor | None = None, candidates: Tensor | None = None
    ) -> Tensor:
        context = (alpha.unsqueeze(1) @ h).squeeze(1)  # (batch, hidden): sum_t alpha_t h_t
        return self.decoder.readout(self.decoder.project(context), query, candidates)

    def forward(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        alpha: Tensor | None = None,
    ) -> Output:
        """The four steps in order; a step whose result is given is not taken."""
        query = None
        if self.has_query:
            assert batch.query is not None, "this model reads a query, and the batch has none"
            x_query = self.embed(batch.query) if x_query is None else x_query
            query = self.encode_query(x_query, batch.query.present)
        x = self.embed(batch.passage) if x is None else x
        h = self.encode(x, batch.passage.present)
        alpha = self.attend(h, batch.passage.mask, query) if alpha is None else alpha
        logits = self.decode(h, alpha, query, batch.candidates)
        return Output(x=x, h=h, alpha=alpha, logits=logits, x_query=x_query, query=query)

    def __call__(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        alpha: Tensor | None = None,
    ) -> Output:
        output: Output = super().__call__(batch, x=x, x_query=x_query, alpha=alpha)
        return output
