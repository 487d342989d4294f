"""Adversarial attention for several classes and for decoders with a query, where no closed form is known.

A feasible distribution (TVD <= epsilon) is a lower bound of the true epsilon-max JSD. Words that are alike are one
word to the search and to the proof, then spread over the text again. Search starts from the
model's own attention, the best one-hot, the best distribution on two words, some on three, and what short runs of Adam
on the paper's objective end with. Each start is improved by exchanging words (exchange.py), the best of them and
the model's own attention by successive linear programs (proof.py) and again by exchanges, and the farthest is
kept, so the answer is never below any start. Starts depend on the text alone: the same text has the same answer in any
run of the experiment.

The certificate is an upper bound, the least of three: the one-hot on the least attended word (JSD is convex, so
nothing on the simplex is farther); for a linear decoder and each pair of labels, the exact answer under the one
consequence of TVD <= epsilon that is a slab (exact.py),
    (y_c - epsilon) / (y_d + epsilon) <= P_c / P_d = exp(z_c - z_d) <= (y_c + epsilon) / (y_d - epsilon);
and what branch and bound proves from all consequences together (proof.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.adversarial.adam import adam_adversaries, farthest_feasible, initial
from heedful.experiments.adversarial.bound import Readout, logits_of_words, readouts
from heedful.experiments.adversarial.exact import (
    LN2,
    PROVED,
    Adversary,
    Bools,
    Floats,
    concatenate,
    farthest_in_slab,
    log_ratio,
)
from heedful.experiments.adversarial.exact import phi as phi_array
from heedful.experiments.adversarial.exchange import Different, exchange_words, greatest, normalised, phi
from heedful.experiments.adversarial.proof import LinearSteps, Proof
from heedful.experiments.edited_attention.mixed import MixedStates, mixture_bound
from heedful.experiments.edited_attention.observe import Observed, tvd
from heedful.experiments.edited_attention.pooled import PooledStates

PROGRAMS = 20  # linear programs that a proof may take for one text

_CELLS = 1 << 21  # numbers in the largest array of one step: 16 MB
_TEXTS = 16  # searched together: a search lasts as long as its slowest text
_LEAST = 16  # words paired: so many of the least attended ...
_NEAR = 48  # ... with so many whose one-hot changes the output least
BISECTIONS = 30  # of the weight that a pair shares: to 1e-9
Change = Callable[[Tensor], Tensor]  # weight of the first of two words -> change of the output, (B, n)
_GRID = tuple(i / 8 for i in range(1, 8))
_REFINED = 16  # pairs that are refined, of those feasible on the grid and of those nearest to it
_ADAM: dict[str, Any] = {"steps": 60, "rate": 0.1, "penalty": 500.0}
_ADAM_STARTS = 2
_TRIPLED = 12  # words whose triples are tried
_SHARES = 10  # weights of a triple are multiples of 1 / 10
_OF_TRIPLES = 3  # that are improved, of those feasible and of those nearest to it
_WIDTHS = (1.0, 0.4)  # of the chords with which linear programs begin at the model's own attention
_PROGRAM_STEPS = 8
_ROUNDS = (12, 30)  # of exchanges: from every start, and from what linear programs made of the best
_BEST = 4
_SLAB_LABELS = 8  # pairs of the most probable labels have slabs


@torch.no_grad()
def search_adversary(
    seen: PooledStates, epsilon: float, dense: Tensor | None = None, programs: int = PROGRAMS
) -> Adversary:
    """The farthest feasible distribution found, and a bound. `dense` (B, n, T): starts from elsewhere."""
    words, labels = seen.alpha.shape[1], min(seen.y.shape[1], _SLAB_LABELS)
    of_pairs = max(seen.projected.shape[-1], seen.y.shape[-1]) * min(_LEAST * _NEAR, words**2)
    of_exchanges = 8 * labels * (2 * words + labels**2)
    at_once = max(1, min(_TEXTS, _CELLS // max(1, of_pairs, of_exchanges)))
    rows = [slice(begin, begin + at_once) for begin in range(0, len(seen.examples), at_once)]
    return concatenate([_search(seen[at], epsilon, None if dense is None else dense[at], programs) for at in rows])


def _search(seen: PooledStates, epsilon: float, dense: Tensor | None, programs: int) -> Adversary:
    if seen.alpha.shape[1] == 0:
        return farthest_feasible(seen, seen.alpha.unsqueeze(1), epsilon, upper_bound(seen, epsilon))
    different = Different.of(seen)
    fewer = different.seen
    begun = starts(fewer, epsilon)  # (B, S, D)
    if dense is not None:
        begun = torch.cat([begun, drawn_in(fewer, different.gather(dense), epsilon)], dim=1)
    # Rounded, because Adam's answer differs in its last digits with the batch that a text is in.
    moved = exchange_words(fewer, drawn_in(fewer, normalised(begun.round(decimals=6)), epsilon), epsilon, _ROUNDS[0])
    stepped = linear_steps(fewer, _farthest(fewer, moved, _BEST), epsilon)
    moved = exchange_words(fewer, _farthest(fewer, torch.cat([moved, stepped], dim=1), _BEST), epsilon, _ROUNDS[1])
    tried = [different.spread(torch.cat([moved, begun], dim=1)), *([] if dense is None else [dense])]
    found = farthest_feasible(seen, torch.cat(tried, dim=1), epsilon, upper_bound(fewer, epsilon))
    return replace(found, bound=proved(fewer, found, epsilon, programs))


def starts(seen: PooledStates, epsilon: float) -> Tensor:
    """Feasible distributions to start from: (B, S, T)."""
    drawn = [initial(int(n), _ADAM_STARTS, np.random.default_rng(0)) for n in seen.n_words]  # by length alone
    adam = adam_adversaries(seen, drawn, epsilon, **_ADAM)
    two = pairs(seen, epsilon)
    feasible = tvd(seen.decode(two), seen.y.unsqueeze(1)) <= epsilon
    best = _lowest(torch.where(feasible, phi(seen.alpha.unsqueeze(1), two).sum(2), torch.inf), 1)
    two = two.gather(1, best.unsqueeze(2).expand(-1, -1, two.shape[2]))
    others = torch.cat([two, one_hots(seen, epsilon), adam, triples(seen, epsilon)], dim=1)
    return torch.cat([seen.own.unsqueeze(1), drawn_in(seen, others, epsilon)], dim=1)


def linear_steps(seen: PooledStates, p: Tensor, epsilon: float) -> Tensor:
    """What linear programs make of feasible distributions p (B, S, T), and of the model's own: (B, S + widths, T)."""
    if isinstance(seen, MixedStates):  # whose outputs the programs do not know
        return p
    found = torch.cat([p, seen.own.unsqueeze(1).repeat(1, len(_WIDTHS), 1)], dim=1)
    for i, (readout, alpha, y, candidates) in enumerate(texts_of(seen)):
        steps = LinearSteps(readout, alpha, y, candidates, epsilon)
        n = len(alpha)
        begun, own = p[i, :, :n].numpy(), seen.own[i, :n].numpy()
        made = [steps.farther(one, _WIDTHS[-1], _PROGRAM_STEPS) for one in begun]
        made += [steps.farther(own, width, _PROGRAM_STEPS, steps.chords(width)) for width in _WIDTHS]
        found[i, :, :n] = torch.from_numpy(np.stack(made))
    return found


