"""Relevance through an LSTM or a BiLSTM (Arras et al. 2017).

In a product of a gate and a signal, the signal takes all the relevance and the gate none:
    h = o * tanh(c)             R_c <- R_h
    c = i * g + f * c_{t-1}     R_g = i g s,  R_{c_{t-1}} = f c_{t-1} s,  s = R_c / (c + epsilon sign(c))
    g = tanh(z)                 z = W_ih x + W_hh h_{t-1} + b: the epsilon rule to x and h_{t-1}
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.explainers import recurrence
from heedful.explainers.relevance_rules import Layer, Rule
from heedful.models.encoders import LSTM, BiLSTM


def lstm(rule: Rule, name: str, encoder: LSTM | BiLSTM, x: Tensor, present: Tensor) -> Layer:
    """h (batch, length, hidden), and the way back to words: (batch, length, hidden) -> (batch, length)."""
    weights = recurrence.Weights.of(encoder)
    p = weights.inputs(x, present)
    gates, c, h = recurrence.run(p, weights.W_hh)
    batch, length = present.shape
    hidden = c.shape[-1]
    signal = slice(3 * hidden, None)  # of the four, g is the signal: only its map passes relevance on

    def back(R_h: Tensor) -> Tensor:
        R = R_h.view(batch, length, -1, hidden).permute(1, 2, 0, 3)  # (length, 2, batch, hidden)
        R = recurrence.turn(R, present).clone()  # it will be written on
        i, f, _, g = gates.chunk(4, dim=-1)
        W_g = weights.W_hh[:, :, signal]  # (2, hidden, hidden)
        b_g = weights.b[:, None, signal]  # (2, 1, hidden)
        z_g = p[..., signal] + torch.einsum("tkbh,khg->tkbg", recurrence.before(h), W_g)
        c_stable, z_stable = rule.stabilise(c), rule.stabilise(z_g)
        to_past = f * recurrence.before(c) / c_stable  # (length, 2, batch, hidden): share of c_{t-1} in R_c
        to_s = i * g / (c_stable * z_stable)  # share of g in R_c, over z: what the rule multiplies weights by
        s = torch.empty_like(R)
        past = recurrent = torch.zeros_like(R[0])  # (2, batch, hidden)
        for t in range(length - 1, -1, -1):
            R[t] += past
            R[t] += recurrent
            torch.mul(R[t], to_s[t], out=s[t])
            past = R[t] * to_past[t]
            if t > 0:
                recurrent = torch.bmm(s[t], W_g.transpose(1, 2)).mul_(h[t - 1])
        if rule.kept is not None:
            lost = R * (1 - c / c_stable) + s * (b_g + z_stable - z_g)  # epsilon of c; bias and epsilon of z
            rule.keep(name, lost.transpose(0, 2))
        words = (s * (p[..., signal] - b_g)).sum(-1)  # (length, 2, batch): x_i sum_j w_ij s_j, over i
        return recurrence.turn(words, present).sum(1).T

    return recurrence.join_directions(h, present), back
