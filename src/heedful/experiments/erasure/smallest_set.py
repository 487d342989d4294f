"""Orders in which the items of a text are erased, most important first (Serrano & Smith 2019, section 5).

    attention               alpha
    attention_gradient      d max probability / d alpha, alpha a free variable: what comes before it stands still
    attention_x_gradient    their product
    random                  several draws
    any explainer           its scores of the predicted label; of a sentence, the sum over its words

Orders are by falling score, with its sign: the item that speaks most for the decision goes first. Of equal scores
the first in the text goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.experiments.edited_attention.mixed import MixedStates
from heedful.experiments.edited_attention.observe import Observed
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.erasure.erase import decision, flipped
from heedful.experiments.framework.experiment import Floats, States
from heedful.explainers import EXPLAINERS
from heedful.models.network import Network
from heedful.records import Batch

ATTENTION, GRADIENT, PRODUCT, RANDOM = "attention", "attention_gradient", "attention_x_gradient", "random"
GRADIENTS = 16  # texts of one backward pass

Ranker = Callable[[Observed, Batch, list[np.random.Generator]], list[Tensor]]


def rankers(model: Network, names: tuple[str, ...], draws: int, states: States) -> dict[str, Ranker]:
    """Each name as a function to scores (B, T), one for each draw; `states` is what explainers have learnt."""
    return {name: _ranker(model, name, draws, states.get(name)) for name in names}


def _ranker(model: Network, name: str, draws: int, state: Mapping[str, NDArray[Any]] | None) -> Ranker:
    if name == ATTENTION:
        return lambda seen, batch, rngs: [seen.alpha]
    if name == GRADIENT:
        return lambda seen, batch, rngs: [attention_gradient(seen)]
    if name == PRODUCT:
        return lambda seen, batch, rngs: [seen.alpha * attention_gradient(seen)]
    if name == RANDOM:
        return lambda seen, batch, rngs: random_scores(seen, rngs, draws)
    explainer = EXPLAINERS.find(name).with_state(state)
    explainer.check(model.can)
    options = {"parts": "passage"} if "parts" in explainer.options else {}

    def scores(seen: Observed, batch: Batch, rngs: list[np.random.Generator]) -> list[Tensor]:
        target = torch.from_numpy(seen.predicted).to(batch.passage.ids.device)
        found = explainer.run(model, batch, target, **options).passage
        return [seen.of_items(found.detach(), batch)]

    return scores


def attention_gradient(seen: Observed) -> Tensor:
    """d p_i / d alpha_t for the most probable label i: (B, T)."""
    decided = decision(seen)
    slopes = []
    for begin in range(0, len(seen.examples), GRADIENTS):
        rows = slice(begin, begin + GRADIENTS)
        part = seen[rows]
        with torch.enable_grad():
            delta = torch.zeros_like(part.alpha).requires_grad_()
            p = part.shift(delta.unsqueeze(1)).squeeze(1)  # (texts, labels)
            (slope,) = torch.autograd.grad(p.gather(1, decided[rows].unsqueeze(1)).sum(), delta)
        slopes.append(slope)
    return torch.cat(slopes)


def random_scores(seen: Observed, rngs: list[np.random.Generator], draws: int) -> list[Tensor]:
    """Each text's generator draws all its orders, one after the other."""
    scores = torch.zeros(draws, *seen.alpha.shape, dtype=torch.float64)
    for row, (rng, n) in enumerate(zip(rngs, seen.n_words, strict=True)):
        scores[:, row, :n] = torch.from_numpy(rng.random((draws, n)))
    return list(scores)


def falling(scores: Tensor, real: Tensor) -> Tensor:
    """The places of a text by falling score, padding last: (B, T) -> (B, T)."""
    lowest = torch.where(real, scores.double().cpu(), -torch.inf)
    # numpy sorts -0.0 and 0.0 as equals, and keeps the order of equals
    return torch.from_numpy(np.argsort(-lowest.numpy(), axis=1, kind="stable"))


# The fewest items whose removal flips the decision: what every ranking is held against.
#
# Linear readout (`exact_smallest`). Let f_c(R) = sum_{t not in R} alpha_t s_t^c / A + b_c with A = sum_{t not in R}
# alpha_t > 0 be the logit of label c without the items R, and i the decision. For another label j let
#
#     c_t = alpha_t (s_t^i - s_t^j + b_i - b_j).
#
# Multiplied by A > 0, f_j(R) > f_i(R) says sum_{t not in R} c_t < 0. Among all R of k items that sum is least when R
# holds the k largest c_t, so some set of k items lets j overtake i exactly when the k largest do. The decision flips
# when some j overtakes, so the smallest set is the smallest over j: one sort for each label. A > 0 need not be asked
# for: a sum below zero has a term that is not zero, so a weight is left. No set flips when no c_t is below zero, for
# any j. Of a mixture (attention `latent`) the same holds with the probabilities p(c | h_t) in place of f_c.
#
# Other readouts (`bounds`). The smallest set of tanh layers, or of a whole transformer, is not a sort. All sets of
# one item are tried, then all of two, and so on, as long as a text has no more than SETS of them: the first that
# flips is the smallest, and a text of few items is settled. Where the sets run out, the smallest is larger than the
# largest that were all tried, and no larger than the best that was found: by any ranking, and where states are
# pooled by a greedy search (always the item whose removal is worst for the decision).