def drawn_in(seen: PooledStates, p: Tensor, epsilon: float) -> Tensor:
    """Distributions (B, n, T), and for those that are not feasible a feasible one on the way to the model's own."""
    own, y = seen.own.unsqueeze(1), seen.y.unsqueeze(1)
    step = p.new_ones(*p.shape[:2], 1)
    inside, outside = torch.zeros_like(step), torch.ones_like(step)
    for _ in range(16):
        feasible = (tvd(seen.decode(torch.lerp(own, p, step)), y) <= epsilon).unsqueeze(2)
        inside, outside = torch.where(feasible, step, inside), torch.where(feasible, outside, step)
        step = (inside + outside) / 2
    return torch.where(inside == 1, p, torch.lerp(own, p, inside))


def _farthest(seen: PooledStates, p: Tensor, n: int) -> Tensor:
    """The n of the distributions (B, S, T) that differ most from the model's: (B, n, T)."""
    least = greatest(-phi(seen.alpha.unsqueeze(1), p).sum(2), n)
    return p.gather(1, least.unsqueeze(2).expand(-1, -1, p.shape[2]))


def proved(seen: PooledStates, found: Adversary, epsilon: float, programs: int) -> Floats:
    """The bound after branch and bound, where it was not near enough: (B,)."""
    bound = found.bound.copy()
    if programs and not isinstance(seen, MixedStates):  # whose outputs the programs do not know
        for i, proof in enumerate(proofs(seen, epsilon, found.jsd)):
            if bound[i] > found.jsd[i] + PROVED:
                bound[i] = min(bound[i], proof.bound(programs))
    return bound


def proofs(seen: PooledStates, epsilon: float, found: Floats) -> Iterator[Proof]:
    """Of each text, that nothing is farther than what was found."""
    for (readout, alpha, y, candidates), jsd in zip(texts_of(seen), found, strict=True):
        yield Proof(readout, alpha, y, candidates, epsilon, float(jsd))


def texts_of(seen: PooledStates) -> Iterator[tuple[Readout, Floats, Floats, Bools]]:
    """Of each text how its attention is read, its attention (words,), its outputs and its candidates (labels,)."""
    y = seen.y.numpy()
    candidates = np.ones(y.shape, dtype=np.bool_) if seen.candidates is None else seen.candidates.numpy()
    yield from zip(readouts(seen), seen.words(seen.alpha), y, candidates, strict=True)


