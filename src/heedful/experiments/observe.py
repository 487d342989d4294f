"""What a model does with a batch, kept for asking it again under other attention weights.

Only real words are kept, moved to the front, and their states are projected on the decoder at once:
decode(h, alpha) = readout(sum_t alpha_t project(h_t)) (see `Decoder`), so a question about another alpha
costs a product with (words, outputs) instead of (words, hidden). All in float64: what is compared with an
epsilon should not be decided by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.experiments.experiment import Chunk, Floats, Ints
from heedful.models.classifier import AttentiveClassifier, Decoder, Output, probabilities
from heedful.records import Batch


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A batch of B texts of at most T words: real words first, zeros after them."""

    examples: Ints  # (B,)
    decoder: Decoder  # float64
    projected: Tensor  # (B, T, outputs or features)
    alpha: Tensor  # (B, T) the model's attention, sums to 1 over the real words
    real: Tensor  # (B, T) bool
    query: Tensor | None  # (B, hidden)
    candidates: Tensor | None  # (B, labels) bool
    predicted: Ints  # (B,)

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
        return self.readout(alphas @ self.projected)

    def readout(self, contexts: Tensor) -> Tensor:
        """Projected context vectors (B, n, outputs or features) -> probabilities (B, n, labels)."""
        return probabilities(self.decoder.readout(contexts, self.query, self.candidates))

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

    def __getitem__(self, rows: slice) -> Observed:
        """Some of the texts."""
        return Observed(
            self.examples[rows],
            self.decoder,
            self.projected[rows],
            self.alpha[rows],
            self.real[rows],
            None if self.query is None else self.query[rows],
            None if self.candidates is None else self.candidates[rows],
            self.predicted[rows],
        )

    def shortened(self) -> Observed:
        """Without the columns that are padding in every text."""
        width = int(self.n_words.max(initial=0))
        return replace(
            self, projected=self.projected[:, :width], alpha=self.alpha[:, :width], real=self.real[:, :width]
        )

    def words(self, values: Tensor | NDArray[np.float64]) -> list[Floats]:
        """(B, T) values as one array for each text, without padding."""
        plain = values.numpy() if isinstance(values, Tensor) else values
        return [row[:n].copy() for row, n in zip(plain, self.n_words, strict=True)]


@torch.no_grad()
def read(model: AttentiveClassifier, batch: Batch) -> Output:
    """What the model says of a batch, and with which attention."""
    return model(batch)


def observer(model: AttentiveClassifier) -> Callable[[Ints, Batch], Observed]:
    """A function (examples, batch) -> Observed; the decoder is copied to float64 once."""
    decoder = deepcopy(model.decoder).double().cpu().requires_grad_(False)

    @torch.no_grad()
    def observe(examples: Ints, batch: Batch) -> Observed:
        output = read(model, batch)
        mask = batch.passage.mask
        width = int(mask.sum(1).max()) if mask.numel() else 0
        front = (~mask).to(torch.uint8).argsort(dim=1, stable=True)[:, :width]  # (B, T) real words first
        real = mask.gather(1, front)
        alpha = output.alpha.double().gather(1, front) * real
        projected = decoder.project(output.h.cpu().double())  # (B, length, outputs or features)
        spread = front.unsqueeze(-1).expand(-1, -1, projected.shape[-1]).cpu()
        total = alpha.sum(1, keepdim=True)
        return Observed(
            examples=np.asarray(examples, dtype=np.int64),
            decoder=decoder,
            projected=projected.gather(1, spread) * real.cpu().unsqueeze(-1),
            alpha=(alpha / torch.where(total > 0, total, 1.0)).cpu(),  # float32 weights sum to 1 only nearly
            real=real.cpu(),
            query=None if output.query is None else output.query.double().cpu(),
            candidates=None if batch.candidates is None else batch.candidates.cpu(),
            predicted=output.predicted.cpu().numpy(),
        )

    return observe


def tvd(p: Tensor, q: Tensor) -> Tensor:
    """TVD = 1/2 sum_c |p_c - q_c| (Jain & Wallace 2019, section 4): (..., labels) -> (...)."""
    return 0.5 * (p - q).abs().sum(-1)
