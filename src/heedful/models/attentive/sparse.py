"""Sparse attention: weights that are exactly 0 outside a support, which is part of the answer.

    sparsemax(z) = argmin_p ||p - z||^2                      over distributions p (Martins & Astudillo 2016)
    entmax(z)    = argmax_p p . z + H(p),   H(p) = 4/3 sum_t (p_t - p_t^{3/2})       (Peters et al. 2019, alpha = 1.5)

Both are solved exactly by sorting, in the package `entmax` of the latter's authors. softmax is the same with Shannon's
entropy for H, which no 0 maximises. The scores are those of additive or of dot attention. A word without weight has no
part in the context vector, so taking its weight away changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import entmax
import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function_unary

from heedful.models.attentive.attention import Additive, Dot

OUTSIDE = 4.0  # so far below the largest score nothing is in the support: that of sparsemax reaches 1, of entmax 2


def sparsemax(scores: Tensor, mask: Tensor) -> Tensor:
    """Over the last dimension where mask is True, exactly 0 elsewhere."""
    if has_torch_function_unary(scores):  # under a mode that holds gates constant (explainers/lrp/frozen.py)
        found: Tensor = handle_torch_function(sparsemax, (scores,), scores, mask)
        return found
    return _masked(entmax.sparsemax, scores, mask)


def entmax15(scores: Tensor, mask: Tensor) -> Tensor:
    """Over the last dimension where mask is True, exactly 0 elsewhere."""
    if has_torch_function_unary(scores):
        found: Tensor = handle_torch_function(entmax15, (scores,), scores, mask)
        return found
    return _masked(entmax.entmax15, scores, mask)


def _masked(mapping: Callable[..., Tensor], scores: Tensor, mask: Tensor) -> Tensor:
    """What is masked gets a score outside the support: low enough for 0, not so low that its square overflows."""
    if not scores.numel():
        return torch.zeros_like(scores)
    lowest = torch.finfo(scores.dtype).min
    largest = scores.detach().masked_fill(~mask, lowest).amax(-1, keepdim=True)  # (..., 1)
    return mapping(torch.where(mask, scores, largest - OUTSIDE), dim=-1) * mask


class AdditiveSparsemax(Additive):
    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return sparsemax(scores, mask)


class AdditiveEntmax(Additive):
    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return entmax15(scores, mask)


class DotSparsemax(Dot):
    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return sparsemax(scores, mask)


class DotEntmax(Dot):
    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return entmax15(scores, mask)
