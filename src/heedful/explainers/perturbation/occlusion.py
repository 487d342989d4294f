"""Occlusion, mask and omission: how much of the score is lost without a word.

    s_i = f_c(x_1:n) - f_c(x_1:n without word i)                  (Bastings & Filippova 2020, equation 5)

`occlusion` leaves the word in its place with an embedding of zeros (Zeiler & Fergus 2014; Li et al. 2016), `mask`
replaces it by another token, `omission` deletes it, so that the text becomes one word shorter (Kádár et al. 2017;
Poerner et al. 2018; section 3.3). Exact; a BiLSTM, a CNN or an average of ours computes again only what changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor

from heedful.errors import one_of
from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.perturbation.edits import Operator
from heedful.explainers.perturbation.one_word import OneWord, change_each_word
from heedful.explainers.perturbation.perturb import Progress
from heedful.models.link import Link, Of
from heedful.models.network import Network, Output
from heedful.records import Batch, Part, Tokens

Change = Literal["score", "tvd"]

# Jain & Wallace 2019, section 4.1: leave-one-out is omission by the total variation distance of the outputs.
LEAVE_ONE_OUT: Mapping[str, Any] = MappingProxyType({"change": "tvd"})


def effects(
    model: Network,
    batch: Batch,
    target: Tensor,
    operator: Operator,
    *,
    token: int | None = None,
    of: Of = "logit",
    absolute: bool = False,
    change: Change = "score",
    parts: Parts = "both",
    state_tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
    output: Output | None = None,
) -> Scores:
    """The effect of changing each word by itself, in the passage, the query, or both.

    operator: the word is deleted, replaced by the id `token` (None: the mask, or the unknown word), or its embedding
    is zero. A word of several pieces is changed whole, and its pieces share the effect.
    change: the drop of f_c ("score"), or the total variation distance of the outputs ("tvd"), which needs no
    target and is never negative.
    state_tolerance: with a BiLSTM, a changed text whose state has come back to the original's within it is not read
    further; 0 reads all of it. output: what the model says of the batch as it is, where that is known already.
    """
    asked_parts = explained_parts(model, batch, parts, of)
    if change not in ("score", "tvd"):
        raise one_of("change", change, ["score", "tvd"])

    def effect(part: Part, tokens: Tokens) -> Tensor:
        asked = change_each_word(
            model,
            batch,
            operator,
            part,
            token=token,
            tolerance=state_tolerance,
            internal_batch_size=internal_batch_size,
            progress=progress,
            output=output,
        )
        drops = difference(model.link, asked, target, of, change)  # (batch, length)
        drops = (drops.abs() if absolute else drops) * tokens.mask
        return drops if tokens.word_index is None else drops / pieces_of(tokens)

    passage, query = torch.zeros(batch.passage.ids.shape, device=model.device, dtype=model.dtype), None
    passes = torch.zeros(len(batch), dtype=torch.long, device=model.device)  # the text itself, and one for each word
    if "passage" in asked_parts:
        passage, passes = effect("passage", batch.passage), 1 + n_words(batch.passage)
    if "query" in asked_parts and batch.query is not None:
        query = effect("query", batch.query)
        passes = passes + 1 + n_words(batch.query)
        passage = passage.to(query.dtype)
    return Scores(passage=passage, query=query, forward_passes=passes)


def n_words(tokens: Tokens) -> Tensor:
    """(batch,)"""
    if tokens.word_index is None:
        return tokens.mask.sum(1)
    return (tokens.word_index * tokens.mask + tokens.mask.long() - 1).amax(1) + 1


def difference(link: Link, asked: OneWord, target: Tensor, of: Of, change: Change) -> Tensor:
    """What changing each word changes, in float64 from the logits: (batch, length).

    Differences of probabilities are not taken of probabilities (`Link.change`): where the model is sure, they are far
    below what float32, or 1 - p in float64, can hold, and ranks would be those of rounding.
    """
    before, after = (asked.original.unsqueeze(1), asked.changed)  # (batch, 1, outputs), (batch, length, outputs)
    if change == "tvd":
        return link.size(link.change(before, after))
    places = target.unsqueeze(1).expand(after.shape[:2])  # (batch, length)
    if of == "probability":
        return link.change(before, after).gather(-1, places.unsqueeze(-1)).squeeze(-1)
    return link.score(before.double().expand(after.shape), places, of) - link.score(after.double(), places, of)


def pieces_of(tokens: Tokens) -> Tensor:
    """How many tokens the word has that a token belongs to, at least 1: (batch, length)."""
    index = tokens.word_index
    assert index is not None
    words = index.clamp(min=0)
    counts = torch.zeros(len(index), int(words.max()) + 1, dtype=torch.long, device=index.device)
    counts.scatter_add_(1, words, tokens.mask.long())
    return counts.gather(1, words).clamp(min=1)


occlusion = partial(effects, operator="zero", token=None, change="score", output=None)
mask = partial(effects, operator="replace", change="score", output=None)
omission = partial(effects, operator="delete", token=None)
