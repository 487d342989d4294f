"""Attention through all layers at once: how much of a word is left in the state that the classifier reads.

Abnar & Zuidema 2020: the residual connection is half of a layer, A' = (A + I) / 2 with the heads averaged and rows
normalised. `rollout` multiplies the layers, A'_l ... A'_1; `attention_flow` takes A' for the capacities of pipes and
asks how much can flow from a word to the top.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.attention.self_attention import mean_row, present_places, row_name, rows_of, weights_of
from heedful.explainers.attention.weights import Heads, Row, head_numbers, token_scores
from heedful.explainers.explainer import Scores
from heedful.models.network import SelfAttends, layer_number
from heedful.models.sequence import asked_places
from heedful.records import Batch

UNIT = 2**29  # SciPy's flows are whole numbers of 32 bits: capacities are rounded to 1 / UNIT
MAX_TOKENS = 128


def rollout(
    model: SelfAttends, batch: Batch, target: Tensor, *, layer: int = -1, heads: Heads = None, row: Row | None = None
) -> Scores:
    """Attention rollout (Abnar & Zuidema 2020, section 3, equation 1) up to `layer`. The same for every target.

    `row`: seen from the first token, from the last, or the mean over all; None: where the classifier reads. Over all
    tokens, special ones included, scores sum to 1.
    """
    seen_from = row_name(model, row)
    maps = with_residual(weights_of(model, batch), heads, batch)  # (batch, layers, width, width)
    rolled = maps[:, 0]
    for one in maps.unbind(1)[1 : layer_number(layer, maps.shape[1]) + 1]:
        rolled = one @ rolled
    return token_scores(mean_row(rows_of(rolled, batch, seen_from), batch, seen_from), batch, len(batch))


def attention_flow(
    model: SelfAttends,
    batch: Batch,
    target: Tensor,
    *,
    layer: int = -1,
    heads: Heads = None,
    row: Row | None = None,
    max_tokens: int = MAX_TOKENS,
) -> Scores:
    """The maximum flow from each token to the state of one token at `layer` (Abnar & Zuidema 2020, section 3).

    A number from 0 to 1 for each token by itself: flows of several tokens share pipes, so they do not sum to 1. One
    maximum flow for each of n tokens, over n^2 pipes a layer: time grows with n^3 at least, and texts with more than
    `max_tokens` tokens are refused. Exact for capacities rounded to 2^-29.
    """
    seen_from = row_name(model, row)
    if seen_from == "mean":
        raise Mistake("row='mean': attention_flow would need n^2 maximum flows; give row='first' or row='last'.")
    sizes = present_places(batch).sum(1)
    if int(sizes.max()) > max_tokens:
        raise Mistake(
            f"attention_flow of a text with {int(sizes.max())} tokens takes as many maximum flows, and the time grows "
            f"with the cube of the length: give a shorter text, or max_tokens above {max_tokens}."
        )
    maps = with_residual(weights_of(model, batch), heads, batch)
    maps = maps[:, : layer_number(layer, maps.shape[1]) + 1]
    asked = asked_places(batch) if seen_from == "asked" else None
    if asked is not None and int(asked.sum(1).max()) > 1:
        raise Mistake("attention_flow is seen from one place, and this question is about several: use rollout.")
    flows = torch.zeros(len(batch), maps.shape[-1], dtype=torch.float64)
    for i, n in enumerate(sizes.tolist()):
        top = (0 if seen_from == "first" else n - 1) if asked is None else int(asked[i].long().argmax())
        flows[i, :n] = torch.from_numpy(max_flows(maps[i, :, :n, :n].double().cpu().numpy(), top))
    return token_scores(flows.to(maps), batch, len(batch))


def with_residual(weights: Tensor, heads: Heads, batch: Batch) -> Tensor:
    """(A + I) / 2, heads averaged, rows of present tokens normalised: (batch, layers, width, width)."""
    there = present_places(batch)
    A = weights[:, :, head_numbers(heads, weights.shape[2])].mean(2)  # (batch, layers, width, width)
    A = (A + torch.diag_embed(there.to(A)).unsqueeze(1)) / 2
    total = A.sum(-1, keepdim=True)
    return A / torch.where(total > 0, total, 1.0)


def max_flows(maps: NDArray[np.float64], top: int) -> NDArray[np.float64]:
    """From node `top` above the last of the layers (layers, n, n) down to each of the n tokens: (n,)."""
    graph = pipes(maps)
    layers, n = maps.shape[:2]
    source = layers * n + top
    return np.array([maximum_flow(graph, source, token).flow_value for token in range(n)]) / UNIT


def pipes(maps: NDArray[np.float64]) -> csr_array:
    """Node l n + i is token i below layer l; the pipe from (l + 1, i) down to (l, j) holds maps[l, i, j]."""
    layers, n = maps.shape[:2]
    layer, i, j = np.nonzero(np.round(maps * UNIT))
    capacity = np.round(maps[layer, i, j] * UNIT).astype(np.int32)
    size = (layers + 1) * n
    return csr_array(coo_array((capacity, ((layer + 1) * n + i, layer * n + j)), shape=(size, size)))
