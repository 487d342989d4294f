"""The words that a model selects, and how probable each was: see selection.py."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.explainer import Scores
from heedful.models.network import Network, Selects
from heedful.records import Batch


def rationale(model: Selects, batch: Batch, target: Tensor) -> Scores:
    """The probability of each word to be selected where it was, 0 where it was not; the same for every target."""
    if why := model.failure:
        raise Mistake(f"rationale: {why}.")
    with torch.no_grad():
        p = model.probability(batch)  # (batch, length)
        selected = model.select(batch) > 0
        least = torch.finfo(p.dtype).tiny  # a selected word is above 0, however improbable it was
        return Scores(passage=torch.where(selected, p.clamp(min=least), 0.0), forward_passes=len(batch))


def why_not(network: Network) -> str:
    """A selection that failed to train explains nothing."""
    return str(getattr(network, "failure", ""))
