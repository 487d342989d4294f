"""BiLRP: which word of one text with which word of the other made two texts alike (Eberle et al. 2022).

With gates held constant a network is linear (lrp/frozen.py), so the vector of a text is a sum over its tokens and its
constants, u = sum_i u_i + u_0, and the cosine a sum over pairs:

    u . v / (|u| |v|) = sum_ij u_i . v_j / (|u| |v|)        i and j tokens or constants

The paper takes a backward pass for each number of a vector. Here are as many as the second text has tokens: v_j, what
token j is worth, is the derivative of c -> J' c in c, and u_i . v_j is x_i . J' v_j of the first text. Constants are
counted where they are added, by their own formula, so that the sum over all pairs is a check against the cosine.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from heedful.errors import Mistake
from heedful.explainers.explainer import Scores
from heedful.explainers.lrp.decomposition import TOLERANCE
from heedful.explainers.lrp.frozen import frozen
from heedful.records import Batch, Tokens


def bilrp(model: Any, batch: Batch, target: Tensor) -> Scores:
    """(passage words x query words), each pair's share of the cosine; a word's score is the sum over its pairs.

    `gap` is what stands between no two words: special tokens, positions and biases; `scale` the cosine's size.
    """
    batch = batch.to(model.device)
    assert batch.query is not None
    n, length, width = len(batch), batch.passage.ids.shape[1], batch.query.ids.shape[1]
    found = torch.zeros(n, length, width, device=model.device, dtype=model.dtype)
    cosines = model(batch).logits[:, 0].detach()  # (batch,)
    for row in range(n):
        text = batch.rows(torch.arange(row, row + 1, device=model.device))
        assert text.query is not None
        pairs = _pairs(model, text.passage, text.query, cosines[row])
        found[row, : pairs.shape[0], : pairs.shape[1]] = pairs
    found = found * batch.passage.mask.unsqueeze(2) * batch.query.mask.unsqueeze(1)
    every = found.new_zeros(n, length + width, length + width)
    every[:, :length, length:] = found
    passes = (batch.query.present.sum(1) + 1).long()
    return Scores(
        passage=found.sum(2),
        query=found.sum(1),
        gap=cosines - found.sum((1, 2)),
        scale=cosines.abs(),
        forward_passes=2 * passes,
        backward_passes=3 * passes,
        pairs=every,
    )


def _pairs(model: Any, first: Tokens, second: Tokens, cosine: Tensor) -> Tensor:
    """The shares of a cosine that belong to two tokens: (tokens of the first, tokens of the second)."""
    parts, constant, v = _parts(model, second)  # (tokens, dim), (dim,), (dim,)
    cotangents = torch.cat([parts, constant.unsqueeze(0)])  # (tokens + 1, dim)
    same = torch.zeros(len(cotangents), dtype=torch.long, device=cotangents.device)
    tokens = first.rows(same)
    x = model.embed(tokens).detach().requires_grad_()
    with torch.enable_grad():
        with frozen(model, [x]) as mode:
            u = model.vector(tokens, x)  # (tokens + 1, dim), each row the same
        (slope,) = torch.autograd.grad(u, x, grad_outputs=cotangents.to(u))
    worth = (slope * x.detach()).sum(-1).T  # (tokens of the first, tokens of the second + 1)
    rest = sum(mode.constants.values())  # (tokens of the second + 1,)
    size = u[0].detach().norm() * v.norm()
    size = size.clamp(min=torch.finfo(size.dtype).tiny)
    total = (worth.sum() + torch.as_tensor(rest).sum()) / size
    scale = (worth.abs().sum() / size).clamp(min=1.0)
    if not bool((total - cosine).abs() <= max(TOLERANCE, torch.finfo(size.dtype).eps ** 0.5) * scale):
        raise Mistake(
            f"bilrp cannot take this network apart: its pairs sum to {float(total):.4f}, and the cosine is "
            f"{float(cosine):.4f}; it has a layer that is not linear when attention, norms and activations are held "
            "constant. Use removal_interactions."
        )
    found: Tensor = (worth[:, :-1] / size).detach()
    return found


def _parts(model: Any, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
    """What each token is worth in the vector of one text, and what the constants are: (tokens, dim), (dim,), (dim,)."""
    n = tokens.ids.shape[1]
    every = tokens.rows(torch.zeros(n, dtype=torch.long, device=tokens.ids.device))
    x = model.embed(every).detach().requires_grad_()
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # the fast kernels cannot be differentiated twice
        with frozen(model, [x]) as mode:
            v = model.vector(every, x)  # (n, dim)
        c = torch.zeros_like(v).requires_grad_()
        (slope,) = torch.autograd.grad(v, x, grad_outputs=c, create_graph=True)  # J' c, linear in c
        each = torch.arange(n, device=x.device)
        own = (slope[each, each] * x.detach()[each, each]).sum()  # row j asks about token j
        constants = torch.stack([torch.as_tensor(one) for one in mode.constants.values()]).sum(0)  # (n,)
        (parts,) = torch.autograd.grad(own, c, retain_graph=True)
        (constant,) = torch.autograd.grad(constants[0], c)
    return parts.detach(), constant[0].detach(), v[0].detach()
