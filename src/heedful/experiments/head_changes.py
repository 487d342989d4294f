"""Heads of attention that are made uniform or shut off: the edit of the experiment `heads` and of the server.

`uniform`: the head attends to all it may attend to alike, so its values are still read and its choice is gone (Jain &
Wallace 2019's uniform attention, for one head). `off`: all its weights are zero, it contributes nothing (Michel et al.
2019, section 3: one head masked).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Edit

Operation = Literal["off", "uniform"]
Changes = Mapping[tuple[int, int], Operation]  # (layer, head) -> what is done to it


def change_heads(asked: Sequence[Changes]) -> Edit:
    """Each text of the batch has its own heads that are changed."""
    import torch

    def edit(number: int, weights: Tensor) -> Tensor:  # (texts, heads, to, from)
        changed = [
            (text, head, operation == "uniform")
            for text, changes in enumerate(asked)
            for (layer, head), operation in changes.items()
            if layer == number
        ]
        if not changed:
            return weights
        texts, heads, uniform = (
            torch.tensor(part, device=weights.device) for part in zip(*changed, strict=True)
        )
        # what a head may attend to is what any head of its layer attends to: masks are those of the layer
        may = (weights[texts] > 0).any(1).to(weights)  # (changed, to, from)
        even = may / may.sum(-1, keepdim=True).clamp(min=1)
        edited = weights.clone()
        edited[texts, heads] = torch.where(uniform[:, None, None], even, 0.0)
        return edited

    return edit
