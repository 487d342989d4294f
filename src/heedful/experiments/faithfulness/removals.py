"""What a model says of texts without some of their words: one table for all methods, each edited text asked once.

Metrics of faithfulness, whatever the method, ask about the same texts again and again: without the first word of two
orders that agree on it, without nothing, without everything. So edited texts are keyed by (text, set of removed words)
for each way of removing them, and everything that is wanted of a whole batch of texts is asked together, sorted by
length and cut to the budget of memory (explainers/perturbation/perturb.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.framework.experiment import Floats, Ints
from heedful.explainers.perturbation.edits import Edits, Operator
from heedful.explainers.perturbation.perturb import predict
from heedful.measure.columns import Bools
from heedful.models.link import IDENTITY, Link
from heedful.models.network import Differentiable, Network
from heedful.records import Batch, Tokens

# How a word is taken away: its name here and in explainers/perturbation/edits.py, and what a model must be able to do.
REMOVALS: dict[str, tuple[Operator, frozenset[str]]] = {
    "delete": ("delete", frozenset({"predicts"})),
    "mask": ("replace", frozenset({"predicts"})),
    "pad": ("pad", frozenset({"hides_words"})),
    "zero": ("zero", frozenset({"differentiable"})),
}


class Said(NamedTuple):
    """Of some edited texts: f of the explained label, and whether the decision is another than that of the text."""

    f: Floats  # (m,)
    flips: Bools  # (m,)


@dataclass(slots=True)
class AskedSets:
    """What has been asked about one text."""

    place: dict[bytes, int] = field(default_factory=dict)  # of each set of removed words
    sets: list[Bools] = field(default_factory=list)
    f: list[float] = field(default_factory=list)
    flips: list[bool] = field(default_factory=list)
    # Different edited texts: sets that leave the same one ("very very") are asked once. (So is what two texts of a
    # batch have in common, like the empty one; but what is said of a text does not depend on its batch.)
    forwards: int = 0

    def arrays(self) -> tuple[Bools, Floats, Bools]:
        """All sets (m, n), what was said without them (m,), and whether that is another decision (m,)."""
        return np.array(self.sets), np.array(self.f), np.array(self.flips)


class Removals:
    """One way of removing words from the texts of one batch."""

    def __init__(
        self, model: Network, batch: Batch, words: Sequence[Ints], whole: Tensor, target: Tensor, operator: str
    ) -> None:
        """`words`: the word of each token of a text, -1 where it is none, (length,) for each text; `whole`: the
        logits of the texts as they are (batch, outputs); target (batch,)."""
        self.model, self.batch, self.words = model, batch, words
        self.whole, self.target = whole, target
        self.operator = REMOVALS[operator][0]
        self.known = [AskedSets() for _ in words]

    def ask(self, wanted: Sequence[Bools]) -> None:
        """Sets of removed words of each text, (m, n) of a text of n words: those that are new are asked."""
        rows: list[int] = []
        removed: list[Bools] = []
        for row, (known, sets) in enumerate(zip(self.known, wanted, strict=True)):
            for one in sets:
                key = one.tobytes()
                if key not in known.place:
                    known.place[key] = len(known.sets)
                    known.sets.append(one)
                    rows.append(row)
                    removed.append(one)
        if not rows:
            return

        def count(texts: Ints) -> None:
            for row, _ in set(zip(rows, texts.tolist(), strict=True)):
                self.known[row].forwards += 1

        edits = self._edits(rows, removed)
        logits = predict(self.model, self.batch, edits, self.operator, asked=count)  # (new, outputs)
        which = torch.tensor(rows, device=logits.device)
        target = self.target.to(logits.device)[which]
        f = output_of(self.model.link, logits, target)
        flips = flipped(self.model.link, self.whole.to(logits.device)[which], logits, target)
        for row, value, flip in zip(rows, f.tolist(), flips.tolist(), strict=True):
            self.known[row].f.append(value)
            self.known[row].flips.append(flip)

    def said(self, row: int, sets: Bools) -> Said:
        """Of sets that have been asked, (..., n)."""
        known, flat = self.known[row], sets.reshape(-1, sets.shape[-1])
        at = [known.place[one.tobytes()] for one in flat]
        f, flips = np.array([known.f[i] for i in at]), np.array([known.flips[i] for i in at], dtype=np.bool_)
        return Said(f.reshape(sets.shape[:-1]), flips.reshape(sets.shape[:-1]))

    def _edits(self, rows: list[int], removed: list[Bools]) -> Edits:
        """The tokens of the removed words."""
        keep = np.ones((len(rows), self.batch.passage.ids.shape[1]), dtype=np.bool_)
        for line, row, gone in zip(keep, rows, removed, strict=True):
            word = self.words[row]
            line[word >= 0] = ~gone[word[word >= 0]]
        return Edits.keeping(self.batch.passage, np.array(rows, dtype=np.int64), keep)


def words_of(tokens: Tokens) -> list[Ints]:
    """The word of each token of each text, counted from 0 without gaps, -1 where it is none: (length,) each."""
    mask = tokens.mask.cpu().numpy()
    index = np.cumsum(mask, 1) - 1 if tokens.word_index is None else tokens.word_index.cpu().numpy()
    found = []
    for row, there in zip(index, mask, strict=True):
        words = np.full(len(row), -1, dtype=np.int64)
        words[there] = np.unique(row[there], return_inverse=True)[1]
        found.append(words)
    return found


def output_of(link: Link, logits: Tensor, target: Tensor) -> Tensor:
    """f: the probability of the explained label, or the number that is predicted: (m, outputs), (m,) -> (m,)."""
    return link.score(logits.double(), target, "probability")


def flipped(link: Link, before: Tensor, after: Tensor, target: Tensor) -> Tensor:
    """Whether the decision is another one: (m, outputs), (m, outputs), (m,) -> (m,).

    Another label is the most probable; where several can be true, the explained one crosses 1/2. A number is no
    decision, and never flips.
    """
    if link is IDENTITY:
        return torch.zeros(len(after), dtype=torch.bool, device=after.device)
    if link.distribution:
        return link.predicted(before) != link.predicted(after)
    return (output_of(link, before, target) >= 0.5) != (output_of(link, after, target) >= 0.5)


# Soft comprehensiveness and sufficiency (Zhao & Aletras 2023): not words but elements of embeddings are dropped.
#
#     x'_i = x_i * e_i,   e_i ~ Bernoulli(a_i) element by element to keep what is important (sufficiency),
#                         e_i ~ Bernoulli(1 - a_i) to drop it (comprehensiveness)
#     soft C = max(0, f(x) - f(x')),   soft S = 1 - max(0, f(x) - f(x'))
#     soft NC = soft C / (1 - S_0),    soft NS = (soft S - S_0) / (1 - S_0),   S_0 = 1 - max(0, f(x) - f(0))
#
# with a_i the score of word i between 0 (the lowest of its text) and 1 (the highest), and f(0) of the text whose
# words have embeddings of zeros. Means over draws. All methods share the same uniform numbers, so that they differ
# by their scores alone; the floor gives the same scores to the words in a random order.


TOKENS = 2**12  # of copies of texts that are read together


def between_0_and_1(scores: Floats) -> Floats:
    """The lowest score is 0, the highest 1; scores that are all equal are 1/2 each."""
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.full(len(scores), 0.5)


def soft_drops(
    model: Network,
    batch: Batch,
    words: Sequence[Ints],
    whole: Tensor,
    target: Tensor,
    probabilities: Sequence[Floats | None],
    seeds: Sequence[int],
    draws: int,
) -> Floats:
    """Mean over draws of max(0, f(x) - f(x')) when each element of word i is kept with probability q_i: (batch,).

    `whole` is f(x) of each text (batch,); `probabilities` are q (n,) of each, None: nan. A number that is predicted may
    also rise: it is not cut at 0.
    """
    network = cast(Differentiable, model)
    x = network.embed(batch.passage)  # (batch, length, dim)
    found = np.full(len(batch), np.nan)
    rows = [row for row, q in enumerate(probabilities) if q is not None]
    if not rows:
        return found
    with torch.no_grad():
        size = max(1, TOKENS // (batch.passage.ids.shape[1] * draws))
        for begin in range(0, len(rows), size):
            some = rows[begin : begin + size]
            copies = torch.tensor(np.repeat(some, draws), device=x.device)  # (copies,)
            kept = torch.stack(
                [_kept(x[row], words[row], cast(Floats, probabilities[row]), seeds[row], draws) for row in some]
            )  # (some, draws, length, dim)
            dropped = x[copies] * kept.flatten(0, 1).to(x)
            taken = batch.rows(copies)
            width = taken.passage.ids.shape[1]
            said = output_of(model.link, model(taken, x=dropped[:, :width]).logits, target[copies])
            drop = whole[copies] - said
            drop = drop if model.link is IDENTITY else drop.clamp(min=0)
            found[some] = drop.view(len(some), draws).mean(1).cpu().numpy()
    return found


def _kept(x: Tensor, word: Ints, q: Floats, seed: int, draws: int) -> Tensor:
    """Which elements stay: (draws, length, dim) bool. What is not a word stays whole."""
    here = np.flatnonzero(word >= 0)
    uniform = np.random.default_rng(seed).random((draws, len(here), x.shape[-1]), dtype=np.float32)
    kept = np.ones((draws, len(word), x.shape[-1]), dtype=np.bool_)
    kept[:, here] = uniform < q[word[here]][None, :, None]
    return torch.from_numpy(kept)
