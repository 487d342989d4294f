"""A classifier on which the attention of another model is imposed, in training and ever after.

Wiegreffe & Pinter 2019, section 3.3: do attention weights carry over to a simpler model? The other network is part of
this one: it reads the same batch, its weights never learn, and they are saved with the run, so that the run needs no
other folder to be loaded. `ModelConfig.imposed` says what it looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveClassifier, AttentiveOutput
from heedful.models.attentive.encoders import Encoder
from heedful.models.network import Edit
from heedful.records import Batch


class ImposedClassifier(AttentiveClassifier):
    """Its weights alpha are those of `imposed`, whatever its own embeddings and states are.

    Gradients with respect to its embeddings would not see what a word does through the other network, and its states do
    not give its attention: so it is neither `differentiable` nor does it `pool by attention`. What can be asked by
    reading texts, or under other weights, can be asked.
    """

    can: ClassVar[frozenset[str]] = frozenset({"predicts", "attends", "edits_attention"})

    def __init__(self, imposed: AttentiveClassifier, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.imposed = imposed.requires_grad_(False)

    @property
    def bytes_per_token(self) -> int:
        return super().bytes_per_token + self.imposed.bytes_per_token

    def attend(self, h: Tensor, mask: Tensor, query: Tensor | None = None) -> Tensor:
        raise Mistake("this model has no attention of its own: another model's is imposed on it.")

    def forward(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        alpha: Tensor | None = None,
        edit: Edit | None = None,
    ) -> AttentiveOutput:
        if alpha is None:
            with torch.no_grad():
                alpha = self.imposed(batch).alpha  # (batch, length)
        return super().forward(batch, x=x, x_query=x_query, alpha=alpha, edit=edit)


# h_t = [encoder's state; e_t]: each state is joined by the embedding of its word (Tutek & Snajder 2020).
#
# What the output reads at a place is then to a part the word itself, whatever the encoder has made of it.


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
