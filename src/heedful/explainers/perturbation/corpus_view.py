"""The dataset view of Li et al. 2016 ("Understanding neural networks through representation erasure").

With S(e, c) = -log P(c | e), the importance of something that can be erased, over the examples E, is the mean
relative change of S when it is erased:

    I = 1/|E| sum_e (S(e without it, c) - S(e, c)) / S(e, c)

Their equation has the two terms of the difference the other way round; here more important is larger. The
ratio grows without bound where the model is sure of c, so the mean difference of S itself is given beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.perturbation.edits import Operator
from heedful.explainers.perturbation.one_word import change_each_word
from heedful.explainers.perturbation.perturb import evaluating
from heedful.models.link import Link
from heedful.models.network import Differentiable, Network
from heedful.records import Batch

Label = Literal["true", "predicted"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WordImportance:
    """For each word id of the vocabulary; NaN where a word never occurs (count 0)."""

    count: NDArray[np.int64]  # (words,) occurrences that were erased
    relative: Floats  # (words,) mean of (S without - S) / S
    difference: Floats  # (words,) mean of S without - S, in nats


@dataclass(frozen=True, slots=True, eq=False)
class DimensionImportance:
    """For each dimension of the word embeddings, over `count` examples."""

    count: int
    relative: Floats  # (dim,)
    difference: Floats  # (dim,)


def word_importance(
    model: Differentiable,
    batches: Iterable[Batch],
    *,
    operator: Operator = "delete",
    token: int | None = None,
    label: Label = "true",
    tolerance: float = 0.0,
    internal_batch_size: int | None = None,
) -> WordImportance:
    """The mean effect of erasing one occurrence of each word of the passages, by word id."""
    n_words = model.n_words
    count = np.zeros(n_words, dtype=np.int64)
    relative, difference = np.zeros(n_words), np.zeros(n_words)
    for batch in batches:
        erased = erase_words(
            model,
            batch,
            operator,
            token=token,
            label=label,
            tolerance=tolerance,
            internal_batch_size=internal_batch_size,
        )
        mask = batch.passage.mask
        ids = batch.passage.ids[mask].cpu().numpy()
        count += np.bincount(ids, minlength=n_words)
        difference += np.bincount(ids, erased.difference[mask].cpu().numpy(), minlength=n_words)
        relative += np.bincount(ids, erased.relative[mask].cpu().numpy(), minlength=n_words)
    seen = np.where(count > 0, count, np.nan)
    return WordImportance(count, relative / seen, difference / seen)


@dataclass(frozen=True, slots=True, eq=False)
class Erased:
    """What erasing each word of some texts does to S = -log P(c | text)."""

    label: Tensor  # (batch,) c
    difference: Tensor  # (batch, length) S without the word - S, in nats
    relative: Tensor  # (batch, length) as a share of S


def erase_words(
    model: Network,
    batch: Batch,
    operator: Operator = "delete",
    *,
    token: int | None = None,
    label: Label = "true",
    tolerance: float = 0.0,
    internal_batch_size: int | None = None,
) -> Erased:
    """One word of the passage at a time."""
    asked = change_each_word(
        model, batch, operator, token=token, tolerance=tolerance, internal_batch_size=internal_batch_size
    )
    c = _labels(model.link, batch, asked.original, label)  # (batch,)
    S = surprise(model.link, asked.original, c).unsqueeze(1)  # (batch, 1)
    places = c.unsqueeze(1).expand(asked.changed.shape[:2])  # (batch, length)
    change = surprise(model.link, asked.changed, places) - S  # (batch, length)
    return Erased(c, change, change / S)


def dimension_importance(
    model: Differentiable, batches: Iterable[Batch], *, label: Label = "true"
) -> DimensionImportance:
    """The mean effect of setting dimension d of all word embeddings to 0, for every d."""
    count, relative, difference = 0, np.zeros(0), np.zeros(0)
    with evaluating(model), torch.no_grad():
        for batch in batches:
            x = model.embed(batch.passage)  # (batch, length, dim)
            x_query = None if batch.query is None or not model.has_query else model.embed(batch.query)
            if count == 0:
                relative, difference = np.zeros(x.shape[-1]), np.zeros(x.shape[-1])
            out = model(batch)
            c = _labels(model.link, batch, out.logits, label)
            S = surprise(model.link, out.logits, c)  # (batch,)
            count += len(batch)
            for d in range(x.shape[-1]):
                change = surprise(model.link, _without(model, batch, x, x_query, d), c) - S
                difference[d] += float(change.sum())
                relative[d] += float((change / S).sum())
    if count == 0:
        raise Mistake("there are no examples to average over.")
    return DimensionImportance(count, relative / count, difference / count)


def surprise(link: Link, logits: Tensor, label: Tensor) -> Tensor:
    """S = -log P(label), in float64: logits (..., outputs), label (...) -> (...).

    At least the smallest positive number, so that (S' - S) / S is defined where P is 1.
    """
    S = -link.log_probabilities(logits.double()).gather(-1, label.unsqueeze(-1)).squeeze(-1)
    return S.clamp(min=torch.finfo(torch.float64).eps)


def _without(model: Differentiable, batch: Batch, x: Tensor, x_query: Tensor | None, d: int) -> Tensor:
    """The logits with dimension d of every embedding at 0, of passage and query."""
    given = {name: part.clone() for name, part in (("x", x), ("x_query", x_query)) if part is not None}
    for part in given.values():
        part[..., d] = 0
    return model(batch, **given).logits


def _labels(link: Link, batch: Batch, logits: Tensor, label: Label) -> Tensor:
    if label not in ("true", "predicted"):
        raise one_of("label", label, ["true", "predicted"])
    if label == "predicted":
        return link.predicted(logits)
    if batch.labels is None:
        raise Mistake("these texts have no labels: ask for label='predicted'.")
    return batch.labels
