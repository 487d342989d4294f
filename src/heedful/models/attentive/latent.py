"""Attention as a latent choice of one word (Deng et al. 2018, "Latent alignment and variational attention").

    p(y | x) = sum_i alpha_i p(y | h_i)

Soft attention reads the mean state, p(y | sum_i alpha_i h_i). Here alpha_i is the probability that word i is the one
that is read, the prediction is the mean over what each choice would say, and a weight means what it seems to mean: the
word's share of the prediction is alpha_i p(y | h_i). One choice for a text has as many values as there are words, so
the sum is taken exactly, and cross-entropy of it is the marginal likelihood. The variational bound, for models whose
choices cannot all be tried, is the objective `variational` (objective_variational.py).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.models.attentive.attention import Additive
from heedful.models.attentive.classifier import AttentiveClassifier


class Latent(Additive):
    """The scores of additive attention; a network that is built with it is a `LatentClassifier`."""


class Variational(Latent):
    """The same, and the network has an inference network for the objective `variational`."""


class Posterior(nn.Module):
    """The inference network q(i | x, y): additive attention with the label as its query.

    Deng et al. give it an encoder of its own; here it reads the states that the model reads.
    """

    def __init__(self, n_labels: int, hidden: int) -> None:
        super().__init__()
        self.label = nn.Embedding(n_labels, hidden)
        self.attention = Additive(hidden, has_query=True)

    def forward(self, h: Tensor, mask: Tensor, labels: Tensor, query: Tensor | None) -> Tensor:
        """h (batch, length, hidden), labels (batch,), query (batch, hidden) -> q (batch, length)."""
        asked = self.label(labels)  # (batch, hidden)
        q: Tensor = self.attention(h, mask, asked if query is None else asked + query)
        return q


class LatentClassifier(AttentiveClassifier):
    """Mixes what is read from single words; it does not pool their states."""

    can: ClassVar[frozenset[str]] = AttentiveClassifier.can - {"pools_by_attention"}

    def __init__(self, *, hidden: int, n_labels: int, **sizes: Any) -> None:
        super().__init__(hidden=hidden, n_labels=n_labels, **sizes)
        self.posterior = Posterior(n_labels, hidden) if isinstance(self.attention, Variational) else None

    def decode_words(self, h: Tensor, query: Tensor | None, candidates: Tensor | None) -> Tensor:
        """log p(y | h_i) for each word i: (batch, length, hidden) -> (batch, length, labels)."""
        projected = self.decoder.project(self.dropout_output(h))
        return self.link.log_probabilities(self.decoder.readout(projected, query, candidates))

    def decode(self, h: Tensor, alpha: Tensor, query: Tensor | None = None, candidates: Tensor | None = None) -> Tensor:
        return self.mix_words(self.decode_words(h, query, candidates), alpha, query, candidates)

    def mix_words(self, log_p: Tensor, alpha: Tensor, query: Tensor | None, candidates: Tensor | None) -> Tensor:
        """Logits of the mixture: (batch, length, labels) -> (batch, outputs). Without any weight, of p(y | 0)."""
        empty = log_p.new_zeros(len(log_p), 1, self.decoder.first.in_features)
        nothing = self.decode_words(empty, query, candidates)  # (batch, 1, labels)
        unread = (alpha.sum(1, keepdim=True) <= 0).to(alpha)  # (batch, 1): the weight of nothing
        return self.link.logits(mix(torch.cat([log_p, nothing], dim=1), torch.cat([alpha, unread], dim=1)))

    def decode_context(self, h: Tensor, alpha: Tensor, query: Tensor | None, candidates: Tensor | None) -> Tensor:
        """log p(y | sum_i alpha_i h_i), what soft attention would say: (batch, labels)."""
        return self.link.log_probabilities(super().decode(h, alpha, query, candidates))


def mix(log_p: Tensor, alpha: Tensor) -> Tensor:
    """log sum_i alpha_i p_i: (batch, length, labels), (batch, length) -> (batch, labels)."""
    log_alpha = torch.where(alpha > 0, alpha, 1.0).log().masked_fill(alpha <= 0, -torch.inf)
    return torch.logsumexp(log_p + log_alpha.unsqueeze(-1), dim=1)
