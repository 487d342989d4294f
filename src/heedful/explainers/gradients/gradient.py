"""Gradients of f_c with respect to the word embeddings (Bastings & Filippova 2020, section 3.1).

Everything here starts at the embeddings x: nothing is accumulated on parameters, nothing is hooked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal, TypedDict

import torch
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import Scores, scores_of_tokens
from heedful.explainers.gradients.path import PathGradient, gradients_of
from heedful.models.link import OFS, Of
from heedful.models.network import Differentiable, Network, require
from heedful.records import Batch

Parts = Literal["passage", "query", "both"]


class GradientOptions(TypedDict):
    """Options of `gradient` and `gradient_x_input`, to be kept under a name."""

    of: Of
    hold_attention: bool
    absolute: bool


JAIN_WALLACE: Final[GradientOptions] = {"of": "probability", "hold_attention": True, "absolute": True}
"""`gradient_x_input(model, batch, predicted, **JAIN_WALLACE)` is what Jain & Wallace 2019, algorithm 1, call
the gradient: |sum_d dp/dx_d x_d|, the computation graph cut at the attention module."""


def slopes(
    model: Differentiable,
    batch: Batch,
    target: Tensor,
    *,
    product: bool,
    of: Of = "logit",
    parts: Parts = "both",
    hold_attention: bool = False,
    absolute: bool = False,
) -> Scores:
    """d f_c / d x_i, as a norm or times x_i.

    `gradient` is || d f_c / d x_i ||_2: sensitivity (equation 2, with the norm the text names), never negative.
    `gradient_x_input` is d f_c / d x_i . x_i: saliency, signed unless `absolute` (equation 3; Denil et al. 2015).
    `hold_attention`: alpha is a constant, so words count only through the states they make.
    """
    asked = explained_parts(model, batch, parts, of)
    gradients, end = _at_input(model, batch, target, of, asked, hold_attention)
    if product:
        found = [None if one is None else one[:, 0] for one in gradients.by_step(end, room=1)]
    else:
        found = gradients.norms()
    return _scores(batch, [None if one is None else one.abs() for one in found] if absolute else found)


def _at_input(
    model: Differentiable, batch: Batch, target: Tensor, of: Of, asked: tuple[Parts, ...], hold_attention: bool
) -> tuple[PathGradient, Tensor]:
    """The way from zero to x, and its last point: a step along it is there d f_c / d x . x."""
    if hold_attention:
        require({"edits_attention"}, model.can, "hold_attention")
    zero = torch.zeros((), device=model.device, dtype=model.dtype)
    starts = (zero if "passage" in asked else None, zero if "query" in asked else None)
    way = gradients_of(model)(model, batch, target, of, starts, hold_attention, special=True)
    return way, zero.new_ones(1)


def _scores(batch: Batch, values: Sequence[Tensor | None]) -> Scores:
    """Scores from the values (batch, length) of passage and query: zero for a part that stayed where it was."""
    passage, query = values
    if passage is None:
        assert query is not None
        passage = query.new_zeros(batch.passage.ids.shape)
    return scores_of_tokens(passage, query, batch, len(batch), len(batch))


def explained_parts(model: Network, batch: Batch, parts: Parts, of: Of = "logit") -> tuple[Parts, ...]:
    """The parts to be explained, after a check of what was asked."""
    if of not in OFS:
        raise one_of("choice of", of, list(OFS))
    if parts not in ("passage", "query", "both"):
        raise one_of("choice of parts", parts, ["passage", "query", "both"])
    if parts == "query" and not model.has_query:
        raise Mistake("parts='query': this model reads no query, so only its passage can be explained.")
    if parts == "both":
        return ("passage", "query") if model.has_query and batch.query is not None else ("passage",)
    return (parts,)


gradient = partial(slopes, product=False)
gradient_x_input = partial(slopes, product=True)
