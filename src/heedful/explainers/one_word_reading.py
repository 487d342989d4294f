"""What is known of a batch of texts before one of their words is changed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from heedful.models.encoders import reversal, reverse_rows


@dataclass(frozen=True, slots=True)
class Reading:
    """How the model read the texts, and what each of their words is changed to."""

    x: Tensor  # (batch, length, dim)
    h: Tensor  # (batch, length, hidden)
    present: Tensor  # (batch, length)
    mask: Tensor  # (batch, length)
    query: Tensor | None  # (batch, hidden)
    new: Tensor | None  # (batch, length, dim): word t is embedded as new_t; None: it is deleted

    def turned(self) -> Reading:
        """Each text turned around within its own length, where `present` is the same."""
        index = reversal(self.present)  # (batch * length,)
        x, h = reverse_rows(self.x, index), reverse_rows(self.h, index)
        mask = reverse_rows(self.mask.unsqueeze(-1), index).squeeze(-1)
        new = None if self.new is None else reverse_rows(self.new, index)
        return Reading(x, h, self.present, mask, self.query, new)
