"""Words that are alike: to an adversary the same state twice is one word.

Where an encoder reads each word by itself, a word that stands in a text ten times has the same state ten times, and
the outputs depend on the sum of their weights alone. Of all ways to share out the sum the cheapest is to give it to
the one that is least attended: phi(a, .) is concave with phi(a, 0) = 0 (exact.py), hence subadditive, and
it increases with a, so

    phi(a, p) + phi(b, q) >= phi(a, p) + phi(a, q) >= phi(a, p + q)    where a <= b.

Only that word is kept. No feasible distribution is lost that is farther than what is left, and what is proved of the
words that are kept is proved of all. A story of bAbI 3 has 262 words and 32 of them are different.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.edited_attention.observe import tvd
from heedful.experiments.edited_attention.pooled import PooledStates

_DIGITS = 12  # states are alike that agree so far


@dataclass(frozen=True, slots=True, eq=False)
class Different:
    """Texts with their different words alone, and the way there and back."""

    seen: PooledStates  # of D words; `merged` is the model's attention on them
    kept: Tensor  # (B, D) where each of them stands in the text
    to: Tensor  # (B, T) which of them each word of the text is

    @classmethod
    def of(cls, seen: PooledStates) -> Self:
        """Of words that are alike the least attended."""
        kept, to = [], torch.zeros_like(seen.real, dtype=torch.int64)
        for i, (alpha, n) in enumerate(zip(seen.words(seen.alpha), seen.n_words, strict=True)):
            least_first = np.argsort(alpha, kind="stable")
            states = seen.projected[i, :n].numpy().round(_DIGITS)[least_first]
            _, first, group = np.unique(states, axis=0, return_index=True, return_inverse=True)
            places = least_first[first]  # (D,)
            rank = np.argsort(np.argsort(places))  # in the order of the text
            to[i, torch.from_numpy(least_first)] = torch.from_numpy(rank[group.reshape(-1)])
            kept.append(torch.from_numpy(np.sort(places)))
        at = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
        real = torch.arange(at.shape[1]) < torch.tensor([len(one) for one in kept]).unsqueeze(1)
        spread = at.unsqueeze(-1).expand(-1, -1, seen.projected.shape[-1])
        fewer = replace(
            seen,
            alpha=seen.alpha.gather(1, at) * real,
            real=real,
            projected=seen.projected.gather(1, spread) * real.unsqueeze(-1),
            merged=torch.zeros_like(at, dtype=seen.alpha.dtype).scatter_add_(1, to, seen.alpha),
        )
        return cls(fewer, at, to)

    def gather(self, p: Tensor) -> Tensor:
        """Distributions on all words -> on the different ones: (B, n, T) -> (B, n, D)."""
        to = self.to.unsqueeze(1).expand_as(p)
        return p.new_zeros(*p.shape[:2], self.kept.shape[1]).scatter_add_(2, to, p)

    def spread(self, p: Tensor) -> Tensor:
        """Distributions on the different words -> on all: (B, n, D) -> (B, n, T)."""
        kept = self.kept.unsqueeze(1).expand_as(p)
        return p.new_zeros(*p.shape[:2], self.to.shape[1]).scatter_add_(2, kept, p)


# Local search for adversarial attention: exchange words while the outputs stay within epsilon.
#
# JSD(., alpha^) is convex, so its maximum over the feasible set has few words: at a vertex of what TVD <= epsilon
# leaves of the simplex, as many as there are labels. Single words cannot be exchanged for each other then (each
# alone would change the outputs); like a pivot of the simplex method, an exchange moves the weights of all words
# in play at once. With J_t = dy / dalpha_t (labels) at the present distribution p and its heaviest words b, an
# exchange that lets word j in by theta is p_j + theta, p_b + theta d_b with J_j + sum_b J_b d_b as near to 0 as
# least squares bring it, and 1 + sum_b d_b = 0. There are four kinds of exchange, all of this form:
#     a word comes in; a word goes out; all light words go out at once; the outputs move from one label to another
# (and with them the weights of the words in play). Each goes as far as weights stay positive and, as the derivative
# predicts, TVD <= epsilon: JSD is convex along it, so its best end is the far one. The exchanges that promise most
# are shown to the decoder, brought back within epsilon by Newton steps, and the best one is taken. Nothing is
# taken that is infeasible or not better, so a search never ends below its start.


_LABELS = 8  # outputs that an exchange keeps in view: the most probable ones; the decoder judges all
_TRIED = 6  # exchanges shown to the decoder in one round ...
_FRACTIONS = (1.0, 0.8, 0.4, 0.1)  # ... each at so many lengths
_LIGHT = (1.0, 0.3, 0.1)  # light words: at most this share of the heaviest that is not in play
_NEWTON = 3  # steps back into the ball of radius epsilon
_LEAST_GAIN = 1e-6
_NOTHING = 1e-9  # of weight


@torch.no_grad()
def exchange_words(seen: PooledStates, p: Tensor, epsilon: float, rounds: int) -> Tensor:
    """From feasible distributions p (B, S, T), each on its own, to farther ones: (B, S, T)."""
    for _ in range(rounds):
        moves = _Moves(seen, p, epsilon)
        tried = _within(seen, moves, moves.most_promising(_TRIED), epsilon)  # (B, S, N, T)
        feasible = tvd(seen.decode(tried.flatten(1, 2)), seen.y.unsqueeze(1)) <= epsilon  # (B, S N)
        cost = phi(seen.alpha[:, None, None], tried).sum(3)  # (B, S, N)
        at = greatest(torch.where(feasible.view_as(cost), -cost, -torch.inf), 1)  # (B, S, 1)
        least = torch.where(feasible.view_as(cost), cost, torch.inf).gather(2, at).squeeze(2)  # (B, S)
        better = least < phi(seen.alpha.unsqueeze(1), p).sum(2) - _LEAST_GAIN
        if not better.any():
            break
        taken = tried.gather(2, at.unsqueeze(3).expand(-1, -1, 1, p.shape[2])).squeeze(2)
        p = torch.where(better.unsqueeze(2), taken, p)
    return p


class _Moves:
    """All exchanges from p (B, S, T). Outputs are in units of epsilon; M words are in play (basic)."""

    def __init__(self, seen: PooledStates, p: Tensor, epsilon: float) -> None:
        self.seen, self.p = seen, p
        n_labels, self.words = seen.y.shape[1], p.shape[2]
        self.labels = greatest(seen.y, min(n_labels, _LABELS))  # (B, R)
        slope, y = _slopes(seen, p, self.labels)  # (B, S, R, T), (B, S, labels)
        slope /= epsilon
        self.off = self.in_view(y - seen.y.unsqueeze(1)) / epsilon  # (B, S, R)
        self.basic = greatest(p, min(self.labels.shape[1] + 1, self.words))  # (B, S, M)
        self.x = p.gather(2, self.basic)
        in_play = self.x > _NOTHING
        basic = slope.gather(3, self.basic.unsqueeze(2).expand(-1, -1, slope.shape[2], -1))  # (B, S, R, M)
        # The heaviest word takes what is left of the sum: columns are differences to it.
        columns = (basic - basic[..., :1]) * in_play.unsqueeze(2)
        square = columns.mT @ columns  # (B, S, M, M)
        little = 1e-7 * (1 + square.diagonal(dim1=2, dim2=3).amax(2))[..., None, None]
        square += little * torch.eye(square.shape[2], dtype=p.dtype)
        self.respond = torch.linalg.solve(square, columns.mT) * in_play.unsqueeze(3)  # (B, S, M, R)
        self.respond[:, :, 0] = -self.respond[:, :, 1:].sum(2)

        come = -(self.respond @ (slope - basic[..., :1]))  # (B, S, M, T) of the words in play, as one comes in
        come[:, :, 0] -= 1
        is_basic = torch.zeros_like(p, dtype=torch.bool).scatter_(2, self.basic, in_play)
        rest = torch.where(is_basic, 0.0, p)  # (B, S, T) weight of words that are not in play
        share = rest / rest.amax(2, keepdim=True).clamp(min=1e-300)
        self.light = torch.stack([torch.where(share <= most, rest, 0.0) for most in _LIGHT], dim=3)
        n = torch.arange(len(self.labels[0]))
        to, other = (x.flatten() for x in torch.meshgrid(n, n, indexing="ij"))
        to, other = to[to != other], other[to != other]
        shift = self.respond[..., to] - self.respond[..., other]  # (B, S, M, R (R - 1))
        self.d = torch.cat([come, -come, -(come @ self.light), shift], dim=3)  # (B, S, M, C)
        none = p.new_zeros(*p.shape[:2], slope.shape[2], shift.shape[3])
        own = torch.cat([slope, -slope, -(slope @ self.light), none], dim=3)
        self.change = own + basic @ self.d  # (B, S, R, C) of the outputs for a step of 1
        self.most = torch.cat(
            [
                (seen.real.unsqueeze(1) & ~is_basic).to(p.dtype),
                rest,
                (self.light.sum(2) > _NOTHING).to(p.dtype),
                torch.full_like(shift[:, :, 0], 10.0),
            ],
            dim=2,
        )  # (B, S, C)

    def in_view(self, values: Tensor) -> Tensor:
        """(B, N, labels) -> (B, N, R)"""
        return values.gather(2, self.labels.unsqueeze(1).expand(-1, values.shape[1], -1))

    def most_promising(self, n: int) -> Tensor:
        """The n exchanges with the greatest predicted gain, each at some lengths: (B, S, n lengths, T)."""
        step = self._longest()  # (B, S, C)
        alpha = self.seen.alpha.unsqueeze(1).expand_as(self.p)  # (B, S, T)
        of_basic = alpha.gather(2, self.basic)  # (B, S, M)
        after = (self.x.unsqueeze(3) + step.unsqueeze(2) * self.d).clamp(min=0)
        gain = phi(of_basic, self.x).sum(2, keepdim=True) - phi(of_basic.unsqueeze(3), after).sum(2)
        cost, words = phi(alpha, self.p), self.words
        gain[..., :words] += cost - phi(alpha, self.p + step[..., :words])
        gain[..., words : 2 * words] += cost - phi(alpha, (self.p - step[..., words : 2 * words]).clamp(min=0))
        for i in range(len(_LIGHT)):
            out = self.light[..., i]
            left = (self.p - step[..., 2 * words + i, None] * out).clamp(min=0)
            gain[..., 2 * words + i] += (cost - phi(alpha, left)).sum(2)
        gain = torch.where(step > _NOTHING, gain, -torch.inf)
        column = greatest(gain, min(n, gain.shape[2]))  # (B, S, n)
        lengths = step.gather(2, column).unsqueeze(3) * torch.tensor(_FRACTIONS, dtype=step.dtype)
        tried = self.p.unsqueeze(2).unsqueeze(2) + lengths.unsqueeze(4) * self._directions(column).unsqueeze(3)
        return normalised(tried.flatten(2, 3))

    def _longest(self) -> Tensor:
        """How far each exchange can go by positive weights and predicted TVD: (B, S, C)."""
        shrinking = self.d < -1e-12
        until_zero = torch.where(shrinking, self.x.unsqueeze(3) / torch.where(shrinking, -self.d, 1.0), torch.inf)
        longest = torch.minimum(until_zero.amin(2), self.most)
        off, allowed = self.off.unsqueeze(3), (0.5 * self.off.abs().sum(2)).clamp(min=1.0).unsqueeze(2)
        step, low, high = longest, torch.zeros_like(longest), longest
        for _ in range(10):
            inside = 0.5 * (off + step.unsqueeze(2) * self.change).abs().sum(2) <= allowed + 1e-9
            low, high = torch.where(inside, step, low), torch.where(inside, high, step)
            step = (low + high) / 2
        return low

    def _directions(self, column: Tensor) -> Tensor:
        """What a step of 1 adds to p, of exchanges (B, S, n): (B, S, n, T)."""
        n, words = column.shape[2], self.words
        of_basic = self.d.gather(3, column.unsqueeze(2).expand(-1, -1, self.d.shape[2], -1)).mT  # (B, S, n, M)
        direction = self.p.new_zeros(*column.shape, words)
        direction.scatter_add_(3, self.basic.unsqueeze(2).expand(-1, -1, n, -1), of_basic)
        sign = (column < words).to(self.p.dtype) - ((column >= words) & (column < 2 * words)).to(self.p.dtype)
        direction.scatter_add_(3, (column % words).unsqueeze(3), sign.unsqueeze(3))
        which = (column - 2 * words).clamp(0, len(_LIGHT) - 1)  # (B, S, n)
        light = self.light.mT.gather(2, which.unsqueeze(3).expand(-1, -1, -1, words))  # (B, S, n, T)
        is_light = (column >= 2 * words) & (column < 2 * words + len(_LIGHT))
        return direction - torch.where(is_light.unsqueeze(3), light, 0.0)


def _slopes(seen: PooledStates, p: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """dy_k / dp_t of some labels (B, S, R, T), and y (B, S, labels)."""
    with torch.enable_grad():
        contexts = (p @ seen.projected).requires_grad_(True)  # (B, S, features)
        y = seen.readout(contexts)
        picked = y.gather(2, labels.unsqueeze(1).expand(-1, p.shape[1], -1)).sum((0, 1))  # (R,)
        slopes = [torch.autograd.grad(one, contexts, retain_graph=True)[0] for one in picked]
    return torch.stack(slopes, dim=2) @ seen.projected.unsqueeze(1).mT, y.detach()


def _within(seen: PooledStates, moves: _Moves, p: Tensor, epsilon: float) -> Tensor:
    """Distributions (B, S, N, T) brought back to TVD <= epsilon, nearly always, by the words in play."""
    shape = p.shape
    basic = moves.basic.unsqueeze(2).expand(-1, -1, shape[2], -1)
    for _ in range(_NEWTON):
        off = seen.decode(p.flatten(1, 2)) - seen.y.unsqueeze(1)  # (B, S N, labels)
        change = 0.5 * off.abs().sum(2, keepdim=True)
        back = (1 - (1 - 1e-6) * epsilon / change.clamp(min=1e-300)).clamp(min=0) / epsilon
        if not (back > 0).any():
            break
        wanted = moves.in_view(-back * off).view(*shape[:3], -1)  # (B, S, N, R)
        p = normalised(p.scatter_add(3, basic, wanted @ moves.respond.mT))
    return p


def greatest(values: Tensor, n: int) -> Tensor:
    """Places of the n greatest of the last dimension; of nearly equal ones the first.

    Rounding differs with the batch that a text is in, and must not decide between two exchanges.
    """
    return (values / _LEAST_GAIN).round().argsort(dim=-1, descending=True, stable=True)[..., :n]


def normalised(p: Tensor) -> Tensor:
    """Weights that are not negative and sum to 1."""
    p = torch.where(p > 1e-12, p, 0.0)
    return p / p.sum(-1, keepdim=True).clamp(min=1e-300)


def phi(a: Tensor, p: Tensor) -> Tensor:
    """[(a + p) ln(a + p) - a ln a - p ln p] / 2 (see exact.py)."""
    both = a + p
    return 0.5 * (torch.xlogy(both, both) - torch.xlogy(a, a) - torch.xlogy(p, p))
