"""Gradients of f_c with respect to the word embeddings (Bastings & Filippova 2020, section 3.1).

Everything here starts at the embeddings x: nothing is accumulated on parameters, nothing is hooked.
"""

from __future__ import annotations

from typing import Final, Literal, TypedDict

import torch
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers import recurrence
from heedful.explainers.explainer import Scores
from heedful.explainers.journey import depart
from heedful.models import AttentiveClassifier
from heedful.models.classifier import Of, score
from heedful.models.encoders import BiLSTM, Encoder
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
    asked = chosen(model, parts, of)
    x, x_query = embeddings(model, batch)
    slopes = gradients(model, batch, x, x_query, target, of, asked, hold_attention)
    norms = {part: slope.square().sum(-1).sqrt() for part, slope in zip(asked, slopes, strict=True)}
    return _scores(batch, norms, x)


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
    asked = chosen(model, parts, of)
    zero = model.embedding.weight.new_zeros(())
    starts = (zero if "passage" in asked else None, zero if "query" in asked else None)
    journey = depart(model, batch, target, of, starts, hold_attention)
    end = zero.new_ones(1)  # d f_c / d x . (x - 0), at x: the last point of the way from zero to x
    names: tuple[Parts, ...] = ("passage", "query")
    shares = dict(zip(names, journey.integrate(end, end, room=1), strict=False))
    return _scores(batch, {part: shares[part].abs() if absolute else shares[part] for part in asked}, zero)


def _scores(batch: Batch, values: dict[Parts, Tensor], like: Tensor) -> Scores:
    """Scores from the values (batch, length) of the parts that were asked for."""
    query = None
    if "query" in values and batch.query is not None:
        query = values["query"] * batch.query.mask
    elsewhere = like.new_zeros(batch.passage.ids.shape)
    return Scores(
        passage=values["passage"] * batch.passage.mask if "passage" in values else elsewhere,
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
    """The gradient of f_c with respect to each part asked for, like x or x_query in shape."""
    x, x_query = x.detach(), x_query.detach() if x_query is not None else None
    leaves = {"passage": x, "query": x_query}
    wanted = [leaf.requires_grad_() for part in asked if (leaf := leaves[part]) is not None]
    with torch.enable_grad():
        f = explained(model, batch, x, x_query, target, of, hold_attention)
        return torch.autograd.grad(f.sum(), wanted)  # texts do not mix: one sum serves them all


def explained(
    model: AttentiveClassifier,
    batch: Batch,
    x: Tensor,
    x_query: Tensor | None,
    target: Tensor,
    of: Of,
    hold_attention: bool,
) -> Tensor:
    """f_c (batch,) as a function of the embeddings."""
    query = None
    if batch.query is not None and x_query is not None and model.query_encoder is not None:
        reader, present = model.query_encoder, batch.query.present
        query = reader.summary(_encode(reader, x_query, present), present)  # (batch, hidden)
    h = _encode(model.encoder, x, batch.passage.present)  # (batch, length, hidden)
    with torch.set_grad_enabled(not hold_attention):
        alpha = model.attend(h, batch.passage.mask, query)  # (batch, length)
    return score(model.decode(h, alpha, query, batch.candidates), target, of)


def _encode(encoder: Encoder, x: Tensor, present: Tensor) -> Tensor:
    """h (batch, length, hidden), differentiable with respect to x."""
    if type(encoder) is BiLSTM:
        return recurrence.encode(encoder, x, present)
    h: Tensor = encoder(x, present)
    return h
