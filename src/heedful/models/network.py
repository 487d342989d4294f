"""What a model can do, in small protocols. Explainers and experiments say which of these they need.

    predicts             network(batch) -> Output: logits, and how they are read
    differentiable       embed(tokens) -> x, network(batch, x=x): gradients start at the embeddings
    attends              attentions(batch) -> (batch, layers, heads, to, from): weights that can be read
    self_attends         states(batch) -> (batch, layers + 1, length, dim): every token attends, layer by layer
    edits_attention      network(batch, edit=f), f(layer, weights) -> weights: asked under other weights
    pools_by_attention   one vector of weights decides what is read: encode, attend, decode(h, alpha)
    generates            a token that comes next is a label: `batch.asked` says which one is meant (models/language)
    compares             two texts are read apart, and the answer is how alike their vectors are: vector(tokens, x)
    selects              select(batch) -> mask, predict(batch, mask): it reads only the words that it selects
    hides_words          words that are hidden (`Tokens.hidden`) keep their place, and nothing attends to them

A network is asked what it can do by `network.can`, a set of these names, because two networks of one class can
differ in it. Positions are the network's tokens; which of them are words is said by the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.link import Link, Of
from heedful.records import Batch, Tokens

Edit = Callable[[int, Tensor], Tensor]  # layer, weights (batch, heads, to, from) -> weights

BACKWARD_MEMORY = 2**30  # bytes that a backward pass may keep, by estimate

CAPABILITIES = {
    "predicts": "that says how probable each label is",
    "differentiable": "whose word embeddings can be read and given",
    "attends": "whose attention weights can be read",
    "self_attends": "in whose layers every token attends to tokens",
    "edits_attention": "whose prediction can be computed under other attention weights",
    "pools_by_attention": "in which one vector of attention weights pools the states of the words",
    "generates": "that says how probable each next word is",
    "compares": "that compares two texts by their vectors",
    "selects": "that selects the words that it reads",
    "hides_words": "that can shut single words out of its attention",
}


@dataclass(frozen=True, slots=True)
class Output:
    """What every network says of a batch."""

    logits: Tensor  # (batch, outputs)
    link: Link

    @property
    def probabilities(self) -> Tensor:
        """(batch, labels). Of logits of 16 bits in 32: in 16 they would not sum to 1."""
        half = self.logits.dtype in (torch.float16, torch.bfloat16)
        return self.link.probabilities(self.logits.float() if half else self.logits)

    @property
    def predicted(self) -> Tensor:
        """The most probable label: (batch,)."""
        return self.link.predicted(self.logits)

    def score(self, target: Tensor, of: Of = "logit") -> Tensor:
        return self.link.score(self.logits, target, of)


@dataclass(frozen=True, slots=True)
class AttendedOutput(Output):
    """With the weights that it was computed under, and gradients through them."""

    attentions: Tensor  # (batch, layers, heads, to, from), 0 at padding


class Network(Protocol):
    """The least that a model can do."""

    n_labels: int
    has_query: bool  # whether it reads a second text
    link: Link

    @property
    def can(self) -> frozenset[str]: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def bytes_per_token(self) -> int:
        """What a forward pass holds for each token, roughly: batches are made to fit a budget of memory."""
        ...

    def __call__(self, batch: Batch, *args: Any, **given: Any) -> Output: ...


class Differentiable(Network, Protocol):
    """`network(batch, x=x, x_query=x_query)` takes embeddings in place of ids."""

    @property
    def n_words(self) -> int:
        """Token ids are 0 to n_words - 1."""
        ...

    def embed(self, tokens: Tokens) -> Tensor:
        """(batch, length) -> x (batch, length, dim)."""
        ...


class Attends(Network, Protocol):
    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        """(batch, layers, heads, to, from); rows sum to 1 over what can be attended to.

        `layer`: only this one (layers = 1; -1 is the last), so that the others need not be kept.
        """
        ...


class SelfAttends(Attends, Protocol):
    """A stack of layers in which every token attends: `attentions` is square, to = from = length."""

    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        """What goes into the first layer, and what comes out of each: (batch, layers + 1, length, dim)."""
        ...


class Selects(Network, Protocol):
    """Select, then predict: what is not selected has no part in the answer (models/rationale)."""

    @property
    def rate(self) -> float:
        """The share of the words that it was to select."""
        ...

    @property
    def failure(self) -> str:
        """Why its selection cannot be trusted, as training left it; empty: nothing was found."""
        ...

    def probability(self, batch: Batch) -> Tensor:
        """Of each word to be selected: (batch, length)."""
        ...

    def select(self, batch: Batch) -> Tensor:
        """The words that it selects: (batch, length), 0 or 1."""
        ...

    def predict(self, batch: Batch, mask: Tensor) -> Output:
        """The answer that words with a gate above 0 give: mask (batch, length)."""
        ...


class Trainable(Network, Protocol):
    """A network whose weights can change: what `fit` and the objectives ask of it."""

    @property
    def module(self) -> Any:
        """The `torch.nn.Module` that holds the weights."""
        ...

    @property
    def embedding(self) -> nn.Embedding: ...

    def learn(self, batch: Batch, attention: bool = False) -> Output:
        """As in training: gradients of the weights, dropout where the module is in that mode.

        With `attention` the output has `attentions`, too, (batch, layers, heads, to, from), before any dropout.
        """
        ...


def require(needs: Iterable[str], can: frozenset[str], who: str, model: str = "this model") -> None:
    """Refuse by name a model that lacks what is needed."""
    missing = sorted(set(needs) - can)
    if missing:
        able = ", ".join(sorted(can)) or "none of it"
        raise Mistake(f"{who} needs a model {in_words(missing)} ({', '.join(missing)}); {model} can: {able}.")


def in_words(abilities: Iterable[str]) -> str:
    """What completes "a model": "whose attention weights can be read"."""
    return " and ".join(CAPABILITIES.get(name, f"with {name!r}") for name in abilities)


def layer_number(layer: int, layers: int) -> int:
    """0 to layers - 1; -1 is the last."""
    if not -layers <= layer < layers:
        raise Mistake(f"layer {layer}: this model has {layers} layers of attention, 0 to {layers - 1}.")
    return layer % layers


def token_budget(network: Network, most: int) -> int:
    """Tokens of a batch whose gradients are wanted: `most`, or fewer where all layers together would keep too much."""
    layers = max(1, int(getattr(network, "n_layers", 1)))  # 0: of attention, in a module that has none
    return max(1, min(most, BACKWARD_MEMORY // (network.bytes_per_token * layers)))


# The attention that a classifier's answer is read from: what objectives about attention are of.
#
# It is the one attention of our classifiers; of a checkpoint that of the token that its classifier reads ([CLS], or
# the last one), in chosen layers.


Reads = Literal["first", "last", "asked"]  # the token that a checkpoint's answer is read from


def read_attention(output: Any, batch: Batch, reads: Reads, layers: Sequence[int] | None) -> Tensor:
    """The attention of the token that is read: (batch, layers, heads, from)."""
    every: Tensor = output.attentions  # (batch, layers, heads, to, from)
    n_layers, n_to = every.shape[1], every.shape[3]
    chosen = range(n_layers) if layers is None else layers
    if n_layers == 1:  # one of ours
        chosen = [0]
    elif wrong := [layer for layer in chosen if not -n_layers <= layer < n_layers]:
        raise Mistake(f"layers: there is no layer {wrong[0]}; the model has {n_layers}, counted from 0.")
    some = every[:, [layer % n_layers for layer in chosen]]
    if reads == "first" or n_to == 1:
        return some[:, :, :, 0]
    length = batch.passage.present.sum(1) + (0 if batch.query is None else batch.query.present.sum(1))  # (batch,)
    return some[torch.arange(len(length), device=some.device), :, :, length - 1]
