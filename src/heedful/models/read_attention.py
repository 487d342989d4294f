"""The attention that a classifier's answer is read from: what objectives about attention are of.

It is the one attention of our classifiers; of a checkpoint that of the token that its classifier reads ([CLS], or the
last one), in chosen layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.records import Batch

Reads = Literal["first", "last"]  # the token that a checkpoint's classifier reads


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
    length = batch.passage.present.sum(1) + (
        0 if batch.query is None else batch.query.present.sum(1)
    )  # (batch,)
    return some[torch.arange(len(length), device=some.device), :, :, length - 1]
