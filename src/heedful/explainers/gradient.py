"""Gradients of f_c with respect to the word embeddings (Bastings & Filippova 2020, section 3.1).

Everything here starts at the embeddings x: nothing is accumulated on parameters, nothing is hooked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypedDict

import torch
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import Scores
from heedful.models import AttentiveClassifier
from heedful.models.classifier import Of, score
from heedful.records import Batch, Tokens

Parts = Literal["passage", "query", "both"]


class GradientOptions(TypedDict):
    """Options of `gradient` and `gradient_x_input`, to be kept under a name."""

    of: Of
    hold_attention: bool
    absolute: bool


JAIN_WALLACE: Final[GradientOptions] = {"of": "probability", "hold_attention": True, "absolute": True}
"""`gradient_x_input(model, batch, predicted, **JAIN_WALLACE)` is what Jain & Wallace 2019, algorithm 1, call
the gradient: |sum_d dp/dx_d x_d|, the computation graph cut at the attention module."""


def gradient(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    parts: Parts = "both",
    hold_attention: bool = False,
    absolute: bool = False,
) -> Scores:
    """|| d f_c / d x_i ||_2: sensitivity (equation 2, with the norm the text names). Never negative.

    `absolute` changes nothing here, and is taken so that one set of options serves both methods.
    """
    return _from_gradients(_norm, model, batch, target, of, parts, hold_attention, absolute)


def gradient_x_input(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    parts: Parts = "both",
    hold_attention: bool = False,
    absolute: bool = False,
) -> Scores:
    """d f_c / d x_i . x_i: saliency, signed unless `absolute` (equation 3; Denil et al. 2015).

    `hold_attention`: alpha is a constant, so words count only through the states they make.
    """
    return _from_gradients(_dot, model, batch, target, of, parts, hold_attention, absolute)


def _norm(slope: Tensor, x: Tensor) -> Tensor:
    return slope.square().sum(-1).sqrt()  # (batch, length)


def _dot(slope: Tensor, x: Tensor) -> Tensor:
    return (slope * x).sum(-1)  # (batch, length)


def _from_gradients(
    reduce: Callable[[Tensor, Tensor], Tensor],
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    of: Of,
    parts: Parts,
    hold_attention: bool,
    absolute: bool,
) -> Scores:
    x, x_query = embeddings(model, batch)
    asked = chosen(model, parts, of)
    slopes = gradients(model, batch, x, x_query, target, of, asked, hold_attention)

    def scores(part: Parts, tokens: Tokens, x: Tensor) -> Tensor:
        values = reduce(slopes[asked.index(part)], x)  # (batch, length)
        return (values.abs() if absolute else values) * tokens.mask

    query = None
    if "query" in asked and batch.query is not None and x_query is not None:
        query = scores("query", batch.query, x_query)
    return Scores(
        passage=scores("passage", batch.passage, x) if "passage" in asked else x.new_zeros(x.shape[:2]),
        query=query,
        forward_passes=len(batch),
        backward_passes=len(batch),
    )


def embeddings(model: AttentiveClassifier, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """x (batch, length, dim), and x of the query where there is one, as constants."""
    with torch.no_grad():
        x_query = model.embed(batch.query) if model.has_query and batch.query is not None else None
        return model.embed(batch.passage), x_query


def chosen(model: AttentiveClassifier, parts: Parts, of: Of = "logit") -> tuple[Parts, ...]:
    """The parts to be explained, after a check of what was asked."""
    if of not in ("logit", "probability"):
        raise one_of("choice of", of, ["logit", "probability"])
    if parts not in ("passage", "query", "both"):
        raise one_of("choice of parts", parts, ["passage", "query", "both"])
    if parts == "query" and not model.has_query:
        raise Mistake("parts='query': this model reads no query, so only its passage can be explained.")
    if parts == "both":
        return ("passage", "query") if model.has_query else ("passage",)
    return (parts,)


def gradients(
    model: AttentiveClassifier,
    batch: Batch,
    x: Tensor,
    x_query: Tensor | None,
    target: Tensor,
    of: Of,
    asked: tuple[Parts, ...],
    hold_attention: bool = False,
) -> tuple[Tensor, ...]:
    """The gradient of f_c with respect to each part asked for, like x or x_query in shape.

    cuDNN's LSTM has no backward pass in eval mode, so the backward pass is done without cuDNN, here only.
    """
    leaves = {"passage": x.detach(), "query": x_query.detach() if x_query is not None else None}
    wanted = [leaf.requires_grad_() for part in asked if (leaf := leaves[part]) is not None]
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        f = explained(model, batch, leaves["passage"], leaves["query"], target, of, hold_attention)
        return torch.autograd.grad(f.sum(), wanted)  # texts do not mix: one sum serves them all


def explained(
    model: AttentiveClassifier,
    batch: Batch,
    x: Tensor | None,
    x_query: Tensor | None,
    target: Tensor,
    of: Of,
    hold_attention: bool = False,
) -> Tensor:
    """f_c (batch,) as a function of the embeddings."""
    if not hold_attention:
        return model(batch, x=x, x_query=x_query).score(target, of)
    assert x is not None
    query = None
    if batch.query is not None and x_query is not None:
        query = model.encode_query(x_query, batch.query.present)  # (batch, hidden)
    h = model.encode(x, batch.passage.present)  # (batch, length, hidden)
    with torch.no_grad():
        alpha = model.attend(h, batch.passage.mask, query)  # (batch, length)
    return score(model.decode(h, alpha, query, batch.candidates), target, of)
