"""Attention as an explanation: the weights themselves, the claim that is on trial."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.explainers.explainer import Explainer, Scores
from heedful.models import AttentiveClassifier
from heedful.records import Batch


def attention(model: AttentiveClassifier, batch: Batch, target: Tensor) -> Scores:
    """alpha_t, the same for every target (Bastings & Filippova 2020, equation 1). A query gets no scores."""
    with torch.no_grad():
        output = model(batch)
    return Scores(passage=output.alpha, forward_passes=len(batch))


ATTENTION = Explainer("attention", "attention", False, "1 forward", attention)
