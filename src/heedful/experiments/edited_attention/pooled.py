"""A batch observed in a model that pools by attention: other weights cost one matrix product.

Only real words are kept, moved to the front, and their states are projected on the decoder at once:
decode(h, alpha) = readout(sum_t alpha_t project(h_t)) (see `Decoder`), so a question about another alpha costs a
product with (words, outputs) instead of (words, hidden).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from heedful.experiments.edited_attention.observe import Level, Observed, common_fields, real_words_first, to_front
from heedful.experiments.framework.experiment import Ints
from heedful.models.attentive.classifier import AttentiveClassifier, Decoder
from heedful.models.attentive.hierarchical import HierarchicalOutput
from heedful.models.network import Network
from heedful.records import Batch


@dataclass(frozen=True, slots=True, eq=False)
class PooledStates(Observed):
    decoder: Decoder = field(kw_only=True)  # float64
    projected: Tensor = field(kw_only=True)  # (B, T, outputs or features)
    query: Tensor | None = field(kw_only=True)  # (B, hidden)
    candidates: Tensor | None = field(kw_only=True)  # (B, labels) bool
    # (B, T) where words that are alike are one, their weight together; alpha is that of the one
    merged: Tensor | None = field(kw_only=True, default=None)

    @property
    def own(self) -> Tensor:
        """The model's attention as a distribution over these words: (B, T)."""
        return self.alpha if self.merged is None else self.merged

    @property
    def y(self) -> Tensor:
        return self.decode(self.own.unsqueeze(1)).squeeze(1)

    @property
    def theta(self) -> nn.Linear | None:
        """The decoder's map of the context where it is all of the decoder: then logits are linear in the weights."""
        return self.decoder.theta

    def decode(self, alphas: Tensor) -> Tensor:
        return self.readout(alphas @ self.projected)

    def readout(self, contexts: Tensor) -> Tensor:
        """Projected context vectors (B, n, outputs or features) -> probabilities (B, n, labels)."""
        return self.link.probabilities(self.decoder.readout(contexts, self.query, self.candidates))

    def erase_along(self, order: Tensor) -> Tensor:
        """All prefixes of an order are two running sums, from the last item to the first: of alpha_t project(h_t)
        and of alpha_t. Summed from the end nothing is lost to a weight that is large and gone."""
        weights = self.alpha.gather(1, order)  # (B, T)
        states = self.projected.gather(1, order.unsqueeze(-1).expand_as(self.projected))
        left = after(weights).unsqueeze(-1)  # (B, T, 1)
        context = after(weights.unsqueeze(-1) * states) / torch.where(left > 0, left, 1.0)  # (B, T, features)
        none = (weights.cumsum(1) <= 0).unsqueeze(-1)  # (B, T, 1): what is gone had no weight
        q = torch.where(none, self.y.unsqueeze(1), self.readout(context))
        return q.masked_fill(left <= 0, torch.nan)

    def shortened(self) -> Self:
        """Without the columns that are padding in every text."""
        width = int(self.n_words.max(initial=0))
        merged = None if self.merged is None else self.merged[:, :width]
        return replace(
            self,
            projected=self.projected[:, :width],
            alpha=self.alpha[:, :width],
            real=self.real[:, :width],
            merged=merged,
        )

    def arithmetic(self, row: int = 0, digits: int = 7) -> dict[str, Any]:
        """What it takes to ask about another attention where there is no torch (report/attention.js):

            logits = W2 tanh(z) + b2, or z where the readout is linear;   z = bias + sum_t alpha_t projected_t

        As JSON values, rounded to so many digits: `link` by name, `projected` (words, features), `bias` (features,),
        and of a readout with a query `W2`, `b2` and the `candidates` (labels,).
        """
        real, decoder = self.real[row], self.decoder
        bias = decoder.first.bias
        if decoder.W2 is not None and decoder.Wq is not None:
            assert self.query is not None
            bias = bias + decoder.Wq(self.query[row])
        last = {} if decoder.W2 is None else {"W2": decoder.W2.weight, "b2": decoder.W2.bias}
        numbers = {"projected": self.projected[row][real], "bias": bias, **last}
        return {
            "link": self.link.name,
            **{name: round_to_digits(value, digits) for name, value in numbers.items()},
            "candidates": None if self.candidates is None else self.candidates[row].tolist(),
        }

    @classmethod
    def observer(cls, network: Network, level: Level = "word") -> Callable[[Ints, Batch], PooledStates]:
        """Of the states of words, or of sentences. The decoder is copied to float64 once."""
        assert isinstance(network, AttentiveClassifier)
        decoder = deepcopy(network.decoder).double().cpu().requires_grad_(False)

        @torch.no_grad()
        def observe(examples: Ints, batch: Batch) -> PooledStates:
            output = network(batch)
            alpha, mask = output.alpha, batch.passage.mask
            if level == "sentence":
                assert isinstance(output, HierarchicalOutput)
                alpha, mask = output.alpha_sentences, output.sentences.mask
            front, real = real_words_first(mask)
            projected = decoder.project(output.h.cpu().double())  # (B, length, outputs or features)
            spread = front.unsqueeze(-1).expand(-1, -1, projected.shape[-1]).cpu()
            return cls(
                *common_fields(network, examples, output.predicted, to_front(alpha, front, real), real),
                level=level,
                decoder=decoder,
                projected=projected.gather(1, spread) * real.cpu().unsqueeze(-1),
                query=None if output.query is None else output.query.double().cpu(),
                candidates=None if batch.candidates is None else batch.candidates.cpu(),
            )

        return observe


def round_to_digits(values: Tensor, digits: int) -> Any:
    """As nested lists: seven digits are what float32 has, and half of what JSON would take for float64."""
    if values.dim() == 0:
        return float(f"{float(values):.{digits}g}")
    return [round_to_digits(one, digits) for one in values]


def after(values: Tensor) -> Tensor:
    """The sum of what comes after each place: (B, T, ...) -> (B, T, ...)."""
    sums = values.flip(1).cumsum(1).flip(1)  # of a place and what comes after it
    return torch.cat([sums[:, 1:], torch.zeros_like(sums[:, :1])], 1)
