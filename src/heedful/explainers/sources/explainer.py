"""`sources`: what the words or units of a text do together, exactly where they are few, else by a sparse surrogate."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import Passes, Scores, Size
from heedful.explainers.gradients.gradient import Parts
from heedful.explainers.options import Samples
from heedful.explainers.perturbation.surrogate import Fitted, Function, Missing, explain_subsets
from heedful.explainers.sources.ablations import LAMBDA, ablate
from heedful.explainers.sources.subsets import VALUES, Value, all_subsets, values_of
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch

Exact = Annotated[int, Field(ge=0, le=16)]
Share = Annotated[float, Field(gt=0, lt=1)]
EXACT, N_ABLATIONS = 12, 64


def sources(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    value: Value = "shapley",
    of: Of = "logit",
    exact: Exact = EXACT,
    n_ablations: Samples = N_ABLATIONS,
    keep: Share = 0.5,
    penalty: float = LAMBDA,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "passage",
    internal_batch_size: int | None = None,
) -> Scores:
    """A number for each word, or for each unit where the text is in units (data/text/units.py).

    Up to `exact` of them f is asked of all 2^u subsets, and `value` is exact. Beyond, the weights of ContextCite's
    surrogate on `n_ablations` random ablations; gap = 1 - its rank correlation with f on ablations that it was not
    fitted to (4 folds), scale = 1. The weights are then those of `value` of the surrogate, which is the same for all.
    """
    if value not in VALUES:
        raise one_of("value", value, list(VALUES))
    if n_ablations < 8:
        raise Mistake(f"n_ablations must be at least 8, not {n_ablations}: four folds of pairs are held out in turn.")

    def fit(f: Function, units: int, rng: np.random.Generator) -> Fitted:
        if units <= exact:
            return Fitted(values_of(f(all_subsets(units)), value), 0.0, 1.0, 0.0)
        found = ablate(f, units, n_ablations, rng, keep, penalty=penalty)
        return Fitted(found.weights, 1 - found.lds if np.isfinite(found.lds) else 1.0, 1.0, 0.0)

    found = explain_subsets(model, batch, target, fit, of, operator, token, seed, parts, internal_batch_size)
    return replace(found, spread=None)


def passes(size: Size) -> Passes:
    units = size.words[0]
    return Passes(2**units if units <= EXACT else N_ABLATIONS)
