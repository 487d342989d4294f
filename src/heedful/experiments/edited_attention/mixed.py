"""A batch observed in a model that mixes what is read from single words, p = sum_t alpha_t p(. | h_t) (latent.py).

As in `PooledStates` other weights cost one matrix product, and what the weights are applied to is not a projection of
states but the probabilities of each word by itself. The *probabilities* are linear in the attention, not the logits:
so the exact adversary of two labels has another slab, and the smallest flipping set is a sort for any number of labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from heedful.experiments.adversarial.exact import (
    LN2,
    Adversary,
    Floats,
    exact_adversary,
    exact_mixture_adversary,
    farthest_in_slab,
)
from heedful.experiments.edited_attention.observe import Level, Observed
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.framework.experiment import Ints
from heedful.models.link import LOG_ODDS
from heedful.models.network import Network
from heedful.records import Batch


@dataclass(frozen=True, slots=True, eq=False)
class MixedStates(PooledStates):
    """`projected` are the probabilities p(c | h_t), (B, T, labels)."""

    nothing: Tensor = field(kw_only=True)  # (B, labels) what is said where no word has weight

    @property
    def theta(self) -> nn.Linear | None:
        return None

    def readout(self, contexts: Tensor) -> Tensor:
        """Mixed probabilities (B, n, labels), of sum 1 if the weights have it: of other weights the shares."""
        total = contexts.sum(-1, keepdim=True)
        return torch.where(total > 0, contexts / torch.where(total > 0, total, 1.0), self.nothing.unsqueeze(1))

    @classmethod
    def observer(cls, network: Network, level: Level = "word") -> Callable[[Ints, Batch], PooledStates]:
        pooled = PooledStates.observer(network, level)

        @torch.no_grad()
        def observe(examples: Ints, batch: Batch) -> MixedStates:
            seen = pooled(examples, batch)
            alone = PooledStates.readout(seen, torch.cat([seen.projected, 0 * seen.projected[:, :1]], 1))
            given = {name: getattr(seen, name) for name in PooledStates.__dataclass_fields__}
            words, nothing = alone[:, :-1], alone[:, -1]
            return cls(**given | {"projected": words * seen.real.unsqueeze(-1)}, nothing=nothing)

        return observe


def two_label_adversary(seen: Observed, epsilon: float | Floats) -> Adversary | None:
    """The exact answer where there are two labels and their logit, or their probability, is linear in attention."""
    if not isinstance(seen, PooledStates):
        return None
    alpha, real = seen.alpha.numpy(), seen.real.numpy()
    if isinstance(seen, MixedStates):
        two = seen.projected.shape[-1] == 2
        return exact_mixture_adversary(alpha, seen.projected[..., 1].numpy(), real, epsilon) if two else None
    if seen.theta is None or seen.link is not LOG_ODDS:
        return None
    return exact_adversary(alpha, seen.projected.squeeze(-1).numpy(), seen.theta.bias.item(), real, epsilon)


def mixture_bound(seen: MixedStates, epsilon: float) -> Floats:
    """No feasible distribution is farther: TVD <= epsilon keeps each label's probability within epsilon, and within
    one such slab the farthest is known: (B,)."""
    bound = np.full(len(seen.examples), LN2)
    some = np.flatnonzero(seen.n_words)
    if not len(some):
        return bound
    alpha, real, y = seen.alpha[some].numpy(), seen.real[some].numpy(), seen.y[some].numpy()
    for label in range(y.shape[1]):
        s, of_label = seen.projected[some, :, label].numpy(), y[:, label]
        best = farthest_in_slab(alpha, s, real, of_label - epsilon, of_label + epsilon)
        bound[some] = np.minimum(bound[some], LN2 - best.cost)
    return bound
