"""The words of a text as the players of a game: which of them are there, and what the model then says.

The words of passage and query are one list, so that a word of one can be asked about with a word of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import one_of
from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.perturbation.edits import Edits, edit
from heedful.explainers.perturbation.perturb import predict
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch, Tokens

Missing = Literal["delete", "replace"]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

AT_ONCE = 4096  # edited texts that are planned together


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """How words are taken away, and what is read of the answer."""

    model: Network
    batch: Batch
    target: Tensor
    of: Of
    operator: Missing
    token: int | None
    internal_batch_size: int | None


class WordGame:
    """f_c of one text by which of its words are there: `game(keep (n, words)) -> (n,)`. `passes` counts texts read."""

    def __init__(self, asking: Asking, row: int, asked: tuple[Parts, ...]) -> None:
        self.asking, self.passes = asking, 0
        self.text = asking.batch.rows(torch.arange(row, row + 1, device=asking.target.device))
        self.target = asking.target[row]
        tokens = [("passage", self.text.passage), ("query", self.text.query)]
        self.members = [(_members(one) if part in asked else None) for part, one in tokens if one is not None]
        self.n_words = sum(len(one) for one in self.members if one is not None)

    def __call__(self, keep: Flags) -> Floats:
        return np.concatenate([self._answers(keep[i : i + AT_ONCE]) for i in range(0, max(1, len(keep)), AT_ONCE)])

    def _answers(self, keep: Flags) -> Floats:
        self.passes += len(keep)
        a, n = self.asking, len(keep)
        passage, *others = self._kept(keep)
        query = others[0] if others else None
        every = np.arange(n)
        texts = self.text.rows(torch.zeros(n, dtype=torch.long, device=self.target.device))
        if query is not None and texts.query is not None and not query.all():
            edits = Edits.keeping(texts.query, every, query)
            texts = replace(texts, query=edit(texts.query, edits, every, a.operator, a.token).tokens)
        edits = Edits.keeping(texts.passage, every, passage)
        logits = predict(
            a.model, texts, edits, a.operator, token=a.token, internal_batch_size=a.internal_batch_size
        )  # (n, outputs)
        found: Floats = a.model.link.score(logits.double(), self.target.expand(n), a.of).cpu().numpy()
        return found

    def _kept(self, keep: Flags) -> Iterator[Flags]:
        """Of each part which positions stay, (n, length)."""
        begin = 0
        for tokens, members in zip((self.text.passage, self.text.query), self.members, strict=False):
            assert tokens is not None
            if members is None:
                yield np.ones((len(keep), tokens.ids.shape[1]), dtype=np.bool_)
            else:
                gone = ~keep[:, begin : begin + len(members)]
                yield (gone.astype(np.int64) @ members) == 0
                begin += len(members)


def _members(tokens: Tokens) -> NDArray[np.int64]:
    """Which tokens each word has: (words, length) of 0 and 1, for one text."""
    edits = Edits.each_word(tokens)
    return edits.changed(np.arange(len(edits)), tokens.ids.shape[1]).astype(np.int64)


def without(n: int) -> Flags:
    """Nothing gone, each word gone, and every two gone: (1 + n + n (n - 1) / 2, n), pairs as `np.triu_indices`."""
    i, j = np.triu_indices(n, 1)
    keep = np.ones((1 + n + len(i), n), dtype=np.bool_)
    keep[1 + np.arange(n), np.arange(n)] = False
    keep[1 + n + np.arange(len(i)), i] = False
    keep[1 + n + np.arange(len(i)), j] = False
    return keep


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """What was found of one text."""

    single: Floats  # (words,)
    pairs: Floats  # (words, words): i < j, and on the diagonal what a word does by itself
    gap: float = np.nan
    scale: float = np.nan
    spread: float = np.nan


def each_text(asking: Asking, parts: Parts, find: Callable[[WordGame, int], Together], sampled: bool = False) -> Scores:
    """`find(game, row)` for each text, as scores of its tokens: pieces of a word share its numbers."""
    if asking.operator not in ("delete", "replace"):
        raise one_of("operator", asking.operator, ["delete", "replace"])
    model, batch = asking.model, asking.batch
    asked = explained_parts(model, batch, parts, asking.of)
    lengths = [batch.passage.ids.shape[1]]
    if "query" in asked and batch.query is not None:
        lengths.append(batch.query.ids.shape[1])
    single, pairs = np.zeros((len(batch), sum(lengths))), np.zeros((len(batch), sum(lengths), sum(lengths)))
    gaps, scales, spreads = np.full((3, len(batch)), np.nan)
    passes = np.zeros(len(batch), dtype=np.int64)
    for row in range(len(batch)):
        game = WordGame(asking, row, asked)
        if not game.n_words:
            continue
        found = find(game, row)
        share, places = _shares(game, lengths)
        single[row, places] = found.single @ share
        spread_out = share.T @ np.triu(found.pairs) @ share
        pairs[row][np.ix_(places, places)] = np.triu(spread_out) + np.tril(spread_out, -1).T
        gaps[row], scales[row], spreads[row], passes[row] = found.gap, found.scale, found.spread, game.passes
    like = torch.zeros((), device=model.device, dtype=model.dtype)
    whole, together = (torch.from_numpy(each).to(like) for each in (single, pairs))
    return Scores(
        passage=whole[:, : lengths[0]],
        query=whole[:, lengths[0] :] if len(lengths) > 1 else None,
        gap=torch.from_numpy(np.nan_to_num(gaps)) if sampled else None,
        scale=torch.from_numpy(np.nan_to_num(scales)) if sampled else None,
        spread=torch.from_numpy(np.nan_to_num(spreads)) if sampled else None,
        forward_passes=torch.from_numpy(passes),
        pairs=together,
    )


def _shares(game: WordGame, lengths: list[int]) -> tuple[Floats, NDArray[np.int64]]:
    """Of each word what a token has of it, (words, tokens), and where these tokens are among all positions."""
    shares, places, begin = [], [], 0
    for members, length in zip(game.members, lengths, strict=False):
        width = (game.text.passage if not begin else game.text.query).ids.shape[1]  # type: ignore[union-attr]
        some = np.zeros((0, width)) if members is None else members / members.sum(1, keepdims=True)
        shares.append(some)
        places.append(begin + np.arange(width))
        begin += length
    whole = np.zeros((sum(map(len, shares)), sum(len(each) for each in places)))
    row = column = 0
    for some in shares:
        whole[row : row + len(some), column : column + some.shape[1]] = some
        row, column = row + len(some), column + some.shape[1]
    return whole, np.concatenate(places)
