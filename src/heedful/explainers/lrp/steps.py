"""Relevance of many steps of one continuation: one forward pass through the frozen network, a backward pass for each.

As for gradients (explainers/gradients/steps.py). What constants are worth is counted by each backward pass anew.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.explainers.lrp.decomposition import Decomposition
from heedful.explainers.lrp.frozen import BIASES, POSITIONS, LrpRule, frozen
from heedful.models.language.families import Families, alike, lengths_of
from heedful.records import Batch, Tokens


def decompose_steps(network: Any, batch: Batch, target: Tensor, rule: LrpRule = "frozen") -> Decomposition:
    """Of a batch in which texts are beginnings of others. What does not add up by text here is for the general path."""
    n, like = len(batch), torch.zeros((), device=network.device, dtype=network.dtype)
    f, words, special, positions, biases = like.new_zeros(5, n)
    parts = [None if tokens is None else like.new_zeros(tokens.ids.shape) for tokens in (batch.passage, batch.query)]
    for members in alike(batch).of_one_size(lengths_of(batch)):  # (families, size)
        families, size = members.shape
        some = batch.rows(members.flatten())
        family = torch.arange(families, device=members.device)
        together = Families(family * size + size - 1, family.repeat_interleave(size))
        longest = some.rows(together.longest)
        with torch.no_grad():
            x = [network.embed(tokens) for tokens in _read(longest)]
        x = [part.detach().clone().requires_grad_() for part in x]
        with torch.enable_grad():
            with frozen(network, x, rule) as mode:
                output = network.together(some, together, x[0], x[1] if len(x) > 1 else None)
            scores = network.link.score(output.logits, target[members.flatten()]).view(families, size)
            for k in range(size):
                for kind, counted in mode.constants.items():
                    mode.constants[kind] = torch.zeros_like(counted)
                rows = members[:, k]
                slopes = torch.autograd.grad(scores[:, k].sum(), x, retain_graph=k + 1 < size)
                f[rows] = scores[:, k].detach().to(f)
                positions[rows], biases[rows] = mode.constants[POSITIONS], mode.constants[BIASES]
                for found, slope, part, tokens in zip(parts, slopes, x, _read(batch.rows(rows)), strict=False):
                    assert found is not None
                    of_tokens = (slope * part).sum(-1).detach()[:, : tokens.ids.shape[1]]
                    found[rows, : of_tokens.shape[1]] = of_tokens
                    words[rows] += (of_tokens * tokens.mask).sum(1)
                    special[rows] += (of_tokens * ~tokens.mask).sum(1)
    assert parts[0] is not None
    return Decomposition(f, parts[0], parts[1], words, special, positions, biases)


def _read(batch: Batch) -> list[Tokens]:
    return [batch.passage] if batch.query is None else [batch.passage, batch.query]
