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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.experiments.erase import decision
from heedful.experiments.experiment import States
from heedful.experiments.observe import Observed
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