def upper_bound(seen: PooledStates, epsilon: float) -> Floats:
    """No feasible distribution is farther from the model's attention: (B,). Without branch and bound."""
    bound = ceiling(seen)
    if isinstance(seen, MixedStates):
        return np.minimum(bound, mixture_bound(seen, epsilon))
    some = np.flatnonzero(seen.n_words)
    logits = logits_of_words(seen)
    if logits is None or not len(some):
        return bound
    z, y = logits[some], seen.y[some].numpy()  # (B, T, K), (B, K)
    alpha, real, rows = seen.alpha[some].numpy(), seen.real[some].numpy(), np.arange(len(some))
    probable = np.argsort(-y, axis=1, kind="stable")[:, :_SLAB_LABELS]  # (B, K)
    for first, second in combinations(range(probable.shape[1]), 2):
        c, d = probable[:, first], probable[:, second]
        s = z[rows, :, c] - z[rows, :, d]  # (B, T) z_c - z_d under each one-hot
        y_c, y_d = y[rows, c], y[rows, d]
        slab = log_ratio(y_c, y_d, -epsilon), log_ratio(y_c, y_d, epsilon)
        bound[some] = np.minimum(bound[some], LN2 - farthest_in_slab(alpha, s, real, *slab).cost)
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
    line = _PooledLine(seen, t, u)
    w = torch.tensor(_GRID, dtype=torch.float64).view(-1, 1, 1)  # (G, 1, 1)
    on_grid = [line.change(x.expand(t.shape)) for x in w]
    change = torch.stack(on_grid, dim=1).flatten(1)  # (B, G P)
    cost = torch.stack([line.cost(x.expand(t.shape)) for x in w], dim=1).flatten(1)
    cheap = _lowest(torch.where(change <= epsilon, cost, torch.inf), _REFINED)  # (B, R)
    near = _lowest(change, _REFINED)
    chosen = torch.cat([cheap, near], dim=1)  # (B, 2R) into grid x pairs
    start = torch.tensor(_GRID, dtype=torch.float64)[chosen // t.shape[1]]
    line = _PooledLine(seen, t.gather(1, chosen % t.shape[1]), u.gather(1, chosen % t.shape[1]))
    inside = least_change(line.change, start, line.change(start), 0.5 * (_GRID[1] - _GRID[0]), 10)
    ends = [boundary(line.change, inside, end, epsilon) for end in (0.0, 1.0)]
    return torch.cat([line.dense(x) for x in (start, inside, *ends)], dim=1)


def triples(seen: PooledStates, epsilon: float) -> Tensor:
    """Distributions on three words, the cheapest that are feasible and the nearest that are not: (B, n, T)."""
    half = _TRIPLED // 2
    least, near = torch.where(seen.real, seen.alpha, torch.inf), one_hot_change(seen)
    near = near.scatter(1, _lowest(least, half), torch.inf)  # others than the least attended
    words = torch.cat([_lowest(least, half), _lowest(near, half)], dim=1)  # (B, W)
    words = words[:, torch.combinations(torch.arange(words.shape[1]), 3)]  # (B, C, 3)
    rows = torch.arange(len(words)).view(-1, 1, 1)
    states, alpha = seen.projected[rows, words], seen.alpha[rows, words]  # (B, C, 3, features), (B, C, 3)
    parts = range(1, _SHARES)
    shares = torch.tensor([(i, j, _SHARES - i - j) for i in parts for j in parts if i + j < _SHARES])
    shares = shares.to(alpha) / _SHARES  # (G, 3)
    y = seen.y.unsqueeze(1)
    change = torch.stack([tvd(seen.readout(w @ states), y) for w in shares], dim=1).flatten(1)  # (B, G C)
    cost = torch.stack([phi(alpha, w).sum(2) for w in shares], dim=1).flatten(1)
    feasible = change <= epsilon
    chosen = [
        _lowest(torch.where(feasible, cost, torch.inf), _OF_TRIPLES),
        _lowest(torch.where(feasible, torch.inf, change), _OF_TRIPLES),
    ]
    places = torch.cat(chosen, dim=1)  # (B, n) into weights x triples
    of_words = words[rows[..., 0], places % words.shape[1]]  # (B, n, 3)
    found = seen.alpha.new_zeros(*places.shape, seen.alpha.shape[1])
    return found.scatter_add_(2, of_words, shares[places // words.shape[1]])


class _PooledLine:
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


def least_change(change: Change, w: Tensor, least: Tensor, step: float, rounds: int) -> Tensor:
    """The w of least change within two steps of the given one, whose change is `least`: the better of both sides, at
    ever smaller steps."""
    for _ in range(rounds):
        for side in (-step, step):
            other = (w + side).clamp(0, 1)
            better = change(other)
            w, least = torch.where(better < least, other, w), torch.minimum(better, least)
        step /= 2
    return w


def boundary(change: Change, inside: Tensor, end: float, epsilon: float) -> Tensor:
    """Between a feasible w and `end`, the last feasible one that bisection finds."""
    outside = torch.full_like(inside, end)
    inside = torch.where(change(outside) <= epsilon, outside, inside)
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        feasible = change(middle) <= epsilon
        inside, outside = torch.where(feasible, middle, inside), torch.where(feasible, outside, middle)
    return inside


def _lowest(values: Tensor, n: int) -> Tensor:
    """Places of the n lowest values of each row (B, n); the lowest again where the rest is infinite."""
    places = values.argsort(dim=1, stable=True)[:, :n]
    return torch.where(values.gather(1, places).isinf(), places[:, :1], places)
