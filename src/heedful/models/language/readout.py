"""From the states that the output layer reads to the answer of a question, without a row for every word of the
vocabulary.

    z_v = W_v . h + b_v        z = log sum exp over `this` of z_v  -  log sum exp over `that` of z_v

Of the tokens that are named only their rows of W are taken. Where `that` is every other token, the sum runs over the
vocabulary in chunks, and its gradient, sum_v p_v W_v, is summed with it: what is kept is one vector for each question,
so that a backward pass needs no (questions x vocabulary) tensor either.

A phrase is several tokens in a row: log P = sum_s log p_s, and z = log P / (1 - P), where

    1 - P = sum_s (prod_{r < s} p_r) (1 - p_s)

is summed without ever taking 1 - P of a P that is nearly 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.models.link import log_sigmoid
from heedful.records import Asked

CHUNK = 2**13  # words of the vocabulary at once
FILL = -1  # in rows of token ids: no token


@dataclass(frozen=True, slots=True, eq=False)
class OutputLayer:
    """The output layer, where it is a linear map: z = W h + b."""

    weight: Tensor  # (vocabulary, dim)
    bias: Tensor | None = None  # (vocabulary,) that of the layer, and what the model adds after it

    @classmethod
    def of(cls, head: nn.Module | None, states: Tensor, logits: Tensor) -> OutputLayer | None:
        """The layer, if the model's logits (n, vocabulary) are no more than its map of `states` (n, dim)."""
        if not isinstance(head, nn.Linear) or not head.weight.is_floating_point():
            return None
        own: Tensor | None = head.bias  # type: ignore[assignment, unused-ignore]
        linear = nn.functional.linear(states.float(), head.weight.detach().float())
        added = logits.float() - linear  # (n, vocabulary)
        bias = added.mean(0)
        close = 1e-4 if logits.dtype == torch.float32 else 2e-2
        if bool(((added - bias).abs() > close * logits.abs().max().clamp(min=1)).any()):
            return None  # soft caps and the like
        if bool((bias.abs() <= close).all()) and own is None:
            return cls(head.weight.detach())
        exact = torch.zeros_like(bias) if own is None else own.detach().float()
        return cls(head.weight.detach(), bias if bool(((bias - exact).abs() > close).any()) else exact)

    def of_tokens(self, h: Tensor, ids: Tensor) -> Tensor:
        """Logits of some tokens: (n, dim), (n, most) -> (n, most), -inf where there is none."""
        at = ids.clamp(min=0)
        found = (h.unsqueeze(1) * self.weight[at].to(h.dtype)).sum(-1)  # (n, most)
        if self.bias is not None:
            found = found + self.bias[at].to(h.dtype)
        return found.masked_fill(ids == FILL, -torch.inf)

    def of_others(self, h: Tensor, without: Tensor) -> Tensor:
        """log sum exp of the logits of all tokens but some: (n, dim), (n, most) -> (n,).

        With its gradient: around h it is d . h + a constant, d = sum_v p_v W_v, the same value and the same slope.
        """
        wanted = h.requires_grad and torch.is_grad_enabled()
        rows = torch.arange(len(h), device=h.device)
        with torch.no_grad():
            at = h.detach()
            most, total = at.new_full((len(h),), -torch.inf), at.new_zeros(len(h))  # (n,) running
            d = torch.zeros_like(at) if wanted else None
            for start in range(0, len(self.weight), CHUNK):
                W = self.weight[start : start + CHUNK].to(at.dtype)  # (chunk, dim)
                z = at @ W.T
                if self.bias is not None:
                    z = z + self.bias[start : start + CHUNK].to(at.dtype)
                for ids in without.unbind(1):
                    here = (ids >= start) & (ids < start + len(W))
                    z[rows[here], ids[here] - start] = -torch.inf
                higher = torch.maximum(most, z.amax(1))
                shrunk, p = (most - higher).exp(), (z - higher.unsqueeze(1)).exp()
                most, total = higher, total * shrunk + p.sum(1)
                if d is not None:
                    d = d * shrunk.unsqueeze(1) + p @ W
            value = most + total.log()
            if d is None:
                return value
            d = d / total.unsqueeze(1)
            constant = value - (at * d).sum(1)
        return (h * d).sum(1) + constant

    def logits(self, h: Tensor) -> Tensor:
        """Of every token: (n, dim) -> (n, vocabulary)."""
        bias = None if self.bias is None else self.bias.to(h.dtype)
        return nn.functional.linear(h, self.weight.to(h.dtype), bias)


