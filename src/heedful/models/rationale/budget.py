"""A sparse selection with a budget, and neighbours that are alike: fusedmax with room for more than one word.

    mu = argmin_m 1/2 ||m - s||^2 + coherence sum_t |m_t+1 - m_t|     over 0 <= m_t <= 1, sum_t m_t <= B

Niculae & Blondel 2017 have this for distributions (fusedmax; without coherence it is sparsemax, Martins & Astudillo
2016); the box and the budget in place of the simplex are those of SPECTRA (Guerreiro & Martins 2021), so that a
selection of B words is a corner. As there it is two steps: the proximal operator of total variation, then the
projection without it (their proposition 2). Both are exact, and so are their gradients: the first averages within each
segment of equal values, the second takes away the mean over what is neither 0 nor 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]


def select_budget(scores: Tensor, mask: Tensor, budget: Tensor, coherence: float = 0.0) -> Tensor:
    """mu (batch, length), 0 where mask is False; budget (batch,). Words stand side by side in a text."""
    if coherence:
        scores = fuse(scores, mask, coherence)
    chosen: Tensor = _Capped.apply(scores, mask, budget)  # type: ignore[no-untyped-call]
    return chosen


def fuse(scores: Tensor, mask: Tensor, coherence: float) -> Tensor:
    """The proximal operator of coherence sum_t |s_t+1 - s_t| over the words of each text."""
    fused: Tensor = _Fused.apply(scores, mask, coherence)  # type: ignore[no-untyped-call]
    return fused


class _Capped(torch.autograd.Function):
    """clip(s - tau, 0, 1) with the least tau >= 0 for which the sum is within the budget."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        s = scores.masked_fill(~mask, -torch.inf)
        budget = budget.to(s)
        low = torch.zeros_like(budget)
        high = scores.masked_fill(~mask, 0.0).amax(1).clamp(min=0)
        for _ in range(60):  # by halves: to the last bit of what matters
            middle = (low + high) / 2
            above = (s - middle.unsqueeze(1)).clamp(0, 1).sum(1) > budget
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        full = s.clamp(0, 1).sum(1) > budget  # (batch,): the budget binds
        tau = torch.where(full, high, 0.0).unsqueeze(1)
        mu = (s - tau).clamp(0, 1)
        between = (mu > 0) & (mu < 1)
        ctx.save_for_backward(between, full)
        return mu

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        between, full = ctx.saved_tensors
        inside = grads[0] * between
        mean = inside.sum(1, keepdim=True) / between.sum(1, keepdim=True).clamp(min=1)
        return inside - mean * between * full.unsqueeze(1), None, None


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, coherence: float) -> Tensor:
        fused, segment = scores.detach().double().cpu().numpy().copy(), np.zeros(scores.shape, dtype=np.int64)
        words = mask.cpu().numpy()
        for row in range(len(fused)):
            there = words[row]
            fused[row, there] = total_variation(fused[row, there], coherence)
            changed = np.diff(fused[row], prepend=np.nan) != 0
            segment[row] = np.cumsum(changed | ~there | ~np.roll(there, 1)) - 1
        ctx.save_for_backward(torch.from_numpy(segment).to(scores.device), mask)
        return torch.from_numpy(fused).to(scores) * mask

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        segment, mask = ctx.saved_tensors
        given = grads[0] * mask
        total = torch.zeros_like(given).scatter_add(1, segment, given)
        count = torch.zeros_like(given).scatter_add(1, segment, mask.to(given))
        return (total / count.clamp(min=1)).gather(1, segment) * mask, None, None


def total_variation(y: Floats, weight: float) -> Floats:
    """argmin_x 1/2 ||x - y||^2 + weight sum_t |x_t+1 - x_t|, exactly (Condat 2013, "A direct algorithm for 1D total
    variation denoising", his names)."""
    n = len(y)
    x = np.empty(n)
    if n == 0:
        return x
    values: list[float] = y.tolist()
    k = k0 = k_plus = k_minus = 0
    u_min, u_max = weight, -weight
    v_min, v_max = values[0] - weight, values[0] + weight
    while True:
        while k == n - 1:
            if u_min < 0:
                x[k0 : k_minus + 1] = v_min
                k0 = k = k_minus = k_minus + 1
                v_min, u_min = values[k], weight
                u_max = v_min + u_min - v_max
            elif u_max > 0:
                x[k0 : k_plus + 1] = v_max
                k0 = k = k_plus = k_plus + 1
                v_max, u_max = values[k], -weight
                u_min = v_max + u_max - v_min
            else:
                x[k0:] = v_min + u_min / (k - k0 + 1)
                return x
        u_min += values[k + 1] - v_min
        if u_min < -weight:
            x[k0 : k_minus + 1] = v_min
            k0 = k = k_minus = k_plus = k_minus + 1
            v_min, v_max = values[k], values[k] + 2 * weight
            u_min, u_max = weight, -weight
            continue
        u_max += values[k + 1] - v_max
        if u_max > weight:
            x[k0 : k_plus + 1] = v_max
            k0 = k = k_minus = k_plus = k_plus + 1
            v_max, v_min = values[k], values[k] - 2 * weight
            u_min, u_max = weight, -weight
            continue
        k += 1
        if u_min >= weight:
            k_minus = k
            v_min += (u_min - weight) / (k_minus - k0 + 1)
            u_min = weight
        if u_max <= -weight:
            k_plus = k
            v_max += (u_max + weight) / (k_plus - k0 + 1)
            u_max = -weight
