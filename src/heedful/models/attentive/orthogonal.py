"""The orthogonal LSTM: a state loses its part along the mean of the earlier ones (Mohankumar et al. 2020, section 4).

    h^_t = o_t * tanh(c_t)                          the state of an LSTM whose last state was h_{t-1}
    m_t  = sum_{s < t} h_s                          the direction of the mean of the earlier states
    h_t  = h^_t - (h^_t . m_t) / (m_t . m_t) m_t    which is read by attention, and by the next step

The first state has none before it and stays as it is. The authors' code adds 1e-6 to the squared norm of the mean and
draws the first hidden and cell state at random in every call, also at test time; here it is the paper's formula, and
the first states are zero. Like theirs it reads from left to right only, and a query is read by one of its own.

`nn.LSTM` cannot be stopped after each step, so the recurrence and its gradient are written out here: input projections
of all steps are one product, and so is the gradient of W_hh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.models.attentive.encoders import LSTM


class OrthogonalLSTM(LSTM):
    """The weights are those of an LSTM; what is done with them differs."""

    title = "an orthogonal LSTM"

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_ih (4 hidden, dim), W_hh (4 hidden, hidden), b (4 hidden,): of the gates i, f, g, o."""
        W_ih, W_hh, b_ih, b_hh = self.forwards.all_weights[0]
        return W_ih, W_hh, b_ih + b_hh

    def project(self, x: Tensor) -> Tensor:
        """p_t = W_ih x_t + b of all steps: (batch, length, dim) -> (length, batch, 4 hidden)."""
        W_ih, _, b = self.weights
        return F.linear(x.transpose(0, 1), W_ih, b)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = _OrthogonalRecurrence.apply(self.project(x), self.weights[1])  # type: ignore[no-untyped-call]
        return h.transpose(0, 1)


@dataclass(frozen=True, slots=True)
class Steps:
    """Every step of the recurrence, time first."""

    gates: Tensor  # (length, batch, 4 hidden): i, f, g, o
    c: Tensor  # (length, batch, hidden)
    raw: Tensor  # (length, batch, hidden): h^
    m: Tensor  # (length, batch, hidden)
    h: Tensor  # (length, batch, hidden)


def run(p: Tensor, W_hh: Tensor) -> Steps:
    """p (length, batch, 4 hidden), W_hh (4 hidden, hidden) -> every step."""
    length, batch, wide = p.shape
    hidden = wide // 4
    gates = torch.empty_like(p)
    c, raw, h = (p.new_empty(length, batch, hidden) for _ in range(3))
    m = p.new_zeros(length + 1, batch, hidden)  # one more than there are steps
    W = W_hh.T  # (hidden, 4 hidden)
    h_t = c_t = p.new_zeros(batch, hidden)
    for t in range(length):
        z = torch.addmm(p[t], h_t, W, out=gates[t])  # turned into gates in place
        z[:, : 2 * hidden].sigmoid_()
        z[:, 2 * hidden : 3 * hidden].tanh_()
        z[:, 3 * hidden :].sigmoid_()
        i, f, g, o = z.chunk(4, dim=-1)
        c_t = torch.addcmul(i * g, f, c_t, out=c[t])
        raw_t, m_t = torch.mul(o, c_t.tanh(), out=raw[t]), m[t]
        a = along(raw_t, m_t) * inverse_square(m_t)  # (batch, 1)
        h_t = torch.addcmul(raw_t, a, m_t, value=-1, out=h[t])
        torch.add(m_t, h_t, out=m[t + 1])
    return Steps(gates, c, raw, m[:-1], h)


def along(u: Tensor, v: Tensor) -> Tensor:
    """u . v: (..., hidden) twice -> (..., 1)."""
    return (u * v).sum(-1, keepdim=True)


def inverse_square(m: Tensor) -> Tensor:
    """1 / (m . m), and 0 where m is 0, so that nothing is taken away: (..., hidden) -> (..., 1)."""
    square = along(m, m)
    return torch.where(square > torch.finfo(m.dtype).tiny, square.reciprocal(), 0.0)


class _OrthogonalRecurrence(torch.autograd.Function):
    """h of `run`, differentiable with respect to p and W_hh."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, W_hh: Tensor) -> Tensor:
        steps = run(p, W_hh)
        ctx.save_for_backward(steps.gates, steps.c, steps.raw, steps.m, steps.h, W_hh)
        return steps.h

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None]:
        *saved, W_hh = ctx.saved_tensors
        steps = Steps(*saved)
        dp = slope(grads[0], steps, W_hh)  # (length, batch, 4 hidden)
        dW = dp[1:].flatten(0, 1).T @ steps.h[:-1].flatten(0, 1) if ctx.needs_input_grad[1] else None
        return dp, dW


def slope(dh: Tensor, steps: Steps, W_hh: Tensor) -> Tensor:
    """d/dp from d/dh: backpropagation through time; all that does not depend on the order is done at once.

    With D = d/dh_t of all that comes after, a = (h^ . m) / (m . m) and b = (D . m) / (m . m):
    d/dh^_t = D - b m, and d/dm_t = d/dm_{t+1} - a D - b (h_t - a m), for h^ - 2 a m = h_t - a m.
    """
    c, raw, m, h = steps.c, steps.raw, steps.m, steps.h
    length, batch, hidden = c.shape
    i, f, g, o = steps.gates.chunk(4, dim=-1)
    tanh_c = c.tanh()
    dc_raw = o * (1 - tanh_c * tanh_c)  # (length, batch, hidden): dh^/dc
    past = torch.cat([torch.zeros_like(c[:1]), c[:-1]])
    dz = torch.cat([g * i * (1 - i), past * f * (1 - f), i * (1 - g * g), tanh_c * o * (1 - o)], dim=-1)
    inverse = inverse_square(m)  # (length, batch, 1)
    a = along(raw, m) * inverse  # (length, batch, 1)
    rest = torch.addcmul(h, a, m, value=-1)  # (length, batch, hidden): h - a m
    dc = dm = back = torch.zeros_like(c[0])  # (batch, hidden)
    for t in range(length - 1, -1, -1):
        D = dh[t] + back + dm
        b = along(D, m[t]) * inverse[t]  # (batch, 1)
        d_raw = torch.addcmul(D, b, m[t], value=-1)
        dm = torch.addcmul(torch.addcmul(dm, a[t], D, value=-1), b, rest[t], value=-1)
        dc = torch.addcmul(dc, d_raw, dc_raw[t])
        dz_t = dz[t]
        dz_t.view(batch, 4, hidden)[:, :3] *= dc.unsqueeze(1)
        dz_t[:, 3 * hidden :] *= d_raw
        back = dz_t @ W_hh
        dc = dc * f[t]
    return dz
