"""Relevance through a BiGRU, by the same rule as through a BiLSTM: gates pass signals on and take nothing.

h_t = (1 - z) * n + z * h_{t-1}            R_n = (1 - z) n s,  R_{h_{t-1}} = z h_{t-1} s,  s = R / (h_t + epsilon)
n = tanh(u),  u = W_in x + b_in + r * (W_hn h_{t-1} + b_hn)       the epsilon rule to x and h_{t-1}
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.explainers.gradients import recurrence
from heedful.explainers.gradients.recurrence import before
from heedful.explainers.lrp.rules import Back, Layer, Rule
from heedful.models.attentive.encoders import LSTM, BiGRU, BiLSTM, reversal, reverse_rows
from heedful.models.attentive.orthogonal import OrthogonalLSTM, along, inverse_square, run


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


# Relevance through an LSTM or a BiLSTM (Arras et al. 2017).
#
# In a product of a gate and a signal, the signal takes all the relevance and the gate none:
#     h = o * tanh(c)             R_c <- R_h
#     c = i * g + f * c_{t-1}     R_g = i g s,  R_{c_{t-1}} = f c_{t-1} s,  s = R_c / (c + epsilon sign(c))
#     g = tanh(z)                 z = W_ih x + W_hh h_{t-1} + b: the epsilon rule to x and h_{t-1}


def lstm(rule: Rule, name: str, encoder: LSTM | BiLSTM, x: Tensor, present: Tensor) -> Layer:
    """h (batch, length, hidden), and the way back to words: (batch, length, hidden) -> (batch, length)."""
    weights = recurrence.LstmWeights.of(encoder)
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


# Relevance through an orthogonal LSTM: the rules of Arras et al. 2017, and one for the projection.
#
#     h_t = P_t h^_t,   P_t = I - m_t m_t' / (m_t . m_t)
#
# The earlier states decide through m_t what of h^_t passes, as a gate does, and take nothing: for a given P_t the
# map is linear in h^_t, and the epsilon rule hands all of R_h to it,
#
#     R_h^ = h^ * (P_t s),   s = R_h / (h + epsilon sign(h)).
#
# From h^_t on it is an LSTM (relevance_lstm.py): h^ = o * tanh(c), and so on.


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
