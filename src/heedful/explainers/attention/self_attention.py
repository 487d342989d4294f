"""Maps of self-attention (batch, to, from), without padding and seen from one row."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from heedful.errors import one_of
from heedful.explainers.attention.weights import ROWS, Row, row_of
from heedful.models.network import Attends
from heedful.models.sequence import asked_places, sequences
from heedful.records import Batch


def present_places(batch: Batch) -> Tensor:
    """Where a text's tokens are, those of a query right after those of its passage: (batch, width) bool."""
    return sequences(batch).present


def weights_of(model: Attends, batch: Batch) -> Tensor:
    """(batch, layers, heads, width, width), 0 in the rows and columns of padding."""
    with torch.no_grad():
        weights = model.attentions(batch)
    there = present_places(batch)
    width = there.shape[1]
    square = there[:, None, None, :, None] & there[:, None, None, None, :]
    return weights[..., :width, :width].where(square, 0.0)


def row_name(model: Attends, row: Row | None) -> Row:
    """None: where the model's classifier reads."""
    chosen = row_of(model) if row is None else row
    if chosen not in ROWS:
        raise one_of("row", chosen, list(ROWS))
    return chosen


def rows_of(maps: Tensor, batch: Batch, row: Row) -> Iterator[Tensor]:
    """The rows that are looked from: (batch, ..., to, from) -> (batch, ..., from), one, or each where all count."""
    last = present_places(batch).sum(1) - 1  # (batch,)
    if row in ("mean", "asked"):
        yield from maps.unbind(-2)
    elif row == "first":
        yield maps.select(-2, 0)
    else:
        yield maps[torch.arange(len(maps), device=maps.device), ..., last, :]


def mean_row(rows: Iterator[Tensor], batch: Batch, row: Row) -> Tensor:
    """The mean of the rows that are looked from, or the one row that there is: (batch, from)."""
    each = list(rows)
    if len(each) == 1:
        return each[0]
    there = asked_places(batch) if row == "asked" else present_places(batch)  # (batch, to)
    total = torch.stack([one * at.unsqueeze(1) for one, at in zip(each, there.unbind(1), strict=True)]).sum(0)
    return total / there.sum(1, keepdim=True)


def of_one_length(batch: Batch) -> Iterator[tuple[Tensor, Batch]]:
    """The texts in groups without padding, each with its rows in the batch."""
    sizes = batch.passage.present.sum(1)
    if batch.query is not None:
        sizes = sizes * (batch.query.ids.shape[1] + 1) + batch.query.present.sum(1)
    for size in torch.unique(sizes).tolist():
        rows = (sizes == size).nonzero().squeeze(1)
        yield rows, batch.rows(rows)
