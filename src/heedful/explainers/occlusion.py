"""Occlusion: how much of the score is lost without a word (Zeiler & Fergus 2014; Li et al. 2016).

    s_i = f_c(x_1:n) - f_c(x_1:n | x_i = 0)                  (Bastings & Filippova 2020, equation 5)

Here the word stays in its place and its embedding is zero (`occlusion`) or that of another token
(`masking`); omission.py leaves the word out.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from heedful.data.vocabulary import UNK
from heedful.errors import one_of
from heedful.explainers.edits import Operator
from heedful.explainers.explainer import Explainer, Scores
from heedful.explainers.one_word import OneWord, change_each_word
from heedful.explainers.perturb import Part, Progress
from heedful.models.classifier import AttentiveClassifier, Of, Output, probabilities, score
from heedful.records import Batch, Tokens

Parts = Literal["passage", "query", "both"]
Change = Literal["score", "tvd"]


def occlusion(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    absolute: bool = False,
    parts: Parts = "both",
    state_tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """f_c(x) - f_c(x | x_i = 0): the embedding of word i set to zero (equation 5)."""
    return effects(
        model,
        batch,
        target,
        "zero",
        of=of,
        absolute=absolute,
        parts=parts,
        state_tolerance=state_tolerance,
        internal_batch_size=internal_batch_size,
        progress=progress,
    )


def masking(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    *,
    token: int = UNK,
    of: Of = "logit",
    absolute: bool = False,
    parts: Parts = "both",
    state_tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """f_c(x) - f_c(x | w_i = token): word i replaced by the id `token`, the unknown word by default."""
    return effects(
        model,
        batch,
        target,
        "replace",
        token=token,
        of=of,
        absolute=absolute,
        parts=parts,
        state_tolerance=state_tolerance,
        internal_batch_size=internal_batch_size,
        progress=progress,
    )


def effects(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    operator: Operator,
    *,
    token: int = UNK,
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

    change: the drop of f_c ("score"), or the total variation distance of the outputs ("tvd"), which needs no
    target and is never negative.
    """
    for what, given, known in (
        ("score", of, ["logit", "probability"]),
        ("change", change, ["score", "tvd"]),
        ("part of a text", parts, ["passage", "query", "both"]),
    ):
        if given not in known:
            raise one_of(what, given, known)

    def effect(part: Part, tokens: Tokens) -> tuple[Tensor, int]:
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
        drops = difference(asked, target, of, change)  # (batch, length)
        return (drops.abs() if absolute else drops) * tokens.mask, asked.texts

    texts = 0
    passage, query = torch.zeros(batch.passage.ids.shape, device=batch.passage.ids.device), None
    if parts != "query":
        passage, texts = effect("passage", batch.passage)
    if parts != "passage" and batch.query is not None and model.has_query:
        query, of_query = effect("query", batch.query)
        texts += of_query
        passage = passage.to(query.dtype)
    return Scores(passage=passage, query=query, forward_passes=texts)


def difference(asked: OneWord, target: Tensor, of: Of, change: Change) -> Tensor:
    """What changing each word changes: (batch, length)."""
    if change == "tvd":
        before = probabilities(asked.original).unsqueeze(1)  # (batch, 1, labels)
        return (before - probabilities(asked.changed)).abs().sum(-1) / 2
    before = score(asked.original, target, of).unsqueeze(1)  # (batch, 1)
    after = score(asked.changed, target.unsqueeze(1).expand(asked.changed.shape[:2]), of)
    return before - after


OCCLUSION = Explainer(
    "occlusion", "saliency", True, "n + 1 forward", occlusion, removal="embedding set to zero"
)
MASK = Explainer(
    "mask", "saliency", True, "n + 1 forward", masking, removal="word replaced by the unknown word"
)
