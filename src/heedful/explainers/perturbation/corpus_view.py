"""The dataset view of Li et al. 2016 ("Understanding neural networks through representation erasure").

With S(e, c) = -log P(c | e), the importance of something that can be erased, over the examples E, is the mean
relative change of S when it is erased:

    I = 1/|E| sum_e (S(e without it, c) - S(e, c)) / S(e, c)

Their equation has the two terms of the difference the other way round; here more important is larger. The
ratio grows without bound where the model is sure of c, so the mean difference of S itself is given beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.perturbation.one_word import change_each_word
from heedful.models.link import Link
from heedful.models.network import Network
from heedful.records import Batch

Label = Literal["true", "predicted"]


@dataclass(frozen=True, slots=True, eq=False)
class Erased:
    """What erasing each word of some texts does to S = -log P(c | text)."""

    label: Tensor  # (batch,) c
    difference: Tensor  # (batch, length) S without the word - S, in nats
    relative: Tensor  # (batch, length) as a share of S


def erase_words(model: Network, batch: Batch, *, label: Label = "true") -> Erased:
    """One word of the passage deleted at a time."""
    asked = change_each_word(model, batch, "delete")
    c = _labels(model.link, batch, asked.original, label)  # (batch,)
    S = surprise(model.link, asked.original, c).unsqueeze(1)  # (batch, 1)
    places = c.unsqueeze(1).expand(asked.changed.shape[:2])  # (batch, length)
    change = surprise(model.link, asked.changed, places) - S  # (batch, length)
    return Erased(c, change, change / S)


def surprise(link: Link, logits: Tensor, label: Tensor) -> Tensor:
    """S = -log P(label), in float64: logits (..., outputs), label (...) -> (...).

    At least the smallest positive number, so that (S' - S) / S is defined where P is 1.
    """
    S = -link.log_probabilities(logits.double()).gather(-1, label.unsqueeze(-1)).squeeze(-1)
    return S.clamp(min=torch.finfo(torch.float64).eps)


def _labels(link: Link, batch: Batch, logits: Tensor, label: Label) -> Tensor:
    if label not in ("true", "predicted"):
        raise one_of("label", label, ["true", "predicted"])
    if label == "predicted":
        return link.predicted(logits)
    if batch.labels is None:
        raise Mistake("these texts have no labels: ask for label='predicted'.")
    return batch.labels
