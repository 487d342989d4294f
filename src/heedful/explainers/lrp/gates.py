"""LSTM and GRU layers with their gates held constant: linear in what they read, step by step.

    LSTM    c_t = f_t c_{t-1} + i_t g_t       h_t = o_t tanh(c_t)         i, f, o constants; g = tanh(z) = ratio z
    GRU     h_t = (1 - u_t) n_t + u_t h_{t-1}                             u, r constants; n = tanh(z) = ratio z

where the z of a step is W x + U h + b. It is what `frozen.py` does of every gate (Arras et al. 2019: the gate takes
nothing, the signal all), written out because torch computes such layers in one function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.explainers.lrp.frozen import Frozen, Rule, depends, scaled


def lstm(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """lstm(x, (h0, c0), weights, has_biases, layers, dropout, train, bidirectional, batch_first)."""
    if not _plain(args, kwargs):
        return func(*args, **kwargs)
    x, (h0, c0), weights = args[:3]
    W, U, b = weights[0], weights[1], weights[2] + weights[3] if len(weights) > 2 else None
    with torch.no_grad():  # the gates, at the values that the layer has
        value, _, _ = func(*args, **kwargs)
        before = torch.cat([h0.transpose(0, 1), value[:, :-1]], 1)  # (batch, length, hidden) the state before each
        z = _z(x.detach(), before, W, U, b)
        i, f, _, o = z.sigmoid().chunk(4, dim=-1)
    W_g, U_g = W.chunk(4)[2], U.chunk(4)[2]
    read = x @ W_g.T
    b_g = None if b is None else b.chunk(4)[2]
    h, c, states = h0[0], c0[0], []
    for t in range(x.shape[1]):
        z_g = _signal(mode, read[:, t], h @ U_g.T, b_g)
        c = f[:, t] * c + i[:, t] * scaled(z_g, torch.tanh)
        h = o[:, t] * scaled(c, torch.tanh)
        states.append(h)
    return torch.stack(states, 1), h.unsqueeze(0), c.unsqueeze(0)


def gru(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """gru(x, h0, weights, has_biases, layers, dropout, train, bidirectional, batch_first)."""
    if not _plain(args, kwargs):
        return func(*args, **kwargs)
    x, h0, weights = args[:3]
    W, U = weights[:2]
    b_x, b_h = weights[2:] if len(weights) > 2 else (W.new_zeros(len(W)), W.new_zeros(len(W)))
    with torch.no_grad():
        value, _ = func(*args, **kwargs)
        before = torch.cat([h0.transpose(0, 1), value[:, :-1]], 1)
        of_x, of_h = _z(x.detach(), before[:, :, :0], W, U[:, :0], b_x), before @ U.T + b_h
        r, u = ((a + b).sigmoid() for a, b in zip(of_x.chunk(3, -1)[:2], of_h.chunk(3, -1)[:2], strict=True))
    W_n, U_n = W.chunk(3)[2], U.chunk(3)[2]
    read = x @ W_n.T
    h, states = h0[0], []
    for t in range(x.shape[1]):
        z = _signal(mode, read[:, t], r[:, t] * (h @ U_n.T), b_x.chunk(3)[2] + r[:, t] * b_h.chunk(3)[2])
        h = (1 - u[:, t]) * scaled(z, torch.tanh) + u[:, t] * h
        states.append(h)
    return torch.stack(states, 1), h.unsqueeze(0)


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """One layer in one direction, of padded texts, text by text: any other is left as it is, and the sum says so."""
    if kwargs or len(args) != 9:
        return False
    layers, _, _, bidirectional, batch_first = args[4:]
    return layers == 1 and not bidirectional and batch_first


def _z(x: Tensor, before: Tensor, W: Tensor, U: Tensor, b: Tensor | None) -> Tensor:
    z = x @ W.T + before @ U.T if U.shape[1] else x @ W.T
    return z if b is None else z + b


def _signal(mode: Frozen, read: Tensor, remembered: Tensor, b: Tensor | None) -> Tensor:
    """z of one step. What does not depend on the inputs is written down as a constant."""
    z = read + remembered
    if b is not None:
        z = z + b
    constants = [part for part in (read, remembered, b) if part is not None and not depends(part)]
    if depends(z):
        for part in constants:
            mode.add(z, part)
    return z


GATED: Mapping[str, Rule] = {"lstm": lstm, "gru": gru}
