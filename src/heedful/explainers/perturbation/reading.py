"""What is known of a batch of texts before one of their words is changed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.models.attentive.encoders import reversal, reverse_rows


@dataclass(frozen=True, slots=True)
class TextsRead:
    """How the model read the texts, and what each of their words is changed to."""

    x: Tensor  # (batch, length, dim)
    h: Tensor  # (batch, length, hidden)
    present: Tensor  # (batch, length)
    mask: Tensor  # (batch, length)
    query: Tensor | None  # (batch, hidden)
    new: Tensor | None  # (batch, length, dim): word t is embedded as new_t; None: it is deleted
    # (batch, length) the words that are changed, None: all. At each position, and in either direction, those of the
    # first texts: texts that have a word there are followed by those that have not.
    changing: Tensor | None = None

    def turned(self) -> TextsRead:
        """Each text turned around within its own length, where `present` is the same."""
        index = reversal(self.present)  # (batch * length,)
        x, h = reverse_rows(self.x, index), reverse_rows(self.h, index)
        mask = reverse_rows(self.mask.unsqueeze(-1), index).squeeze(-1)
        new = None if self.new is None else reverse_rows(self.new, index)
        changing = self.changing
        if changing is not None:
            changing = reverse_rows(changing.unsqueeze(-1), index).squeeze(-1)
        return TextsRead(x, h, self.present, mask, self.query, new, changing)


# Attention over some of the words, in a form that can be put together.
#
# The decoder begins with a linear map, so a text's context is needed only as
#
#     sum_s alpha_s project(h_s) = A / Z,   Z = sum_s exp(phi_s - m),   A = sum_s exp(phi_s - m) project(h_s)
#
# with m the largest phi_s. For two disjoint sets of words both sums simply add, once they have the same m.
# Changing one word then costs only the positions whose state changes: all other sums are kept.


@dataclass(frozen=True, slots=True)
class Partial:
    """m, Z and A of some words; no word at all is m = the lowest number, Z = 0, A = 0."""

    m: Tensor  # (...,)
    Z: Tensor  # (...,)
    A: Tensor  # (..., features)

    def __getitem__(self, index: slice | tuple[slice, ...]) -> Partial:
        return Partial(self.m[index], self.Z[index], self.A[index])

    def context(self) -> Tensor:
        """sum_s alpha_s project(h_s): (..., features); zero where there is no word to attend to."""
        Z = self.Z.unsqueeze(-1)
        return torch.where(Z > 0, self.A / Z.clamp(min=torch.finfo(Z.dtype).tiny), 0.0)


def partial(phi: Tensor, projected: Tensor, mask: Tensor) -> Partial:
    """The words of the last dimension, where mask: phi, mask (..., n), projected (..., n, features)."""
    phi = phi.masked_fill(~mask, torch.finfo(phi.dtype).min)
    m = phi.amax(-1)  # (...,)
    w = (phi - m.unsqueeze(-1)).exp() * mask  # (..., n)
    return Partial(m, w.sum(-1), (w.unsqueeze(-2) @ projected).squeeze(-2))


def single(phi: Tensor, projected: Tensor, mask: Tensor) -> Partial:
    """Each word by itself: phi, mask (...,), projected (..., features)."""
    low = torch.finfo(phi.dtype).min
    return Partial(phi.masked_fill(~mask, low), mask.to(phi.dtype), projected * mask.unsqueeze(-1))


def merge(a: Partial, b: Partial) -> Partial:
    """The words of a and of b together."""
    m = torch.maximum(a.m, b.m)
    of_a, of_b = (a.m - m).exp(), (b.m - m).exp()
    return Partial(m, of_a * a.Z + of_b * b.Z, of_a.unsqueeze(-1) * a.A + of_b.unsqueeze(-1) * b.A)


def running(each: Partial) -> Partial:
    """The words up to and with t, for every t of the second dimension: log2(length) doubling steps.

    A plain cumulative sum of exp(phi - max) would lose the words before a far more attended one.
    """
    length, step = each.m.shape[1], 1
    while step < length:
        joined = merge(each[:, :-step], each[:, step:])
        each = Partial(
            torch.cat([each.m[:, :step], joined.m], 1),
            torch.cat([each.Z[:, :step], joined.Z], 1),
            torch.cat([each.A[:, :step], joined.A], 1),
        )
        step *= 2
    return each


def shifted(p: Partial, by: int) -> Partial:
    """p at t - by (by > 0) or t + |by| (by < 0) of the second dimension; nothing where that is outside."""
    m = torch.full_like(p.m, torch.finfo(p.m.dtype).min)
    Z, A = torch.zeros_like(p.Z), torch.zeros_like(p.A)
    length = p.m.shape[1]
    if abs(by) < length:
        to, source = (slice(by, None), slice(length - by)) if by > 0 else (slice(length + by), slice(-by, None))
        m[:, to], Z[:, to], A[:, to] = p.m[:, source], p.Z[:, source], p.A[:, source]
    return Partial(m, Z, A)


def turned(p: Partial) -> Partial:
    """The second dimension from its end to its beginning."""
    return Partial(p.m.flip(1), p.Z.flip(1), p.A.flip(1))
