"""A causal language model of transformers as a `Network`: which token comes next is a question with two answers.

    z = log sum exp over `this` of z_v  -  log sum exp over `that` of z_v        P(this) = sigmoid(z)

With one token in each, z is the difference of their logits (the contrast of Yin & Neubig 2022); where `that` is every
other token, z = log p / (1 - p) of the model's own next-token distribution. Passage and what has been said so far stand
side by side in one sequence, so everything that is known of such sequences (padding, embeddings, attention) holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.huggingface.forward import Forward
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.probe import Probe
from heedful.models.link import LOG_ODDS, Link
from heedful.models.sequence import SpecialTokens
from heedful.records import Asked, Batch


class LastPlace(Forward):
    """One forward pass, of which only the last place is read: no (places x vocabulary) tensor is made."""

    def output(self, *args: Any, **given: Any) -> Any:
        if "logits_to_keep" in self.takes:
            given = {"logits_to_keep": 1, **given}
        return super().output(*args, **given)

    def logits(self, output: Any) -> Tensor:
        found = super().logits(output)  # (n, places, vocabulary)
        if found.dim() != 3:
            raise Mistake(
                f"{type(self.module).__name__} gives logits of shape {tuple(found.shape)}: a language model gives "
                "(texts, places, vocabulary)."
            )
        return found[:, -1]


class Generator(HuggingFaceNetwork):
    """`network(batch)` answers `batch.asked`; `next(batch)` has the logits of every token."""

    reader = LastPlace

    def __init__(self, module: nn.Module, probe: Probe, *, frame: SpecialTokens, limit: int | None = None) -> None:
        super().__init__(module, LOG_ODDS, 2, probe, frame=frame, limit=limit, has_query=True, long="refuse")

    def _check_outputs(self, link: Link, n_labels: int) -> None:
        """One logit for each token of the vocabulary, of which a question makes one."""

    @property
    def can(self) -> frozenset[str]:
        return super().can | {"generates"}

    @property
    def vocabulary(self) -> int:
        return self.abilities.n_outputs

    @torch.no_grad()
    def next(self, batch: Batch) -> Tensor:
        """Logits of the next token, as the model gives them: (batch, vocabulary)."""
        return self(replace(batch, asked=None)).logits

    def _answer(self, logits: Tensor, batch: Batch, which: Tensor | None = None) -> Tensor:
        """(n, vocabulary) -> (n, 1)."""
        if batch.asked is None:
            return logits
        asked = batch.asked if which is None else batch.asked.rows(which)
        return answer(logits, asked)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{type(self).__name__} is not a sequence")


def answer(logits: Tensor, asked: Asked) -> Tensor:
    """z of each question: logits (n, vocabulary) -> (n, 1)."""
    this = chosen(asked.this, logits.shape[1])  # (n, vocabulary)
    that = chosen(asked.that, logits.shape[1])
    that = that | (~that.any(1, keepdim=True) & ~this)
    return together(logits, this) - together(logits, that)


def chosen(ids: Tensor, vocabulary: int) -> Tensor:
    """Which tokens are meant, as a mask: (n, most) with -1 where there is none -> (n, vocabulary) bool."""
    marked = torch.zeros(len(ids), vocabulary + 1, dtype=torch.bool, device=ids.device)
    marked.scatter_(1, ids.where(ids >= 0, vocabulary), True)
    return marked[:, :vocabulary]


def together(logits: Tensor, which: Tensor) -> Tensor:
    """log sum exp of the logits of some tokens, or the logit itself where it is one: (n, 1)."""
    if bool((which.sum(1) == 1).all()):
        return logits.gather(1, which.long().argmax(1, keepdim=True))
    return torch.logsumexp(logits.masked_fill(~which, -torch.inf), 1, keepdim=True)
