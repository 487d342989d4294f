"""From logits at places of a text to the log-odds of an answer.

An answer at several places (all words of a name, both ends of a span) holds if it holds at each of them, and a model
says each by itself, so that

    P(answer) = prod_k p_k        z = log P(this) - log P(that)        where `that` is named
                                  z = log P / (1 - P)                  where it is any other answer

The first needs no normaliser, as both answers have the same: z = sum_k (z_k,this - z_k,that). In the second 1 - P =
sum_k (prod_{r < k} p_r) (1 - p_k) is summed without ever taking 1 - P of a P that is nearly 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.models.link import log_sigmoid
from heedful.records import Asked

NONE = -1  # no place, in rows of questions with fewer


def answer(logits: Tensor, places: Tensor, asked: Asked, among: Tensor | None = None) -> Tensor:
    """z of each question: logits (n, width, outputs), the bits of its places (n, width) -> (n, 1).

    Of models that give each place one of several outputs. `among` (n, width): of models whose every output has its
    place instead, the places that it can have.
    """
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    this, others = zip(*(_step(logits, places, asked, k, among) for k in range(asked.this.shape[1])), strict=True)
    there = asked.this != NONE  # (n, places)
    odds = torch.stack([one - other for one, other in zip(this, others, strict=True)], 1)  # (n, places)
    yes = log_sigmoid(odds).masked_fill(~there, 0.0)  # log p of each
    no = log_sigmoid(-odds).masked_fill(~there, -torch.inf)  # log 1 - p
    alone = odds[:, 0] if odds.shape[1] == 1 else yes.sum(1) - torch.logsumexp(yes.cumsum(1) - yes + no, 1)
    named = (asked.that != NONE).any(1)  # (n,)
    if not bool(named.any()):
        return alone.unsqueeze(1)
    return torch.where(named, _contrast(logits, places, asked, among), alone).unsqueeze(1)


def _contrast(logits: Tensor, places: Tensor, asked: Asked, among: Tensor | None) -> Tensor:
    """sum_k (z_k,this - z_k,that): (n,)."""
    width = asked.this.shape[1]
    total = logits.new_zeros(len(logits))
    for k in range(min(width, asked.that.shape[1])):
        there = asked.that[:, k] != NONE  # (n,)
        ours = _at(logits, places, k)
        theirs = ours if among is None else _at(logits, places, k + width)
        difference = _chosen(ours, asked.this[:, k]) - _chosen(theirs, asked.that[:, k])
        total = total + difference.masked_fill(~there, 0.0)
    return total


def _step(logits: Tensor, places: Tensor, asked: Asked, k: int, among: Tensor | None) -> tuple[Tensor, Tensor]:
    """The logit of the answer at place k, and log sum exp of those of all other answers there: (n,) twice."""
    here = _at(logits, places, k)  # (n, outputs)
    this = asked.this[:, k]
    if among is None:
        mine = torch.zeros_like(here, dtype=torch.bool).scatter_(1, this.clamp(min=0).unsqueeze(1), True)
        return _chosen(here, this), torch.logsumexp(here.masked_fill(mine, -torch.inf), 1)
    row = torch.arange(len(logits), device=logits.device)
    end = logits[row, :, this.clamp(min=0)]  # (n, width) of one end
    elsewhere = among & ~_marked(places, k)
    return _chosen(here, this), torch.logsumexp(end.masked_fill(~elsewhere, -torch.inf), 1)


def _at(logits: Tensor, places: Tensor, k: int) -> Tensor:
    """Logits where place k is: (n, outputs). A question that has no such place reads its first token."""
    at = _marked(places, k).long().argmax(1)  # (n,)
    return logits[torch.arange(len(logits), device=logits.device), at]


def _marked(places: Tensor, k: int) -> Tensor:
    return (places >> k) & 1 == 1


def _chosen(values: Tensor, which: Tensor) -> Tensor:
    """(n, outputs), (n,) -> (n,)."""
    found: Tensor = values.gather(1, which.clamp(min=0).unsqueeze(1)).squeeze(1)
    return found
