"""h_t = [encoder's state; e_t]: each state is joined by the embedding of its word (Tutek & Snajder 2020).

What the output reads at a place is then to a part the word itself, whatever the encoder has made of it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heedful.models.encoders import Encoder


class Concatenated(Encoder):
    """Any encoder, of hidden - dim units, and the embeddings that it reads."""

    def __init__(self, encoder: Callable[[int, int], Encoder], dim: int, hidden: int) -> None:
        super().__init__()
        self.states, self.units = encoder(dim, hidden - dim), hidden - dim

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.states(x, present)  # (batch, length, hidden - dim)
        return torch.cat([h, x * present.unsqueeze(-1)], dim=-1)

    def summary(self, h: Tensor, present: Tensor) -> Tensor:
        """The encoder's own, and the mean embedding."""
        states, x = h[..., : self.units], h[..., self.units :]
        return torch.cat([self.states.summary(states, present), super().summary(x, present)], dim=-1)
