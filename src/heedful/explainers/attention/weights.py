"""Attention as an explanation: the weights themselves, the claim that is on trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import Scores, scores_of_tokens
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.network import Attends, Network, Output, layer_number
from heedful.models.sequence import asked_places, split
from heedful.models.sequence import present as present_of
from heedful.records import Batch

Row = Literal["first", "last", "mean", "asked"]
Kind = Literal["cross", "decoder", "encoder"]
Heads = int | Sequence[int] | None  # of a layer; None: all of them
ROWS: tuple[Row, ...] = ("first", "last", "mean", "asked")  # asked: the places that a question is about


def attention(
    model: Attends,
    batch: Batch,
    target: Tensor,
    *,
    layer: int = -1,
    heads: Heads = None,
    row: Row | None = None,
    kind: Kind | None = None,
    output: Output | None = None,
) -> Scores:
    """alpha_t, the same for every target (Bastings & Filippova 2020, equation 1).

    Where there are several: the mean over `heads` (None: all) of one `layer` (-1: the last), seen from one position
    (`row`: the first, where classifiers have [CLS]; the last, where decoders read; the places that are asked about;
    or the mean over all; None: the one that the model's answer is read from). `kind`, of an encoder-decoder: what is
    said looks at the source ("cross", unless told otherwise), at what was said before ("decoder"), or the source at
    itself ("encoder"). A query gets scores where the model attends to it.
    output: what the model says of the batch, where that is known already and holds its attention.
    """
    if isinstance(output, AttentiveOutput):
        layer_number(layer, 1)
        weights = output.alpha[:, None, None, None]
    else:
        with torch.no_grad():
            weights = model.attentions(batch, layer, **of_kind(model, kind))  # (batch, 1, heads, to, from)
    there = present_of(batch, weights.shape[-1])  # (batch, from)
    values = attention_row(weights, looking(batch, there, row or row_of(model)), 0, heads, row or row_of(model))
    return token_scores(values, batch, len(batch))


def of_kind(model: Network, kind: Kind | None) -> dict[str, Any]:
    """What is asked of a model with several kinds of attention; of others there is one."""
    if kind is None:
        return {}
    if not hasattr(model, "kinds"):
        raise Mistake(f"kind={kind!r}: this model has one kind of attention; an encoder-decoder has three.")
    return {"kind": kind}


def token_scores(values: Tensor, batch: Batch, forward_passes: int) -> Scores:
    """Values at the places of tokens (batch, width) as scores of words; `special` is what other tokens got."""
    passage, query = split(values, batch)
    return scores_of_tokens(passage, query, batch, forward_passes)


def row_of(model: Network) -> Row:
    """The place that a model's classifier reads: the first, unless it says otherwise."""
    found: Row = getattr(model, "reads", "first")
    return found


def looking(batch: Batch, present: Tensor, row: Row) -> Tensor:
    """The places that attention is seen from, where it is a mean over some: (batch, to)."""
    return asked_places(batch)[:, : present.shape[1]] if row == "asked" else present


def attention_row(weights: Tensor, present: Tensor, layer: int, heads: Heads, row: Row) -> Tensor:
    """One distribution for each text, (batch, from), out of (batch, layers, heads, to, from)."""
    layers, n_heads, to = weights.shape[1:4]
    number, chosen = layer_number(layer, layers), head_numbers(heads, n_heads)
    one = weights[:, number, chosen].mean(1) if len(chosen) > 1 else weights[:, number, chosen[0]]  # (batch, to, from)
    if row not in ROWS:
        raise one_of("row", row, list(ROWS))
    if to == 1 or row == "first":
        return one[:, 0]
    if row == "last":
        last = present.sum(1) - 1  # (batch,)
        return one[torch.arange(len(one), device=one.device), last]
    there = present[:, :to].to(one.dtype).unsqueeze(-1)  # (batch, to, 1)
    return (one * there).sum(1) / there.sum(1).clamp(min=1)


def head_numbers(heads: Heads, n_heads: int) -> list[int]:
    """None: all heads of a layer."""
    chosen = list(range(n_heads)) if heads is None else [heads] if isinstance(heads, int) else list(heads)
    if not chosen or not all(0 <= head < n_heads for head in chosen):
        raise Mistake(f"heads {chosen}: this model has {n_heads} heads in each layer, 0 to {n_heads - 1}.")
    if len(set(chosen)) < len(chosen):
        raise Mistake(f"heads {chosen}: give each head once.")
    return chosen
