"""What of a token's state is gone when a word's value vector is zero (Mohebbi et al. 2023).

In one layer the value of token j is set to zero; the score of j for token i is the cosine distance between what the
layer then makes of token i and what it made of it before. The weights multiply values, so a value of zero is a column
of zero weights, not normalised again: sum_j alpha_ij v_j without the term j. That is an edit of attention, and needs no
model code. Unlike the weights, the score sees values, residual connection and feed-forward layer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.explainers.attention.self_attention import mean_row, present_places, row_name, rows_of
from heedful.explainers.attention.weights import Row, token_scores
from heedful.explainers.explainer import Scores
from heedful.models.network import SelfAttends, layer_number
from heedful.records import Batch

TOKENS = 4096  # of one forward pass


@torch.no_grad()
def value_zeroing(
    model: SelfAttends, batch: Batch, target: Tensor, *, layer: int = -1, row: Row | None = None
) -> Scores:
    """Value zeroing at one `layer` (Mohebbi et al. 2023), rows normalised to sum 1.

    Seen from the first token, the last, or the mean over all (`row`); None: where the classifier reads.
    """
    seen_from = row_name(model, row)
    own = model.states(batch)  # (batch, layers + 1, length, dim)
    number = layer_number(layer, own.shape[1] - 1)
    there = present_places(batch)  # (batch, width)
    width = there.shape[1]
    # what the layer makes of each token (batch, width, dim); 1 - cosine of float32 would be mostly rounding
    before = own[:, number + 1, :width].double()
    maps = before.new_zeros(len(batch), width, width)  # (batch, to, from)
    text, j = there.nonzero(as_tuple=True)  # one question for each token
    at_once = max(1, TOKENS // width)
    for begin in range(0, len(text), at_once):
        asked, column = text[begin : begin + at_once], j[begin : begin + at_once]

        def edit(which: int, weights: Tensor, column: Tensor = column) -> Tensor:
            if which != number:
                return weights
            edited = weights.clone()
            edited[torch.arange(len(column), device=column.device), :, :, column] = 0.0
            return edited

        after = model.states(batch.rows(asked), edit=edit)[:, number + 1].double()  # (questions, at most width, dim)
        n = min(width, after.shape[1])
        distance = 1 - torch.cosine_similarity(after[:, :n], before[asked, :n], dim=-1)  # (questions, n)
        maps[asked, :n, column] = distance.clamp(min=0) * there[asked, :n]
    total = maps.sum(-1, keepdim=True)
    maps = maps / torch.where(total > 0, total, 1.0)
    scores = mean_row(rows_of(maps, batch, seen_from), batch, seen_from)
    return token_scores(scores.to(own.dtype), batch, len(batch) + len(text))
