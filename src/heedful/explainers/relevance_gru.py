"""Relevance through a BiGRU, by the same rule as through a BiLSTM: gates pass signals on and take nothing.

h_t = (1 - z) * n + z * h_{t-1}            R_n = (1 - z) n s,  R_{h_{t-1}} = z h_{t-1} s,  s = R / (h_t + epsilon)
n = tanh(u),  u = W_in x + b_in + r * (W_hn h_{t-1} + b_hn)       the epsilon rule to x and h_{t-1}
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.explainers.relevance_rules import Back, Layer, Rule
from heedful.models.encoders import BiGRU, reversal, reverse_rows


def bigru(rule: Rule, name: str, encoder: BiGRU, x: Tensor, present: Tensor) -> Layer:
    """h (batch, length, hidden), and the way back to words: (batch, length, hidden) -> (batch, length)."""
    index = reversal(present)
    forwards, back_forwards = _one_way(rule, name, encoder.forwards, x, present)
    backwards, back_backwards = _one_way(rule, name, encoder.backwards, reverse_rows(x, index), present)

    def back(R_h: Tensor) -> Tensor:
        one, other = R_h.chunk(2, dim=-1)
        turned = back_backwards(reverse_rows(other.contiguous(), index)).unsqueeze(-1)
        return back_forwards(one) + reverse_rows(turned, index).squeeze(-1)

    return torch.cat([forwards, reverse_rows(backwards, index)], -1), back


def _one_way(rule: Rule, name: str, layer: nn.GRU, x: Tensor, present: Tensor) -> tuple[Tensor, Back]:
    units = layer.hidden_size
    W_ih, W_hh, b_ih, b_hh = layer.parameters()
    inputs = x @ W_ih.T  # (batch, length, 3 units): r, z, n without biases
    past = x.new_zeros(len(x), units)  # h_{t-1}
    steps = []
    for t in range(x.shape[1]):
        i = inputs[:, t] + b_ih
        g = past @ W_hh.T + b_hh  # (batch, 3 units)
        r, z = (i + g)[:, : 2 * units].sigmoid().chunk(2, -1)
        u = i[:, 2 * units :] + r * g[:, 2 * units :]
        h = (1 - z) * u.tanh() + z * past
        steps.append((past, r, z, u, h))
        past = h
    W_hn, b_in, b_hn = (part[2 * units :] for part in (W_hh, b_ih, b_hh))

    def back(R_h: Tensor) -> Tensor:
        words = []
        later = torch.zeros_like(past)  # the relevance of h_t for what comes after it
        for t in range(len(steps) - 1, -1, -1):
            before, r, z, u, h = steps[t]
            R = (R_h[:, t] + later) * present[:, t, None]  # padding has made nothing
            s = rule.ratio(R, h, name)
            s_u = rule.ratio((1 - z) * u.tanh() * s, u, name, b_in + r * b_hn)
            words.append((s_u * inputs[:, t, 2 * units :]).sum(-1))
            later = before * (z * s + (s_u * r) @ W_hn)
        return torch.stack(words[::-1], 1)

    return torch.stack([step[-1] for step in steps], 1), back
