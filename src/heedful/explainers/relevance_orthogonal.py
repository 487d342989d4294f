"""Relevance through an orthogonal LSTM: the rules of Arras et al. 2017, and one for the projection.

    h_t = P_t h^_t,   P_t = I - m_t m_t' / (m_t . m_t)

The earlier states decide through m_t what of h^_t passes, as a gate does, and take nothing: for a given P_t the map is
linear in h^_t, and the epsilon rule hands all of R_h to it,

    R_h^ = h^ * (P_t s),   s = R_h / (h + epsilon sign(h)).

From h^_t on it is an LSTM (relevance_lstm.py): h^ = o * tanh(c), and so on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.explainers.recurrence import before
from heedful.explainers.relevance_rules import Layer, Rule
from heedful.models.orthogonal import OrthogonalLSTM, along, inverse_square, run


def orthogonal(rule: Rule, name: str, encoder: OrthogonalLSTM, x: Tensor, present: Tensor) -> Layer:
    """h (batch, length, hidden), and the way back to words: (batch, length, hidden) -> (batch, length)."""
    p, (_, W_hh, b) = encoder.project(x), encoder.weights
    steps = run(p, W_hh)
    c, raw, m, h = steps.c, steps.raw, steps.m, steps.h
    hidden = c.shape[-1]
    signal = slice(2 * hidden, 3 * hidden)  # of the four, g is the signal: only its map passes relevance on

    def back(R_h: Tensor) -> Tensor:
        R = R_h.transpose(0, 1).clone()  # (length, batch, hidden)
        i, f, g, _ = steps.gates.chunk(4, dim=-1)
        W_g = W_hh[signal]  # (hidden, hidden)
        b_g = b[signal]  # (hidden,)
        z_g = p[..., signal] + before(h) @ W_g.T
        h_stable, c_stable, z_stable = rule.stabilise(h), rule.stabilise(c), rule.stabilise(z_g)
        inverse = inverse_square(m)  # (length, batch, 1)
        to_past = f * before(c) / c_stable  # (length, batch, hidden): share of c_{t-1} in R_c
        to_s = i * g / (c_stable * z_stable)  # share of g in R_c, over z: what the rule multiplies weights by
        s, R_c = torch.empty_like(R), torch.empty_like(R)
        past = torch.zeros_like(R[0])  # (batch, hidden)
        for t in range(len(R) - 1, -1, -1):
            share = R[t] / h_stable[t]
            passed = share - along(share, m[t]) * inverse[t] * m[t]  # P_t is symmetric
            torch.add(raw[t] * passed, past, out=R_c[t])
            torch.mul(R_c[t], to_s[t], out=s[t])
            past = R_c[t] * to_past[t]
            if t > 0:
                R[t - 1] += (s[t] @ W_g) * h[t - 1]
        if rule.kept is not None:  # epsilon of h; epsilon of c; bias and epsilon of z
            lost = R * (1 - h / h_stable) + R_c * (1 - c / c_stable) + s * (b_g + z_stable - z_g)
            rule.keep(name, lost.transpose(0, 1))
        return (s * (p[..., signal] - b_g)).sum(-1).T  # x_i sum_j w_ij s_j, over i: (batch, length)

    return h.transpose(0, 1), back
