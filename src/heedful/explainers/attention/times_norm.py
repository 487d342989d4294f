"""Weights times the norm of what they weight (Kobayashi et al. 2020): ||sum_h alpha^h_ij f^h(x_j)||.

f^h(x) = (x W_V^h + b_V^h) W_O^h is what head h would add to the output of its layer, had it attended to x alone. So it
is had by asking: with the weights of head h set to the identity and those of all others to 0, the output of the
attention at place j is f^h(x_j) + b_O. A TorchFunctionMode follows the weights through the product with the values to
the output projection, and reads that output: no model code, no hook, and nothing is assumed of the layer but that it
mixes values and projects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from heedful.errors import Mistake
from heedful.explainers.attention.self_attention import (
    mean_row,
    of_one_length,
    present_places,
    row_name,
    rows_of,
    weights_of,
)
from heedful.explainers.attention.weights import Heads, Row, head_numbers, token_scores
from heedful.explainers.explainer import Scores
from heedful.explainers.lrp.frozen import tensors
from heedful.models.network import SelfAttends, layer_number
from heedful.records import Batch

MIXES = frozenset({"matmul", "bmm", "einsum"})  # weights x values
PROJECTS = frozenset({"linear", "addmm", "matmul", "mm"})  # the output projection
_MOVES = """transpose permute reshape view flatten unflatten squeeze unsqueeze contiguous clone to type dropout"""
MOVES = frozenset(_MOVES.split())  # what only moves numbers to other places


def attention_x_norm(
    model: SelfAttends, batch: Batch, target: Tensor, *, layer: int = -1, heads: Heads = None, row: Row | None = None
) -> Scores:
    """||sum over `heads` of alpha^h_ij f^h(x_j)|| of one `layer` (Kobayashi et al. 2020, section 3).

    i is the first token, the last, or the mean over all (`row`); None: where the classifier reads. What the residual
    connection adds is not counted.
    """
    seen_from = row_name(model, row)
    weights = weights_of(model, batch)  # (batch, layers, heads, width, width)
    number = layer_number(layer, weights.shape[1])
    chosen = head_numbers(heads, weights.shape[2])
    values = weights.new_zeros(len(batch), weights.shape[-1])
    # Without padding, places are the same wherever a network puts padding.
    for rows, group in of_one_length(batch):
        n = present_places(group).shape[1]
        alpha = weights[rows, number][:, chosen, :n, :n]  # (texts, heads, to, from)
        f = head_outputs(model, group, number, chosen).transpose(1, 2)  # (texts, from, heads, dim)
        norms = (
            (one.transpose(1, 2).unsqueeze(2) @ f).squeeze(2).norm(dim=-1)  # (texts, from)
            for one in rows_of(alpha, group, seen_from)
        )
        values[rows, :n] = mean_row(norms, group, seen_from)
    return token_scores(values, batch, (len(chosen) + 2) * len(batch))


@torch.no_grad()
def head_outputs(model: SelfAttends, batch: Batch, layer: int, heads: Sequence[int]) -> Tensor:
    """f^h(x_j) of the texts of a batch without padding: (texts, heads, length, dim)."""
    nothing = _attention_output(model, batch, layer, None)  # b_O
    return torch.stack([_attention_output(model, batch, layer, head) - nothing for head in heads], dim=1)


def _attention_output(model: SelfAttends, batch: Batch, layer: int, head: int | None) -> Tensor:
    """The attention's output (texts, length, dim) when `head` looks at each place itself, and no other at anything."""
    follow = _Follow()

    def edit(number: int, weights: Tensor) -> Tensor:
        if number != layer:
            return weights
        edited = torch.zeros_like(weights)
        if head is not None:
            edited[:, head] = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        return follow.begin(edited)

    with follow:
        model(batch, edit=edit)
    if follow.found is None:
        raise Mistake(
            f"attention_x_norm: no output projection follows the attention of layer {layer}, so there are no norms."
        )
    return follow.found.reshape(len(batch), present_places(batch).shape[1], -1)


class _Follow(TorchFunctionMode):
    """Follows the weights of one layer, until what they have mixed is projected."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Tensor | None = None
        self._weights: list[Tensor] = []
        self._mixed: list[Tensor] = []

    def begin(self, weights: Tensor) -> Tensor:
        self._weights.append(weights)
        return weights

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.found is None and self._weights and isinstance(out, Tensor):
            given = list(tensors(args))
            if _among(given, self._mixed):
                self._after(func.__name__, out)
            elif _among(given, self._weights):
                (self._mixed if func.__name__ in MIXES else self._weights).append(out)
        return out

    def _after(self, name: str, out: Tensor) -> None:
        if name in PROJECTS:
            self.found = out
        elif name in MOVES:
            self._mixed.append(out)
        else:
            raise Mistake(
                f"attention_x_norm: in this model {name!r} comes between attention and its output projection, so "
                "what a word contributes is not a product of weight and vector."
            )


def _among(given: list[Tensor], known: list[Tensor]) -> bool:
    return any(one is other for one in given for other in known)
