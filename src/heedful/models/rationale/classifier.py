"""Select, then predict: a classifier that reads the words that it has selected, and no others.

    select (batch)       -> mask    (batch, length)    the words that it selects, 0 or 1
    predict(batch, mask) -> Output                     the answer that these words give

In `predict` a word that was not selected is no word: its embedding is 0 and nothing attends to its place, so whatever
stands there changes nothing, bit for bit. What is left of it is that something stood there: how long the text is, and
where in it the selected words are. Whether a model tells labels by that is what the experiment `trojans` asks.

Selector and predictor are two networks that share only the embedding table (Lei et al. 2016, section 3; Bastings et al.
2019, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.text.batching import Encoded
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import Encoder
from heedful.models.network import Output
from heedful.models.rationale.gates import Draw, Gates
from heedful.records import Batch, Tokens

LEARNT = 0.01  # a loss that is less than this share below that of a constant answer is not learnt
OFF_TARGET = 0.05  # of the words: a share farther from its target was not held
SETTLE, SETTLE_BATCH = 2000, 32  # training texts by which the threshold is set, and how many at once


@dataclass(frozen=True, slots=True)
class RationaleOutput(Output):
    """With what was selected, and in training how it was drawn."""

    mask: Tensor  # (batch, length) the gates
    draw: Draw | None = None
    words: Tensor | None = None  # (batch, length) bool: what could be selected


class Selector(nn.Module):
    """An encoder of its own, and gates. What training has to remember of its constraint stands beside the weights, so
    that a run that is resumed goes on with it."""

    multiplier: Tensor
    baseline: Tensor
    share: Tensor
    loss: Tensor
    constant: Tensor

    def __init__(self, encoder: Encoder, gates: Gates) -> None:
        super().__init__()
        self.encoder, self.gates = encoder, gates
        self.register_buffer("multiplier", torch.tensor(0.0))  # of the selected share
        self.register_buffer("baseline", torch.tensor(0.0))  # of REINFORCE: a moving mean of the loss
        self.register_buffer("share", torch.tensor(gates.rate))  # of the words, that it selects
        self.register_buffer("loss", torch.tensor(0.0))  # a moving mean of the loss of a text,
        self.register_buffer("constant", torch.tensor(0.0))  # and the loss of the best constant answer

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.encoder(x, present)
        return h


class RationaleClassifier(nn.Module):
    """Sizes, encoder, attention and dropout are those of the predictor; the selector has as large an encoder."""

    can: ClassVar[frozenset[str]] = frozenset({"predicts", "differentiable", "selects"})
    has_query = False

    def __init__(
        self,
        n_words: int,
        dim: int,
        hidden: int,
        n_labels: int,
        encoder: Callable[[int, int], Encoder],
        gates: Callable[[int], Gates],
        **sizes: Any,
    ) -> None:
        super().__init__()
        self.predictor = AttentiveClassifier(n_words, dim, hidden, n_labels, encoder, **sizes)
        self.selector = Selector(encoder(dim, hidden), gates(hidden))
        self.n_labels, self.link = n_labels, self.predictor.link

    @property
    def device(self) -> torch.device:
        return self.predictor.device

    @property
    def dtype(self) -> torch.dtype:
        return self.predictor.dtype

    @property
    def n_words(self) -> int:
        return self.predictor.n_words

    @property
    def bytes_per_token(self) -> int:
        return 2 * self.predictor.bytes_per_token

    @property
    def module(self) -> RationaleClassifier:
        return self

    @property
    def embedding(self) -> nn.Embedding:
        return self.predictor.embedding

    @property
    def rate(self) -> float:
        """The share of the words that it is to select."""
        return self.selector.gates.rate

    def embed(self, tokens: Tokens) -> Tensor:
        return self.predictor.embed(tokens)

    def probability(self, batch: Batch, x: Tensor | None = None) -> Tensor:
        """Of each word to be selected: (batch, length)."""
        x = self.embed(batch.passage) if x is None else x
        h = self.selector(x, batch.passage.present)
        return self.selector.gates.probability(h, batch.passage.mask)

    def select(self, batch: Batch, x: Tensor | None = None) -> Tensor:
        """The words that it selects: (batch, length), 0 or 1."""
        p = self.probability(batch, x)
        return self.selector.gates.choose(p, batch.passage.mask).to(p)

    def predict(self, batch: Batch, mask: Tensor, x: Tensor | None = None) -> RationaleOutput:
        """The answer that the words give whose gate is above 0: mask (batch, length). Markers are always read."""
        passage = batch.passage
        x = self.embed(passage) if x is None else x
        gates = torch.where(passage.mask, mask, passage.present.to(mask)).unsqueeze(-1)  # (batch, length, 1)
        read = torch.where(gates > 0, x * gates, 0.0)  # (batch, length, dim)
        selected = passage.mask & (mask > 0)
        of_selected = replace(batch, passage=replace(passage, mask=selected))
        return RationaleOutput(self.predictor(of_selected, x=read).logits, self.link, mask)

    def forward(self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None) -> RationaleOutput:
        return self.predict(batch, self.select(batch, x), x)

    def learn(self, batch: Batch, attention: bool = False) -> RationaleOutput:
        """In training mode gates are drawn, and `output.draw` says how."""
        if not self.training:
            return self(batch)
        x = self.embed(batch.passage)
        h = self.selector(self.predictor.dropout_words(x), batch.passage.present)
        draw = self.selector.gates.draw(h, batch.passage.mask)
        return replace(self.predict(batch, draw.gates, x), draw=draw, words=batch.passage.mask)

    @torch.no_grad()
    def settle(self, texts: Encoded) -> None:
        """After an epoch: the threshold of its gates, and what share of the words it selects, by training texts."""
        gates, found, weights, expected = self.selector.gates, [], [], []
        places = np.arange(min(SETTLE, len(texts))) * len(texts) // min(SETTLE, len(texts))  # evenly spread
        places = places[np.argsort(texts.lengths[places], kind="stable")]
        for some in np.array_split(places, -(-len(places) // SETTLE_BATCH)):
            batch = texts.batch(some)
            words, p = batch.passage.mask, self.probability(batch)
            n = words.sum(1)
            found.append(p[words])
            weights.append((1 / n.clamp(min=1)).unsqueeze(1).expand_as(p)[words])
            expected.append((p if gates.by_penalty else gates.choose(p, words).to(p)).sum(1)[n > 0] / n[n > 0])
        weight = torch.cat(weights)
        gates.settle(torch.cat(found), weight / weight.sum())
        self.selector.share.fill_(torch.cat(expected).mean())

    @property
    def failure(self) -> str:
        """Why its selection cannot be trusted, as training left it; empty: nothing was found."""
        learnt = self.selector
        share, loss, constant = (float(value) for value in (learnt.share, learnt.loss, learnt.constant))
        if not constant:  # not trained, or by somebody else
            return ""
        if abs(share - self.rate) > OFF_TARGET:
            return (
                f"its selection failed to train: it selects {share:.1%} of the words, and was to select "
                f"{self.rate:.1%}: train it longer, or for another rate"
            )
        if loss > (1 - LEARNT) * constant:
            return (
                f"its selection failed to train: from the words that it selects it predicts no better than a constant "
                f"answer does (loss {loss:.3f}, constant {constant:.3f}): train it longer, or for a higher rate"
            )
        return ""

    def __call__(self, batch: Batch, **given: Any) -> RationaleOutput:
        """See `forward`."""
        output: RationaleOutput = super().__call__(batch, **given)
        return output
