"""Heads of attention that are made uniform or shut off: the edit of the experiment `heads` and of the server.

`uniform`: the head attends to all it may attend to alike, so its values are still read and its choice is gone (Jain &
Wallace 2019's uniform attention, for one head). `off`: all its weights are zero, it contributes nothing (Michel et al.
2019, section 3: one head masked).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Attends, Edit
    from heedful.records import Batch

Operation = Literal["off", "uniform"]
Changes = Mapping[tuple[int, int], Operation]  # (layer, head) -> what is done to it


def layers_and_heads(network: Attends, batch: Batch, layers: Sequence[int] | None) -> tuple[list[int], int]:
    """The layers that are asked about (None: all), and how many heads each has."""
    import torch

    from heedful.models.network import layer_number

    with torch.no_grad():
        first = torch.zeros(1, dtype=torch.long, device=network.device)
        n_layers, n_heads = network.attentions(batch.rows(first)).shape[1:3]
    return [layer_number(layer, n_layers) for layer in (range(n_layers) if layers is None else layers)], n_heads


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
        texts, heads, uniform = (torch.tensor(part, device=weights.device) for part in zip(*changed, strict=True))
        # what a head may attend to is what any head of its layer attends to: masks are those of the layer
        may = (weights[texts] > 0).any(1).to(weights)  # (changed, to, from)
        even = may / may.sum(-1, keepdim=True).clamp(min=1)
        edited = weights.clone()
        edited[texts, heads] = torch.where(uniform[:, None, None], even, 0.0)
        return edited

    return edit


@dataclass(frozen=True, slots=True, eq=False)
class ChangedText:
    """One text with some of its heads changed."""

    weights: NDArray[np.float32]  # (layers, heads, to, from) as they are under the changes
    before: NDArray[np.float64]  # (labels,) probabilities as the model is
    after: NDArray[np.float64]  # (labels,)
    distance: float  # between the two


def ask_with_changes(network: Attends, batch: Batch, changes: Changes) -> ChangedText:
    """What the model says of the one text of a batch, and where its heads look, with these heads changed."""
    import torch

    with torch.no_grad():
        own = network(batch)
        output, weights = own, network.attentions(batch)[0]  # (layers, heads, to, from)
        if changes:
            edit, seen = change_heads([changes]), []

            def note(layer: int, weights: Tensor) -> Tensor:
                seen.append(edit(layer, weights))
                return seen[-1]

            output = network(batch, edit=note)
            weights = torch.stack(seen, dim=1)[0]
        before, after = (one.probabilities.double() for one in (own, output))
        distance = float(network.link.distance(after, before)[0])
    return ChangedText(weights.float().cpu().numpy(), before[0].cpu().numpy(), after[0].cpu().numpy(), distance)
