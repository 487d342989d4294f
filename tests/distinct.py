"""Batches for comparing two ways of leaving words out."""

from __future__ import annotations

from dataclasses import replace

import torch

import zoo
from heedful.records import Batch


def distinct(batch: Batch) -> Batch:
    """No word twice: leaving out either of two equal neighbours is a tie, which rounding may break."""
    ids = batch.passage.ids.clone()
    generator = torch.Generator().manual_seed(0)
    for row, mask in zip(ids, batch.passage.mask, strict=True):
        row[mask] = 4 + torch.randperm(zoo.N_WORDS - 4, generator=generator)[: int(mask.sum())]
    return replace(batch, passage=replace(batch.passage, ids=ids))
