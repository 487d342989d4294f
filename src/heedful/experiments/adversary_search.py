"""Adversarial attention for several classes and for decoders with a query, where no closed form is known.

A feasible distribution (TVD <= epsilon) is a lower bound of the true epsilon-max JSD. Candidates, cheap ones
first: all one-hots, in one product; two words w e_t + (1 - w) e_u on a grid of w, refined to where the
constraint binds; and local search by moving weight from word to word, from the model's own attention and
from whatever else was found. Each move is judged by JSD(p, a) = ln 2 - sum_i phi(a_i, p_i) (see
adversary_exact), which needs no model; only the best moves are shown to the decoder.

The certificate is an upper bound: the one-hot on the least attended word (JSD is convex, so nothing on the
simplex is farther), and for a linear decoder also, for the predicted class c and each other class d, the
exact answer under the one consequence of TVD <= epsilon that is a slab:
    (y_c - epsilon) / (y_d + epsilon) <= P_c / P_d = exp(z_c - z_d) <= (y_c + epsilon) / (y_d - epsilon).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.adversary_adam import farthest_feasible
from heedful.experiments.adversary_exact import LN2, Adversary, Floats, farthest_in_slab, joined, log_ratio
from heedful.experiments.adversary_exact import phi as phi_array
from heedful.experiments.observe import Observed, tvd
from heedful.experiments.pooled import PooledStates

_CELLS = 1 << 21  # numbers in the largest array of one step: 16 MB
_LEAST = 16  # words paired: so many of the least attended ...
_NEAR = 48  # ... with so many whose one-hot changes the output least
_GRID = tuple(i / 8 for i in range(1, 8))
_REFINED = 16  # pairs that are refined, of those feasible on the grid and of those nearest to it
_DONORS = 8  # words that weight is taken from in one round of moves: those that cost most
_SHARES = (1.0, 0.5, 0.1)  # of a donor's weight
_MOVES = 48  # moves shown to the decoder in one round
_ROUNDS = 100


@torch.no_grad()
def search_adversary(seen: PooledStates, epsilon: float, dense: Tensor | None = None) -> Adversary:
    """The farthest feasible distribution found. `dense` (B, n, T): starts from elsewhere (Adam)."""
    sizes = max(seen.projected.shape[-1], seen.y.shape[-1]) * min(_LEAST * _NEAR, seen.alpha.shape[1] ** 2)
    at_once = max(1, _CELLS // max(1, sizes))
    rows = [slice(begin, begin + at_once) for begin in range(0, len(seen.examples), at_once)]
    return joined([_search(seen[at], epsilon, None if dense is None else dense[at]) for at in rows])


def _search(seen: PooledStates, epsilon: float, dense: Tensor | None) -> Adversary:
    bound = upper_bound(seen, epsilon)
    if seen.alpha.shape[1] == 0:
        return farthest_feasible(seen, seen.alpha.unsqueeze(1), epsilon, bound)
    alphas = torch.cat([one_hots(seen, epsilon), pairs(seen, epsilon)], dim=1)  # (B, n, T)
    if dense is not None:
        alphas = torch.cat([alphas, dense], dim=1)
    best = torch.from_numpy(farthest_feasible(seen, alphas, epsilon, bound).alpha)
    moved = [move_weight(seen, start, epsilon) for start in (best, seen.alpha)]
    return farthest_feasible(seen, torch.stack([best, *moved], dim=1), epsilon, bound)


def upper_bound(seen: PooledStates, epsilon: float) -> Floats:
    """No feasible distribution is farther from the model's attention: (B,)."""
    bound = ceiling(seen)
    theta = seen.decoder.theta
    some = np.flatnonzero(seen.n_words)
    if theta is None or not len(some):
        return bound
    logits, y = (seen.projected + theta.bias)[some].numpy(), seen.y[some].numpy()  # (B, T, K), (B, K)
    alpha, real, rows = seen.alpha[some].numpy(), seen.real[some].numpy(), np.arange(len(some))
    predicted = seen.predicted[some]
    for label in range(y.shape[1]):
        s = logits[rows, :, predicted] - logits[:, :, label]  # (B, T) z_c - z_d under each one-hot
        y_c, y_d = y[rows, predicted], y[:, label]
        vertices = farthest_in_slab(
            alpha, s, real, log_ratio(y_c, y_d, -epsilon), log_ratio(y_c, y_d, epsilon)
        )
        found = np.where(predicted == label, np.inf, LN2 - vertices.cost)
        bound[some] = np.minimum(bound[some], found)
    return bound


