"""Omission: how much of the score is lost when a word is left out (Kádár et al. 2017; Poerner et al. 2018).

    s_i = f_c(x_1:n) - f_c(x_1, ..., x_{i-1}, x_{i+1}, ..., x_n)

the variant of occlusion in Bastings & Filippova 2020, section 3.3: the text becomes one word shorter.
Exact; a BiLSTM, a CNN or an average of ours computes again only what the missing word changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from heedful.explainers.explainer import Explainer, Scores
from heedful.explainers.occlusion import Change, Parts, effects
from heedful.explainers.perturb import Progress
from heedful.models.classifier import AttentiveClassifier, Of, Output
from heedful.records import Batch

# Jain & Wallace 2019, section 4.1: leave-one-out is the total variation distance of the outputs.
JAIN_WALLACE: Mapping[str, Any] = MappingProxyType({"change": "tvd"})


def omission(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    absolute: bool = False,
    change: Change = "score",
    parts: Parts = "both",
    state_tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
    output: Output | None = None,
) -> Scores:
    """The drop of f_c (or the change of all outputs, `change="tvd"`) when each word is left out.

    state_tolerance: with a BiLSTM, a shortened text whose state has come back to the original's within it is not
    read further; 0 reads all of it.
    output: what the model says of the batch as it is, where that is known already.
    """
    return effects(
        model,
        batch,
        target,
        "delete",
        of=of,
        absolute=absolute,
        change=change,
        parts=parts,
        state_tolerance=state_tolerance,
        internal_batch_size=internal_batch_size,
        progress=progress,
        output=output,
    )


OMISSION = Explainer("omission", "saliency", True, "n + 1 forward", omission, removal="word deleted")
