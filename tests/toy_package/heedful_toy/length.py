"""An explainer that learns: how rare a word is in the training texts, which has nothing to do with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.plugins import Batch, Explainer, Scores


def fit(network: Any, batches: Any, rng: np.random.Generator) -> Mapping[str, Any]:
    counts = np.zeros(network.n_words)
    for _, batch in batches:
        counts += np.bincount(batch.passage.ids[batch.passage.mask].numpy(), minlength=network.n_words)
    return {"rarity": 1 / (1 + counts)}


def rarity(network: Any, batch: Batch, target: Tensor, *, power: float = 1.0, state: Any = None) -> Scores:
    """Rarity to some power; without what was learnt, every word is as rare."""
    table = torch.from_numpy(state["rarity"]) if state else torch.ones(network.n_words, dtype=torch.float64)
    scores = table[batch.passage.ids] ** power * batch.passage.mask
    return Scores(scores.to(network.dtype))


RARITY = Explainer("toy_rarity", "control", False, "none", rarity, needs=frozenset({"predicts"}), fit=fit)
PLAIN = Explainer("toy_plain", "saliency", False, "none", rarity, title="plain toy", citation="Toy 2026", usual=True)