def ceiling(seen: Observed) -> Floats:
    """JSD of the one-hot on the least attended word, whatever the output becomes: (B,); 0 without words."""
    least = torch.where(seen.real, seen.alpha, torch.inf).amin(1).numpy() if seen.alpha.shape[1] else 0.0
    some = seen.n_words > 0
    return np.where(some, np.maximum(LN2 - phi_array(np.where(some, least, 0.0), 1.0), 0.0), 0.0)


def one_hots(seen: PooledStates, epsilon: float) -> Tensor:
    """The feasible one-hot on the least attended word: (B, 1, T); where there is none, another one."""
    feasible = one_hot_change(seen) <= epsilon  # (B, T)
    chosen = torch.where(feasible, seen.alpha, torch.inf).argmin(1, keepdim=True)  # (B, 1)
    return torch.zeros_like(seen.alpha).scatter_(1, chosen, 1.0).unsqueeze(1)


def one_hot_change(seen: PooledStates) -> Tensor:
    """TVD of the output when one word has all the weight: (B, T), infinite for padding."""
    change = tvd(seen.readout(seen.projected), seen.y.unsqueeze(1))
    return torch.where(seen.real, change, torch.inf)


def pairs(seen: PooledStates, epsilon: float) -> Tensor:
    """Distributions on two words, refined to where the constraint binds: (B, n, T)."""
    first = _lowest(torch.where(seen.real, seen.alpha, torch.inf), _LEAST)  # (B, A)
    second = _lowest(one_hot_change(seen), _NEAR)  # (B, C)
    t = first.unsqueeze(2).expand(-1, -1, second.shape[1]).flatten(1)  # (B, P) with P = A C
    u = second.unsqueeze(1).expand(-1, first.shape[1], -1).flatten(1)
    line = _Line(seen, t, u)
    w = torch.tensor(_GRID, dtype=torch.float64).view(-1, 1, 1)  # (G, 1, 1)
    on_grid = [line.change(x.expand(t.shape)) for x in w]
    change = torch.stack(on_grid, dim=1).flatten(1)  # (B, G P)
    cost = torch.stack([line.cost(x.expand(t.shape)) for x in w], dim=1).flatten(1)
    cheap = _lowest(torch.where(change <= epsilon, cost, torch.inf), _REFINED)  # (B, R)
    near = _lowest(change, _REFINED)
    chosen = torch.cat([cheap, near], dim=1)  # (B, 2R) into grid x pairs
    start = torch.tensor(_GRID, dtype=torch.float64)[chosen // t.shape[1]]
    line = _Line(seen, t.gather(1, chosen % t.shape[1]), u.gather(1, chosen % t.shape[1]))
    inside = _least_change(line, start)
    ends = [_boundary(line, inside, end, epsilon) for end in (0.0, 1.0)]
    return torch.cat([line.dense(x) for x in (start, inside, *ends)], dim=1)


class _Line:
    """w e_t + (1 - w) e_u for words t and u (B, P) of each text."""

    def __init__(self, seen: PooledStates, t: Tensor, u: Tensor) -> None:
        self.seen, self.t, self.u = seen, t, u
        rows = torch.arange(len(t)).unsqueeze(1)
        self.from_t, self.from_u = seen.projected[rows, t], seen.projected[rows, u]  # (B, P, features)
        self.y = seen.y.unsqueeze(1)

    def change(self, w: Tensor) -> Tensor:
        """w (B, P) -> TVD (B, P)."""
        return tvd(self.seen.readout(torch.lerp(self.from_u, self.from_t, w.unsqueeze(-1))), self.y)

    def cost(self, w: Tensor) -> Tensor:
        return phi(self.seen.alpha.gather(1, self.t), w) + phi(self.seen.alpha.gather(1, self.u), 1 - w)

    def dense(self, w: Tensor) -> Tensor:
        """w (B, P) -> distributions (B, P, T)."""
        alphas = w.new_zeros(*w.shape, self.seen.alpha.shape[1])
        alphas.scatter_add_(2, self.t.unsqueeze(-1), w.unsqueeze(-1))
        return alphas.scatter_add_(2, self.u.unsqueeze(-1), 1 - w.unsqueeze(-1))


def _least_change(line: _Line, w: Tensor) -> Tensor:
    """The w of least change within a grid step of the given one, by trying the middle of both sides."""
    step, change = 0.5 * (_GRID[1] - _GRID[0]), line.change(w)
    for _ in range(10):
        for side in (-step, step):
            other = (w + side).clamp(0, 1)
            better = line.change(other)
            w, change = torch.where(better < change, other, w), torch.minimum(better, change)
        step /= 2
    return w


def _boundary(line: _Line, inside: Tensor, end: float, epsilon: float) -> Tensor:
    """Between a feasible w and `end`, the last feasible one that bisection finds."""
    outside = torch.full_like(inside, end)
    inside = torch.where(line.change(outside) <= epsilon, outside, inside)
    for _ in range(30):
        middle = (inside + outside) / 2
        feasible = line.change(middle) <= epsilon
        inside, outside = torch.where(feasible, middle, inside), torch.where(feasible, outside, middle)
    return inside


def move_weight(seen: PooledStates, p: Tensor, epsilon: float) -> Tensor:
    """From feasible distributions p (B, T): move weight from word to word while JSD grows. (B, T)

    JSD is convex along a move, so a move goes as far as it may. Of all moves from the words that cost most,
    those with the greatest gain are tried, and those with the greatest gain for the distance that the
    context vector moves.
    """
    a, y = seen.alpha, seen.y.unsqueeze(1)
    rows = torch.arange(len(p))
    shares = torch.tensor(_SHARES, dtype=torch.float64)
    for _ in range(_ROUNDS):
        cost = phi(a, p)  # (B, T)
        donors = cost.topk(min(_DONORS, p.shape[1]), dim=1).indices  # (B, D)
        taken = p.gather(1, donors).unsqueeze(-1) * shares  # (B, D, S)
        left = phi(a.gather(1, donors).unsqueeze(-1), p.gather(1, donors).unsqueeze(-1) - taken)
        saved = (cost.gather(1, donors).unsqueeze(-1) - left).unsqueeze(-1)  # (B, D, S, 1)
        paid = phi(a[:, None, None], p[:, None, None] + taken.unsqueeze(-1)) - cost[:, None, None]
        gain = saved - paid  # (B, D, S, T)
        same = donors.unsqueeze(-1) == torch.arange(p.shape[1])  # (B, D, T)
        gain = gain.masked_fill((same | ~seen.real.unsqueeze(1)).unsqueeze(2), -torch.inf)
        apart = torch.cdist(seen.projected[rows.unsqueeze(1), donors], seen.projected)  # (B, D, T)
        way = taken.unsqueeze(-1) * apart.unsqueeze(2) + 1e-9
        n = min(_MOVES, gain[0].numel())
        moves = torch.cat([x.flatten(1).topk(n, dim=1).indices for x in (gain, gain / way)], dim=1)  # (B, 2n)
        gained = gain.flatten(1).gather(1, moves)
        donor = donors.gather(1, moves // (len(shares) * p.shape[1]))
        receiver = moves % p.shape[1]
        weight = taken.flatten(1).gather(1, moves // p.shape[1])
        step = seen.projected[rows.unsqueeze(1), receiver] - seen.projected[rows.unsqueeze(1), donor]
        context = (p.unsqueeze(1) @ seen.projected) + weight.unsqueeze(-1) * step  # (B, 2n, features)
        allowed = (tvd(seen.readout(context), y) <= epsilon) & (gained > 1e-6)
        best = torch.where(allowed, gained, -torch.inf).argmax(1)  # (B,)
        moving = allowed[rows, best].to(p.dtype) * weight[rows, best]
        if not moving.any():
            break
        p = p.index_put((rows, donor[rows, best]), -moving, accumulate=True)
        p = p.index_put((rows, receiver[rows, best]), moving, accumulate=True).clamp(min=0)
    return p


def phi(a: Tensor, p: Tensor) -> Tensor:
    """[(a + p) ln(a + p) - a ln a - p ln p] / 2 (see adversary_exact)."""
    both = a + p
    return 0.5 * (torch.xlogy(both, both) - torch.xlogy(a, a) - torch.xlogy(p, p))


def _lowest(values: Tensor, n: int) -> Tensor:
    """Places of the n lowest values of each row (B, n); the lowest again where the rest is infinite."""
    places = values.argsort(dim=1, stable=True)[:, :n]
    return torch.where(values.gather(1, places).isinf(), places[:, :1], places)