def answer(read: Tensor, asked: Asked, readout: OutputLayer | None) -> Tensor:
    """z of each question: `read` (n, steps, dim) states, or without a readout (n, steps, vocabulary) logits -> (n, 1).

    The last step is that of `this` and `that`; those before it, of a phrase, are its earlier tokens.
    """
    read = read.float() if read.dtype in (torch.float16, torch.bfloat16) else read
    if asked.phrase is None or asked.phrase.shape[1] == 0:
        return _odds(read[:, -1], asked.this, asked.that, readout).unsqueeze(1)
    n, before = asked.phrase.shape
    width = (n, before + 1, asked.this.shape[1])
    this, that = asked.phrase.new_full(width, FILL), asked.phrase.new_full((*width[:2], asked.that.shape[1]), FILL)
    this[:, :before, 0], this[:, before], that[:, before] = asked.phrase, asked.this, asked.that
    there = (this != FILL).any(2)  # (n, steps)
    at = there.flatten().nonzero().squeeze(1)
    odds = _odds(read.flatten(0, 1)[at], this.flatten(0, 1)[at], that.flatten(0, 1)[at], readout)
    steps = odds.new_zeros(n * (before + 1)).index_add(0, at, odds).view(n, before + 1)  # log-odds of each
    yes = log_sigmoid(steps).masked_fill(~there, 0.0)  # log p of each
    no = log_sigmoid(-steps).masked_fill(~there, -torch.inf)  # log 1 - p
    return (yes.sum(1) - torch.logsumexp(yes.cumsum(1) - yes + no, 1)).unsqueeze(1)


def _odds(read: Tensor, this: Tensor, that: Tensor, readout: OutputLayer | None) -> Tensor:
    """log-odds of some tokens against others, or against all others: (n, dim or vocabulary) -> (n,)."""
    others = (that == FILL).all(1)  # (n,) against every other token
    against = torch.where(others.unsqueeze(1), that.new_zeros(1), that)  # of those that name none, any
    if readout is not None:
        ours = together(readout.of_tokens(read, this))
        if bool(others.all()):
            return ours - readout.of_others(read, this)
        named = together(readout.of_tokens(read, against))
        return ours - (torch.where(others, readout.of_others(read, this), named) if bool(others.any()) else named)
    mine, theirs = chosen(this, read.shape[1]), chosen(that, read.shape[1])  # (n, vocabulary)
    theirs = theirs | (others.unsqueeze(1) & ~mine)
    return _together_of(read, mine) - _together_of(read, theirs)


def together(logits: Tensor) -> Tensor:
    """log sum exp over a few tokens, or the logit itself where it is one: (n, most) -> (n,)."""
    return logits[:, 0] if logits.shape[1] == 1 else torch.logsumexp(logits, 1)


def chosen(ids: Tensor, vocabulary: int) -> Tensor:
    """Which tokens are meant, as a mask: (n, most) with FILL where there is none -> (n, vocabulary) bool."""
    marked = torch.zeros(len(ids), vocabulary + 1, dtype=torch.bool, device=ids.device)
    marked.scatter_(1, ids.where(ids >= 0, vocabulary), True)
    return marked[:, :vocabulary]


def _together_of(logits: Tensor, which: Tensor) -> Tensor:
    """The same over a mask (n, vocabulary): (n,)."""
    if bool((which.sum(1) == 1).all()):
        return logits.gather(1, which.long().argmax(1, keepdim=True)).squeeze(1)
    return torch.logsumexp(logits.masked_fill(~which, -torch.inf), 1)
