"""Relevance through the encoders without recurrence. Each returns h and the way back to words.

An activation passes relevance on as it is (ReLU, tanh; GELU is x times a gate of x, and the signal x takes
all). In self-attention the weights are gates, so only the values pass relevance on; LayerNorm is linear at
its own, fixed, standard deviation (Ali et al. 2022); a residual sum shares by contribution.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.explainers.lrp.rules import Back, Layer, Rule, linear, linear_words
from heedful.models.attentive.encoders import CNN, Average, Block, NoEncoder, Transformer, positions


def no_encoder(rule: Rule, name: str, encoder: NoEncoder, x: Tensor, present: Tensor) -> Layer:
    rule.keep(name, torch.zeros_like(x))
    return x, lambda R: R.sum(-1)


def average(rule: Rule, name: str, encoder: Average, x: Tensor, present: Tensor) -> Layer:
    z, back = linear_words(rule, name, x, encoder.linear.weight, encoder.linear.bias)
    return encoder.activation(z), back


def cnn(rule: Rule, name: str, encoder: CNN, x: Tensor, present: Tensor) -> Layer:
    x = (x * present.unsqueeze(-1)).transpose(1, 2)  # (batch, dim, length)
    convolutions = [conv for conv in encoder.convolutions if isinstance(conv, nn.Conv1d)]
    z = torch.cat([conv(x) for conv in convolutions], dim=1)  # (batch, hidden, length)
    bias = torch.cat([conv.bias for conv in convolutions if conv.bias is not None]).unsqueeze(1)  # (hidden, 1)

    def back(R_h: Tensor) -> Tensor:
        s = rule.ratio(R_h.transpose(1, 2), z, name, bias)  # (batch, hidden, length)
        parts = zip(convolutions, s.chunk(len(convolutions), dim=1), strict=True)
        spread = [F.conv_transpose1d(part, conv.weight, padding=conv.kernel_size[0] // 2) for conv, part in parts]
        return (x * torch.stack(spread).sum(0)).sum(1)

    return z.relu().transpose(1, 2), back


def transformer(rule: Rule, name: str, encoder: Transformer, x: Tensor, present: Tensor) -> Layer:
    place = positions(x.shape[1], encoder.linear.out_features).to(x)  # (length, hidden): a constant, as a bias
    h, back_words = linear_words(rule, name, x, encoder.linear.weight, encoder.linear.bias + place)
    ways = [back_words]
    for i, block in enumerate(encoder.blocks):
        assert isinstance(block, Block)
        for step in (attention_step, mlp_step):
            h, way = step(rule, f"{name} block {i}", block, h, present)
            ways.append(way)
    h, way = layer_norm(rule, f"{name} norm", h, encoder.norm)
    ways.append(way)

    def back(R: Tensor) -> Tensor:
        for way in reversed(ways):
            R = way(R)
        return R

    return h, back


def attention_step(rule: Rule, name: str, block: Block, h: Tensor, present: Tensor) -> Layer:
    """h + W_out mixed + b_out, mixed = A v: the weights A are gates."""
    name = f"{name} attention"
    hidden = h.shape[-1]
    normed, back_norm = layer_norm(rule, name, h, block.norm_attention)
    weight, bias = block.project_in.weight, block.project_in.bias

    def heads(part: Tensor) -> Tensor:
        return part.view(*h.shape[:2], block.heads, -1).transpose(1, 2)  # (batch, heads, length, hidden / heads)

    q, k = (normed @ weight[: 2 * hidden].T + bias[: 2 * hidden]).chunk(2, dim=-1)
    v, back_v = linear(rule, name, normed, weight[2 * hidden :], bias[2 * hidden :])
    scores = heads(q) @ heads(k).transpose(2, 3) / math.sqrt(hidden // block.heads)
    A = scores.masked_fill(~present[:, None, None, :], -torch.inf).softmax(-1)  # (batch, heads, length, length)
    mixed = A @ heads(v)  # (batch, heads, length, hidden / heads)
    out, back_out = linear(
        rule, name, mixed.transpose(1, 2).flatten(2), block.project_out.weight, block.project_out.bias
    )

    def branch(R: Tensor) -> Tensor:
        s = rule.ratio(heads(back_out(R)), mixed, name)
        return back_norm(back_v((heads(v) * (A.transpose(2, 3) @ s)).transpose(1, 2).flatten(2)))

    return residual(rule, name, h, out, branch)


def mlp_step(rule: Rule, name: str, block: Block, h: Tensor, present: Tensor) -> Layer:
    """h + W_2 GELU(W_1 norm(h) + b_1) + b_2."""
    name = f"{name} mlp"
    first, _, second = block.mlp
    assert isinstance(first, nn.Linear)
    assert isinstance(second, nn.Linear)
    normed, back_norm = layer_norm(rule, name, h, block.norm_mlp)
    z, back_first = linear(rule, name, normed, first.weight, first.bias)
    out, back_second = linear(rule, name, F.gelu(z), second.weight, second.bias)
    return residual(rule, name, h, out, lambda R: back_norm(back_first(back_second(R))))


def residual(rule: Rule, name: str, h: Tensor, out: Tensor, branch: Back) -> Layer:
    """h + out(h)."""
    z = h + out

    def back(R: Tensor) -> Tensor:
        s = rule.ratio(R, z, name)
        return h * s + branch(out * s)

    return z, back


def layer_norm(rule: Rule, name: str, x: Tensor, norm: nn.LayerNorm) -> Layer:
    """y = w (x - mean(x)) / sd + b, at this sd."""
    y = norm(x)
    sd = (x.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()  # (batch, length, 1)

    def back(R: Tensor) -> Tensor:
        spread = rule.ratio(R, y, name, norm.bias) * norm.weight / sd
        return x * (spread - spread.mean(-1, keepdim=True))

    return y, back
