"""What each method says of the words of a batch of texts, and what a model does not support, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.experiments.faithfulness.removals import REMOVALS
from heedful.experiments.framework.experiment import Floats, Ints, States
from heedful.explainers import EXPLAINERS
from heedful.explainers.collect import passes
from heedful.explainers.explainer import Explainer
from heedful.models.network import Network, Output, in_words
from heedful.records import Batch

SOFT = "soft"  # beside the ways of removing words: elements of their embeddings are dropped


class ScoringMethod(NamedTuple):
    explainer: Explainer
    options: Mapping[str, Any]


class Spoken(NamedTuple):
    """The scores of one method: of the words of each text, None where it says nothing of it."""

    scores: list[Floats | None]  # (n,) each
    forward: Ints  # (batch,) texts sent through the model
    backward: Ints


class Supported(NamedTuple):
    methods: dict[str, ScoringMethod]
    operators: list[str]
    left_out: list[str]  # "attention: needs a model whose attention weights can be read"


def supported(
    model: Network,
    batch: Batch,
    methods: Sequence[str],
    operators: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    states: States,
) -> Supported:
    """Of the methods and operators those that the model can be asked with, and the others with their reason."""
    left_out: list[str] = []

    def can(name: str, needs: frozenset[str]) -> bool:
        missing = sorted(needs - model.can)
        if missing:
            left_out.append(f"{name}: needs a model {in_words(missing)}")
        return not missing

    for name in options:
        if name not in methods:
            raise Mistake(f"options are given for {name!r}, which is none of the methods: {', '.join(methods)}.")
    found: dict[str, ScoringMethod] = {}
    for name in methods:
        explainer = EXPLAINERS.find(name).with_state(states.get(name))
        asked = explainer.parse(options.get(name, {}))
        if can(name, explainer.needs) and not (why := explainer.why_not(model)):
            parts = {"parts": "passage"} if "parts" in explainer.options else {}
            found[name] = ScoringMethod(explainer, {**parts, **asked})
        elif explainer.needs <= model.can:
            left_out.append(why)
    ways = [
        name for name in operators if can(name, frozenset({"differentiable"}) if name == SOFT else REMOVALS[name][1])
    ]
    if "mask" in ways and batch.passage.reserved.replacement is None:
        left_out.append("mask: the model has neither a mask nor an unknown word")
        ways.remove("mask")
    if not found or not ways:
        raise Mistake(
            f"none of the {'methods' if not found else 'operators'} requested is possible with this model: "
            f"{'; '.join(left_out)}."
        )
    return Supported(found, ways, left_out)


def scores_of(
    method: ScoringMethod, model: Network, batch: Batch, output: Output, target: Tensor, words: Sequence[Ints]
) -> Spoken:
    """Pieces are summed. A text that is read in windows has no one attention: what needs it says nothing of it."""
    explainer, n = method.explainer, len(batch)
    whole = np.ones(n, dtype=np.bool_)
    limit = getattr(model, "limit", None)
    if limit is not None and "attends" in explainer.needs:
        whole = reads_at_once(batch) <= limit
    rows = torch.from_numpy(np.flatnonzero(whole)).to(batch.passage.ids.device)
    forward, backward = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    scores: list[Floats | None] = [None] * n
    if not len(rows):
        return Spoken(scores, forward, backward)
    some, every = batch.rows(rows), len(rows) == n
    known = {"output": output} if every and "output" in explainer.keywords else {}
    found = explainer.run(model, batch if every else some, target[rows], **method.options, **known)
    values = found.passage.detach().double().cpu().numpy()  # (rows, length)
    for line, row in zip(values, rows.tolist(), strict=True):
        word = words[row][: len(line)]
        here = word >= 0
        scores[row] = np.bincount(word[here], line[: len(word)][here], minlength=int(words[row].max(initial=-1)) + 1)
    forward[whole] = passes(found.forward_passes, len(rows))
    backward[whole] = passes(found.backward_passes, len(rows))
    return Spoken(scores, forward, backward)


def reads_at_once(batch: Batch) -> Ints:
    """Tokens of each text, query included: (batch,)."""
    of_query = 0 if batch.query is None else batch.query.present.sum(1)
    found: Ints = (batch.passage.present.sum(1) + of_query).cpu().numpy()
    return found