SETS = 256  # of a text, all tried: one item of 256, two of 22, every set of 8


@dataclass(frozen=True, slots=True, eq=False)
class Smallest:
    """How many items the smallest flipping set has: between low and high, which are equal where it is exact.

    high is nan where no set was found, low is nan where it is proved that there is none.
    """

    low: Floats  # (B,)
    high: Floats  # (B,)


def smallest_sets(seen: Observed, decided: Tensor, found: Floats) -> Smallest:
    """`found` (B,): the fewest items with which any ranking flipped the decision, nan for none."""
    if isinstance(seen, MixedStates) or (isinstance(seen, PooledStates) and seen.theta is not None):
        f = seen.projected if isinstance(seen, MixedStates) else logits_of_items(seen)  # (B, T, labels)
        exact = exact_smallest(f, seen.alpha, decided)
        return Smallest(exact, exact)
    return bounds(seen, decided, found)


def logits_of_items(seen: PooledStates) -> Tensor:
    """f_c if the model attended to item t alone, s_t^c + b_c: (B, T, labels)."""
    z = seen.decoder.readout(seen.projected, seen.query, seen.candidates)  # (B, T, outputs)
    labels = range(seen.y.shape[-1])
    target = torch.zeros(z.shape[:-1], dtype=torch.long)
    return torch.stack([seen.link.score(z, target + c) for c in labels], -1)


def exact_smallest(f: Tensor, alpha: Tensor, decided: Tensor) -> Floats:
    """f (B, T, labels), alpha (B, T), zero for padding -> (B,), nan where no set flips the decision."""
    own = f.gather(2, decided.view(-1, 1, 1).expand(*f.shape[:2], 1))  # (B, T, 1)
    c = alpha.unsqueeze(-1) * (own - f)  # (B, T, labels); 0 for the decided label and for padding
    c = c.sort(dim=1).values  # rising: the largest, which go first, are last
    left = c.cumsum(1).flip(1)  # (B, T, labels): [:, k] with the k largest gone
    enough = (left < 0).any(-1)  # (B, T): some label overtakes without the k largest
    enough[:, :1] = False  # nothing is gone yet: the decision stands, whatever rounding says of a tie
    k = enough.to(torch.uint8).argmax(1).double()  # the first
    return torch.where(enough.any(1), k, torch.nan).numpy()


@torch.no_grad()
def bounds(seen: Observed, decided: Tensor, found: Floats) -> Smallest:
    """Of any readout; a text of one item has no smaller part to be judged by."""
    high = found
    if isinstance(seen, PooledStates):
        high = np.fmin(found, greedy(seen, decided, found))
    each = [try_all(seen[i : i + 1], decided[i : i + 1], most) for i, most in enumerate(high)]
    low = np.array([low for low, _ in each], dtype=np.float64)
    return Smallest(low, np.fmin(high, [exact for _, exact in each]))


def try_all(text: Observed, decided: Tensor, most: float) -> tuple[float, float]:
    """(low, the smallest set's size) of one text; the size is nan where none was found, low where there is none.

    A set of `most` items is known to flip: sets of as many need not be tried.
    """
    (n,) = text.n_words.tolist()
    left = SETS
    for k in range(1, n):
        if k == most:
            return k, k
        left -= comb(n, k)
        if left < 0 and k > 1:  # single items are always tried
            return k, np.nan
        sets = torch.tensor(list(combinations(range(n), k)))  # (sets, k)
        gone = torch.zeros(1, len(sets), text.alpha.shape[1], dtype=torch.bool)
        gone[0] = gone[0].scatter(1, sets, True)
        if flipped(text.erase(gone), decided).any():
            return k, k
    return np.nan, np.nan


def greedy(seen: PooledStates, decided: Tensor, found: Floats) -> Floats:
    """The item after whose removal the decided label is least ahead goes next, until the decision flips: (B,).

    It stops where a ranking has done as well (`found`): only a smaller set is of interest. nan: none was found.
    """
    B, T = seen.alpha.shape
    weighted = seen.alpha.unsqueeze(-1) * seen.projected  # (B, T, features)
    gone = ~seen.real
    answer = np.full(B, np.nan)
    limit = np.where(np.isnan(found), seen.n_words, found)
    for k in range(1, T):
        open_ = np.isnan(answer) & (k < limit)
        if not open_.any():
            break
        sums = (weighted * ~gone.unsqueeze(-1)).sum(1, keepdim=True) - weighted  # (B, T, features)
        left = ((seen.alpha * ~gone).sum(1, keepdim=True) - seen.alpha).unsqueeze(-1)  # (B, T, 1)
        possible = ~gone & (left.squeeze(-1) > 1e-12)  # below, a difference of sums is rounding
        p = seen.readout(sums / torch.where(possible.unsqueeze(-1), left, 1.0))  # (B, T, labels)
        own = p.gather(2, decided.view(-1, 1, 1).expand(B, T, 1))
        other = p.scatter(2, decided.view(-1, 1, 1).expand(B, T, 1), -1.0).amax(-1)
        ahead = (own.squeeze(-1) - other).masked_fill(~possible, torch.inf)  # (B, T)
        best, item = ahead.min(1)
        answer = np.where(open_ & (best < 0).numpy(), k, answer)
        gone = gone.scatter(1, item.unsqueeze(1), True)
    return answer
