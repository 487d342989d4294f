"""How alike are two texts? A model that gives vectors as a `Network` of pairs, whose answer is a number.

    f(a, b) = u . v / (|u| |v|)        u, v the vectors of a and b

The texts are read apart. Passage and query are the two, each with special tokens of its own, and everything that
explains a model of pairs explains it: which words of both texts made them alike, and which of them together.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from heedful.errors import Mistake, one_of
from heedful.models.huggingface.attention_calls import Each
from heedful.models.huggingface.forward import Forward, Inputs
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.probe import Probe
from heedful.models.link import IDENTITY, Link
from heedful.models.network import Edit, Output, require
from heedful.models.sequence import Long, Side, SpecialTokens
from heedful.records import Batch, Tokens

Pooling = Literal["mean", "first", "last"]
POOLINGS: tuple[Pooling, ...] = ("mean", "first", "last")


class VectorForward(Forward):
    """One vector for each text: the mean of the states of its last layer."""

    def __call__(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False) -> Tensor:
        return self.pooled(self.states(self.output(inputs, side, each, learning)), inputs, side)

    def attended(self, inputs: Inputs, side: Side) -> tuple[tuple[Tensor, ...], Tensor]:
        output = self.output(inputs, side, output_attentions=True)
        return tuple(output.attentions or ()), self.pooled(self.states(output), inputs, side)

    def states(self, output: Any) -> Tensor:
        found = getattr(output, "last_hidden_state", output[0] if isinstance(output, tuple) and output else output)
        if not isinstance(found, Tensor) or found.dim() != 3:
            raise Mistake(
                f"{type(self.module).__name__} gives no states (last_hidden_state) of shape (texts, places, dim): a "
                "vector cannot be made of what it says."
            )
        return found

    def pooled(self, states: Tensor, inputs: Inputs, side: Side) -> Tensor:
        """(n, width, dim) -> (n, dim)."""
        there = inputs.present.to(states).unsqueeze(-1)
        return (states * there).sum(1) / there.sum(1)


class FirstForward(VectorForward):
    """The state of the first token, [CLS]."""

    def pooled(self, states: Tensor, inputs: Inputs, side: Side) -> Tensor:
        return states[torch.arange(len(states)), inputs.present.long().argmax(1)]


class LastForward(VectorForward):
    """The state of the last token."""

    def pooled(self, states: Tensor, inputs: Inputs, side: Side) -> Tensor:
        last = states.shape[1] - 1 - inputs.present.flip(1).long().argmax(1)
        return states[torch.arange(len(states)), last]


FORWARDS: dict[Pooling, type[VectorForward]] = {"mean": VectorForward, "first": FirstForward, "last": LastForward}


class TextVectors(HuggingFaceNetwork):
    """What the module makes of one text: `network(batch).logits` are vectors (batch, dim)."""

    def __init__(
        self,
        module: nn.Module,
        probe: Probe,
        pooling: Pooling,
        *,
        frame: SpecialTokens,
        limit: int | None = None,
        types: tuple[int, int] | None = None,
        long: Long = "truncate",
    ) -> None:
        if pooling not in POOLINGS:
            raise one_of("pooling", pooling, list(POOLINGS))
        self.reader = FORWARDS[pooling]
        super().__init__(module, IDENTITY, 1, probe, frame=frame, limit=limit, types=types, long=long)

    def _check_outputs(self, link: Link, n_labels: int) -> None:
        """As many as the vector has numbers."""


class Similarity:
    """Of two texts, passage and query, the cosine of their vectors."""

    n_labels: int = 1
    has_query: bool = True
    link: Link = IDENTITY

    def __init__(self, vectors: TextVectors) -> None:
        self.vectors = vectors
        self.module = vectors.module

    @property
    def can(self) -> frozenset[str]:
        return frozenset({"predicts", "compares"}) | ({"differentiable"} & self.vectors.can)

    @property
    def device(self) -> torch.device:
        return self.vectors.device

    @property
    def dtype(self) -> torch.dtype:
        return self.vectors.dtype

    @property
    def n_words(self) -> int:
        return self.vectors.n_words

    @property
    def bytes_per_token(self) -> int:
        return self.vectors.bytes_per_token

    @property
    def n_layers(self) -> int:
        return self.vectors.n_layers

    def embed(self, tokens: Tokens) -> Tensor:
        return self.vectors.embed(tokens)

    def vector(self, tokens: Tokens, x: Tensor | None = None) -> Tensor:
        """Of texts alone: (batch, dim)."""
        found = self.vectors(Batch(tokens), x=x).logits
        return found.float() if found.dtype in (torch.float16, torch.bfloat16) else found

    def __call__(
        self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None, edit: Edit | None = None
    ) -> Output:
        if batch.query is None:
            raise Mistake("two texts are compared: give a query for each text.")
        if edit is not None:
            require({"edits_attention"}, self.can, "asking under other attention weights")
        batch = batch.to(self.device)
        assert batch.query is not None
        u, v = self.vector(batch.passage, x), self.vector(batch.query, x_query)
        size = ((u * u).sum(1).sqrt() * (v * v).sum(1).sqrt()).clamp(min=torch.finfo(u.dtype).tiny)  # (batch,)
        return Output(((u * v).sum(1) / size).unsqueeze(1), self.link)
