"""What a model does with a batch, kept for asking it again under other attention weights.

`Observed` is the question itself: the model's own attention over the real words of each text, and `decode`, what it
would say under other weights. `EditedAttention` asks any model whose attention can be edited, one forward pass for
each question. Where one vector of weights pools the states of the words, `PooledStates` (pooled.py) has the answer
in one matrix product; it is registered in `observer`, and agrees. All in float64: what is compared with an epsilon
should not be decided by rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake
from heedful.experiments.framework.experiment import Chunk, Floats, Ints
from heedful.explainers.attention.weights import Row, attention_row, looking, row_of
from heedful.models.attentive.hierarchical import find_sentences
from heedful.models.attentive.latent import LatentClassifier
from heedful.models.link import Link
from heedful.models.network import Attends, Network, require
from heedful.models.sequence import present
from heedful.records import Batch

Observer = Callable[[Ints, Batch], "Observed"]
Level = Literal["word", "sentence"]
T = TypeVar("T")
DECODED = 2**12  # tokens of one forward pass under other weights


@dataclass(frozen=True, slots=True)
class View:
    """Which attention is meant, where a model has several: a layer, some of its heads, and who attends."""

    layer: int = -1
    heads: tuple[int, ...] | None = None  # None: all of the layer
    row: Row | None = None  # None: the one that the model's classifier reads
    level: Level | None = None  # None: sentences where the network attends to sentences


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A batch of B texts of at most T words: real words first, zeros after them.

    Where a model attends to sentences (`level`), read sentence for word everywhere.
    """

    examples: Ints  # (B,)
    link: Link
    alpha: Tensor  # (B, T) the model's attention, sums to 1 over the real words
    real: Tensor  # (B, T) bool
    predicted: Ints  # (B,)
    has_query: bool
    level: Level = field(default="word", kw_only=True)

    @property
    def n_words(self) -> Ints:
        n: Ints = self.real.sum(1).numpy()
        return n

    @property
    def y(self) -> Tensor:
        """The output under the model's own attention: (B, labels)."""
        return self.decode(self.alpha.unsqueeze(1)).squeeze(1)

    def decode(self, alphas: Tensor) -> Tensor:
        """Attentions (B, n, T) -> probabilities (B, n, labels)."""
        raise NotImplementedError

    def permute(self, places: Tensor) -> Tensor:
        """Weights that change places: word t gets that of word places[.., t]. (B, n, T) -> (B, n, labels)."""
        return self.decode(self.alpha.unsqueeze(1).expand(places.shape).gather(2, places))

    def erase(self, removed: Tensor) -> Tensor:
        """Some weights set to zero, the others renormalised: (B, n, T) bool -> (B, n, labels), nan where none is left
        (Serrano & Smith 2019, section 3)."""
        rest, some = without(self.alpha.unsqueeze(1).expand(removed.shape), removed)
        return self.lost(removed, self.decode(rest)).masked_fill(~some.unsqueeze(-1), torch.nan)

    def lost(self, removed: Tensor, q: Tensor) -> Tensor:
        """q (B, n, labels) where weight is gone with the words `removed` (B, n, T); where they had none, nothing has
        changed, to the last bit: the output as it is."""
        gone = self.alpha.unsqueeze(1).masked_fill(~removed, 0.0).sum(-1, keepdim=True)  # (B, n, 1)
        return torch.where(gone > 0, q, self.y.unsqueeze(1))

    def shift(self, deltas: Tensor) -> Tensor:
        """Weights that are larger by so much, nothing renormalised: (B, n, T) -> (B, n, labels)."""
        return self.decode(self.alpha.unsqueeze(1) + deltas)

    def erase_along(self, order: Tensor) -> Tensor:
        """Weights removed one after the other, the rest renormalised (Serrano & Smith 2019, section 5).

        order (B, T): places, the first to go first; padding last. (B, T, labels): at k the output without the
        first k + 1, nan where no weight is left. Here every prefix is a question of its own.
        """
        return self.erase(order.argsort(1)[:, None, :] <= torch.arange(order.shape[1])[:, None])  # (B, k, T)

    def of_items(self, values: Tensor, batch: Batch) -> Tensor:
        """Scores of the batch's tokens as scores of what is attended to: (B, length) -> (B, T) in float64.

        Those of a sentence are the sum over its words.
        """
        if self.level == "sentence":
            return find_sentences(batch.passage).sums(values.double()).cpu()
        front, real = real_words_first(batch.passage.mask)
        return (values.double().gather(1, front) * real).cpu()

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        """How far two outputs are apart (TVD where they are distributions): (..., labels) -> (...)."""
        return self.link.distance(p, q)

    def rows(self) -> Chunk:
        """The columns that every experiment has. Of a text without words the attention is undefined (nan)."""
        n_words = self.n_words
        peak = self.alpha.amax(1).numpy() if self.alpha.shape[1] else np.zeros(len(n_words))
        return {
            "example": np.asarray(self.examples, dtype=np.int64),
            "predicted": self.predicted,
            "max_attention": np.where(n_words > 0, peak, np.nan),
            "n_words": n_words,
        }

    def __getitem__(self, rows: slice) -> Self:
        """Some of the texts: whatever has a row for each text."""
        n = len(self.examples)

        def some(value: Any) -> Any:
            if isinstance(value, Observed):
                return value[rows]
            if isinstance(value, Batch):
                return value.rows(torch.arange(n, device=value.passage.ids.device)[rows])
            return value[rows] if isinstance(value, Tensor | np.ndarray) and len(value) == n else value

        return replace(self, **{one.name: some(getattr(self, one.name)) for one in fields(self)})

    def words(self, values: Tensor | NDArray[np.float64]) -> list[Floats]:
        """(B, T) values as one array for each text, without padding."""
        plain = values.numpy() if isinstance(values, Tensor) else values
        return [row[:n].copy() for row, n in zip(plain, self.n_words, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class EditedAttention(Observed):
    """The general way: the network reads the text again under each of the weights.

    What the chosen heads give to words is shared out anew as `alphas` says; what they give to markers and other
    special tokens stays theirs. A permutation moves the weights of every row that attends, each row's own. With several
    heads or rows `alpha` is their mean: that all of them attend as it says is a change, too, so `y` is the model's own
    output, not `decode(alpha)`.
    """

    network: Network = field(kw_only=True)
    batch: Batch = field(kw_only=True)
    view: View = field(kw_only=True)
    front: Tensor = field(kw_only=True)  # (B, T) the position of each word
    own: Tensor = field(kw_only=True)  # (B, labels) the output as it is

    @property
    def y(self) -> Tensor:
        return self.own

    def decode(self, alphas: Tensor) -> Tensor:
        def shared(weights: Tensor, alpha: Tensor, at: Tensor) -> Tensor:
            """weights (n, heads, to, from), alpha and at (n, T)."""
            words = at[:, None, None].expand(*weights.shape[:3], -1)  # (n, heads, to, T)
            given = weights.gather(-1, words).sum(-1, keepdim=True)  # (n, heads, to, 1): to words, in all
            return weights.scatter(-1, words, (alpha.to(weights)[:, None, None] * given))

        return self._ask(alphas, shared)

    def erase(self, removed: Tensor) -> Tensor:
        """Every head and row that is meant loses its own weights of these words, and keeps what it gives to words in
        all: the other weights stay its own."""

        def erased(weights: Tensor, gone: Tensor, at: Tensor) -> Tensor:
            words = at[:, None, None].expand(*weights.shape[:3], -1)
            own = weights.gather(-1, words)  # (n, heads, to, T)
            rest = own * (1 - gone.to(own))[:, None, None]
            left = rest.sum(-1, keepdim=True)
            scale = own.sum(-1, keepdim=True) / torch.where(left > 0, left, 1.0)
            return weights.scatter(-1, words, rest * scale)

        some = (self.alpha.unsqueeze(1).masked_fill(removed, 0.0).sum(-1) > 0).unsqueeze(-1)
        return self.lost(removed, self._ask(removed.double(), erased)).masked_fill(~some, torch.nan)

    def shift(self, deltas: Tensor) -> Tensor:
        """In every head and row, by that share of what it gives to words."""

        def larger(weights: Tensor, delta: Tensor, at: Tensor) -> Tensor:
            words = at[:, None, None].expand(*weights.shape[:3], -1)
            given = weights.gather(-1, words).sum(-1, keepdim=True)
            return weights.scatter_add(-1, words, delta.to(weights)[:, None, None] * given)

        return self._ask(deltas, larger)

    def permute(self, places: Tensor) -> Tensor:
        def moved(weights: Tensor, place: Tensor, at: Tensor) -> Tensor:
            words = at[:, None, None].expand(*weights.shape[:3], -1)
            sources = at.gather(1, place)[:, None, None].expand_as(words)
            return weights.scatter(-1, words, weights.gather(-1, sources))

        return self._ask(places, moved)

    def _ask(self, questions: Tensor, change: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        """One forward pass for each question (B, n, T) about a text, a budget of tokens at a time."""
        B, n, _ = questions.shape
        flat = questions.flatten(0, 1)  # (B n, T)
        text = torch.arange(B).repeat_interleave(n)
        at_once = max(1, DECODED // max(1, self.batch.passage.ids.shape[1]))
        answers = []
        for begin in range(0, B * n, at_once):
            some = slice(begin, begin + at_once)
            answers.append(self._forward(flat[some], text[some], change))
        return torch.cat(answers).view(B, n, -1) if answers else questions.new_zeros(B, n, 0)

    def _forward(self, asked: Tensor, text: Tensor, change: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        device, real = self.network.device, self.real[text]
        at, asked = self.front[text].to(device), asked.to(device)

        def edit(layer: int, weights: Tensor) -> Tensor:
            if layer != self.layer:
                return weights
            # padding of `front` points at a position that is not a word of the text: leave that as it is
            edited = weights.clone()
            heads = list(range(weights.shape[1])) if self.view.heads is None else list(self.view.heads)
            for n in torch.unique(real.sum(1)).tolist():  # texts with so many words, together
                rows = (real.sum(1) == n).nonzero().squeeze(1).to(device)
                if n:
                    part = weights[rows][:, heads]
                    part = change(part, asked[rows, :n], at[rows, :n])
                    edited[rows[:, None], torch.tensor(heads, device=device)] = part
            return edited

        with torch.set_grad_enabled(asked.requires_grad):  # only a question about the weights has a gradient
            output = self.network(self.batch.rows(text.to(device)), edit=edit)
        return output.probabilities.double().cpu()

    @property
    def layer(self) -> int:
        layers = int(getattr(self.network, "n_layers", 1))
        return self.view.layer % layers


def without(alpha: Tensor, removed: Tensor) -> tuple[Tensor, Tensor]:
    """(renormalised weights, whether any was left): alpha, removed (B, n, T) -> (B, n, T), (B, n).

    Where none was left the weights are as they were: whatever is asked under them does not count.
    """
    rest = alpha.masked_fill(removed, 0.0)
    left = rest.sum(-1)
    some = left > 0
    return torch.where(some.unsqueeze(-1), rest / torch.where(some, left, 1.0).unsqueeze(-1), alpha), some


def real_words_first(mask: Tensor) -> tuple[Tensor, Tensor]:
    """(positions (B, T) of the words, and after them of others; real (B, T))."""
    width = int(mask.sum(1).max()) if mask.numel() else 0
    front = (~mask).to(torch.uint8).argsort(dim=1, stable=True)[:, :width]  # (B, T) real words first
    return front, mask.gather(1, front)


def to_front(values: Tensor, front: Tensor, real: Tensor) -> Tensor:
    """The weights of real words, normalised to sum 1, in float64: (B, length) -> (B, T)."""
    alpha = values.double().gather(1, front) * real
    total = alpha.sum(1, keepdim=True)
    return (alpha / torch.where(total > 0, total, 1.0)).cpu()  # float32 weights sum to 1 only nearly


def observer(network: Network, view: View | None = None, general: bool = False) -> Observer:
    """A function (examples, batch) -> Observed, by the way that costs this network least.

    `general`: ask the network itself about each attention, even where its structure has the answer.
    """
    from heedful.experiments.edited_attention.mixed import MixedStates
    from heedful.experiments.edited_attention.pooled import PooledStates

    chosen = view or View()
    level = find_level(network, chosen)
    mixes = isinstance(network, LatentClassifier)
    if not general and (mixes or level == "sentence" or "pools_by_attention" in network.can):
        if chosen.layer not in (-1, 0) or chosen.heads not in (None, (0,)):
            raise Mistake("this model has one attention: layer and heads are for transformers.")
        return MixedStates.observer(network) if mixes else PooledStates.observer(network, level)
    require({"attends", "edits_attention"}, network.can, "asking under other attention weights")
    if level == "sentence":
        from heedful.experiments.edited_attention.sentences import EditedSentences

        return EditedSentences.observer(observer(network, replace(chosen, level="word"), general))

    @torch.no_grad()
    def observe(examples: Ints, batch: Batch) -> Observed:
        attends: Attends = network  # type: ignore[assignment]
        weights = attends.attentions(batch, chosen.layer)  # (B, 1, heads, to, from)
        heads: Sequence[int] | None = chosen.heads
        there = present(batch, weights.shape[-1])
        seen_from = chosen.row or row_of(network)
        row = attention_row(weights, looking(batch, there, seen_from), 0, heads, seen_from)  # (B, from)
        front, real = real_words_first(batch.passage.mask)
        output = network(batch)
        return EditedAttention(
            *common_fields(network, examples, output.predicted, to_front(row, front, real), real),
            own=output.probabilities.double().cpu(),
            network=network,
            batch=batch,
            view=chosen,
            front=front.cpu(),
        )

    return observe


def in_float64(network: Network) -> Network:
    """A copy of one of ours, whose numbers are then not decided by float32's rounding; they are small. Others as they
    are."""
    from heedful.models.attentive.classifier import AttentiveClassifier

    return copy.deepcopy(network).double() if isinstance(network, AttentiveClassifier) else network


def common_fields(
    network: Network, examples: Ints, predicted: Tensor, alpha: Tensor, real: Tensor
) -> tuple[Ints, Link, Tensor, Tensor, Ints, bool]:
    """What every kind of `Observed` begins with, in the order of its fields."""
    places = np.asarray(examples, dtype=np.int64)
    return places, network.link, alpha, real.cpu(), predicted.cpu().numpy(), network.has_query


def find_level(network: Network, view: View) -> Level:
    """The level that was asked for, or the first of those that the network attends at."""
    levels: tuple[Level, ...] = getattr(network, "levels", ("word",))
    level = view.level or levels[0]
    if level not in levels:
        raise Mistake(f"level={level!r}: this model attends to words only, so the level is 'word'.")
    return level


def tvd(p: Tensor, q: Tensor) -> Tensor:
    """TVD = 1/2 sum_c |p_c - q_c| (Jain & Wallace 2019, section 4): (..., labels) -> (...)."""
    return 0.5 * (p - q).abs().sum(-1)
