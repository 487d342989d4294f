"""Soft comprehensiveness and sufficiency (Zhao & Aletras 2023): not words but elements of embeddings are dropped.

    x'_i = x_i * e_i,   e_i ~ Bernoulli(a_i) element by element to keep what is important (sufficiency),
                        e_i ~ Bernoulli(1 - a_i) to drop it (comprehensiveness)
    soft C = max(0, f(x) - f(x')),   soft S = 1 - max(0, f(x) - f(x'))
    soft NC = soft C / (1 - S_0),    soft NS = (soft S - S_0) / (1 - S_0),   S_0 = 1 - max(0, f(x) - f(0))

with a_i the score of word i between 0 (the lowest of its text) and 1 (the highest), and f(0) of the text whose words
have embeddings of zeros. Means over draws. All methods share the same uniform numbers, so that they differ by their
scores alone; the floor gives the same scores to the words in a random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.experiment import Floats, Ints
from heedful.experiments.faithfulness_removals import output_of
from heedful.models.link import IDENTITY
from heedful.models.network import Differentiable, Network
from heedful.records import Batch

TOKENS = 2**12  # of copies of texts that are read together


def between_0_and_1(scores: Floats) -> Floats:
    """The lowest score is 0, the highest 1; scores that are all equal are 1/2 each."""
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.full(len(scores), 0.5)


def soft_drops(
    model: Network,
    batch: Batch,
    words: Sequence[Ints],
    whole: Tensor,
    target: Tensor,
    probabilities: Sequence[Floats | None],
    seeds: Sequence[int],
    draws: int,
) -> Floats:
    """Mean over draws of max(0, f(x) - f(x')) when each element of word i is kept with probability q_i: (batch,).

    `whole` is f(x) of each text (batch,); `probabilities` are q (n,) of each, None: nan. A number that is predicted may
    also rise: it is not cut at 0.
    """
    network = cast(Differentiable, model)
    x = network.embed(batch.passage)  # (batch, length, dim)
    found = np.full(len(batch), np.nan)
    rows = [row for row, q in enumerate(probabilities) if q is not None]
    if not rows:
        return found
    with torch.no_grad():
        size = max(1, TOKENS // (batch.passage.ids.shape[1] * draws))
        for begin in range(0, len(rows), size):
            some = rows[begin : begin + size]
            copies = torch.tensor(np.repeat(some, draws), device=x.device)  # (copies,)
            kept = torch.stack(
                [
                    _kept(x[row], words[row], cast(Floats, probabilities[row]), seeds[row], draws)
                    for row in some
                ]
            )  # (some, draws, length, dim)
            dropped = x[copies] * kept.flatten(0, 1).to(x)
            taken = batch.rows(copies)
            width = taken.passage.ids.shape[1]
            said = output_of(model.link, model(taken, x=dropped[:, :width]).logits, target[copies])
            drop = whole[copies] - said
            drop = drop if model.link is IDENTITY else drop.clamp(min=0)
            found[some] = drop.view(len(some), draws).mean(1).cpu().numpy()
    return found


def _kept(x: Tensor, word: Ints, q: Floats, seed: int, draws: int) -> Tensor:
    """Which elements stay: (draws, length, dim) bool. What is no word stays whole."""
    here = np.flatnonzero(word >= 0)
    uniform = np.random.default_rng(seed).random((draws, len(here), x.shape[-1]), dtype=np.float32)
    kept = np.ones((draws, len(word), x.shape[-1]), dtype=np.bool_)
    kept[:, here] = uniform < q[word[here]][None, :, None]
    return torch.from_numpy(kept)
