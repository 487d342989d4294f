"""The HardKuma distribution (Bastings et al. 2019, section 3.1): a gate that is often exactly 0 or exactly 1.

    K ~ Kumaraswamy(a, b),  F_K(k) = 1 - (1 - k^a)^b
    T = l + (r - l) K,      stretched from (0, 1) to (l, r), l < 0 < 1 < r
    H = min(1, max(0, T)),  rectified

so P(H = 0) = F_K(-l / (r - l)), P(H = 1) = 1 - F_K((1 - l) / (r - l)), and between them H has the density of T. A
sample is K = (1 - u^(1/b))^(1/a) of a uniform u, through which gradients flow. All is computed in logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

STRETCH = (-0.1, 1.1)  # (l, r), as published
LEAST = 1e-3  # of u, and of 1 - u: farther out a sample's gradient is no number


@dataclass(frozen=True, slots=True)
class HardKuma:
    """One gate for each number of `a` and `b`, both above 0."""

    a: Tensor
    b: Tensor
    low: float = STRETCH[0]
    high: float = STRETCH[1]

    def cdf(self, z: float) -> Tensor:
        """P(T <= z), of the stretched variable: F_K((z - l) / (r - l))."""
        k = (z - self.low) / (self.high - self.low)
        return -torch.expm1(self._log_tail(k))

    def density(self, z: Tensor) -> Tensor:
        """Of T at z, which is that of H between 0 and 1: a b k^(a-1) (1 - k^a)^(b-1) / (r - l)."""
        log_k = ((z - self.low) / (self.high - self.low)).log()
        log_rest = torch.log(-torch.expm1(self.a * log_k))  # log(1 - k^a)
        log_density = self.a.log() + self.b.log() + (self.a - 1) * log_k + (self.b - 1) * log_rest
        return log_density.exp() / (self.high - self.low)

    @property
    def zero(self) -> Tensor:
        """P(H = 0)."""
        return self.cdf(0.0)

    @property
    def one(self) -> Tensor:
        """P(H = 1)."""
        return self._log_tail((1 - self.low) / (self.high - self.low)).exp()

    def sample(self, u: Tensor) -> Tensor:
        """H, of uniform numbers u."""
        u = LEAST + (1 - 2 * LEAST) * u
        log_k = torch.log(-torch.expm1(u.log() / self.b)) / self.a
        return (self.low + (self.high - self.low) * log_k.exp()).clamp(0.0, 1.0)

    def _log_tail(self, k: float) -> Tensor:
        """log P(K > k) = b log(1 - k^a)."""
        return self.b * torch.log(-torch.expm1(self.a * math.log(k)))


def expected_share(p: Tensor, mask: Tensor) -> Tensor:
    """E[L0] / n, where a gate of each of n words is open with probability p: (batch, length) -> (batch,)."""
    return (p * mask).sum(1) / mask.sum(1).clamp(min=1)


def expected_changes(p: Tensor, mask: Tensor) -> Tensor:
    """The expected fused lasso over n: how often of two neighbours one is selected and one is not, (batch,).

    P(z_t = 0) P(z_t+1 != 0) + P(z_t != 0) P(z_t+1 = 0), because gates are independent given the text (Bastings et al.
    2019, section 3.2). Lei et al. 2016 call it coherence.
    """
    both = mask[:, :-1] & mask[:, 1:]
    before, after = p[:, :-1], p[:, 1:]
    return ((before * (1 - after) + (1 - before) * after) * both).sum(1) / mask.sum(1).clamp(min=1)
