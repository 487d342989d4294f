"""An LSTM or BiLSTM from its input projections on, both directions in step, with every gate kept.

    p_t = W_ih x_t + b                       the input projection, linear in x: all t at once
    z_t = p_t + W_hh h_{t-1}                 i, f, o = sigmoid(z_i, z_f, z_o), g = tanh(z_g)
    c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t)

Three methods need what `nn.LSTM` does not give. Relevance propagation needs the gates. Gradients need a
backward pass without gradients of weights. Integrated gradients moves x along a line, so p moves along a line
too: projected once instead of at every step, it costs a third of `nn.LSTM` and autograd.

Time comes first, then the direction, of which an LSTM has one: (length, 2, batch, hidden). The second direction reads
each text turned around. Gates are in the order i, f, o, g, so that the three sigmoids are one slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.models.attentive.encoders import LSTM, BiLSTM, reversal, reverse_rows


@dataclass(frozen=True, slots=True)
class LstmWeights:
    """The weights of both directions, or of the one, stacked."""

    W_ih: Tensor  # (2, 4 hidden, dim)
    W_hh: Tensor  # (2, hidden, 4 hidden): turned, so that z = p + h W_hh
    b: Tensor  # (2, 4 hidden): both biases of nn.LSTM

    @classmethod
    def of(cls, encoder: LSTM | BiLSTM) -> LstmWeights:
        lstms = (encoder.forwards, encoder.backwards) if isinstance(encoder, BiLSTM) else (encoder.forwards,)
        W_ih, W_hh, b_ih, b_hh = (
            torch.stack([_ifog(weights[k]) for lstm in lstms for weights in lstm.all_weights]).detach()
            for k in range(4)
        )
        return cls(W_ih, W_hh.transpose(1, 2).contiguous(), b_ih + b_hh)

    def project(self, x: Tensor) -> Tensor:
        """W_ih x, no bias, nothing turned: (batch, length, dim) -> (length, 2, batch, 4 hidden)."""
        return torch.einsum("btd,kgd->tkbg", x, self.W_ih)

    def back(self, slope: Tensor) -> Tensor:
        """df/dx (batch, length, dim) from df/dp, nothing turned."""
        return torch.einsum("tkbg,kgd->btd", slope, self.W_ih)

    def inputs(self, x: Tensor, present: Tensor) -> Tensor:
        """p, its second direction turned: (length, 2, batch, 4 hidden)."""
        return turn(self.project(x), present) + self.b.unsqueeze(1)


def _ifog(weight: Tensor) -> Tensor:
    """nn.LSTM keeps i, f, g, o."""
    i, f, g, o = weight.chunk(4)
    return torch.cat([i, f, o, g])


def turn(states: Tensor, present: Tensor) -> Tensor:
    """Turn the second direction of (length, 2, batch, dim) around, within each text. Its own inverse."""
    if states.shape[1] == 1:
        return states
    second = reverse_rows(states[:, 1].transpose(0, 1), reversal(present))  # (batch, length, dim)
    return torch.stack([states[:, 0], second.transpose(0, 1)], dim=1)


def run(p: Tensor, W_hh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """p (length, 2, batch, 4 hidden) -> gates like p, c and h (length, 2, batch, hidden)."""
    length, directions, batch, wide = p.shape
    hidden = wide // 4
    gates = torch.empty_like(p)
    c = p.new_empty(length, directions, batch, hidden)
    h = torch.empty_like(c)
    c_t = h_t = p.new_zeros(directions, batch, hidden)
    for t in range(length):
        z = torch.baddbmm(p[t], h_t, W_hh, out=gates[t])  # (2, batch, 4 hidden), turned into gates in place
        z[:, :, : 3 * hidden].sigmoid_()
        z[:, :, 3 * hidden :].tanh_()
        i, f, o, g = z.chunk(4, dim=-1)
        c_t = torch.addcmul(i * g, f, c_t, out=c[t])
        h_t = torch.mul(o, c_t.tanh(), out=h[t])
    return gates, c, h


def before(states: Tensor) -> Tensor:
    """The states one step earlier, zero before the first."""
    return torch.cat([torch.zeros_like(states[:1]), states[:-1]])


class _LstmRecurrence(torch.autograd.Function):
    """h of `run`, differentiable with respect to p alone."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, W_hh: Tensor) -> Tensor:
        gates, c, h = run(p, W_hh)
        ctx.save_for_backward(gates, c, W_hh)
        return h

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        gates, c, W_hh = ctx.saved_tensors
        return slope(grads[0], gates, c, W_hh), None


def slope(dh: Tensor, gates: Tensor, c: Tensor, W_hh: Tensor) -> Tensor:
    """d/dp from d/dh: backpropagation through time; all that does not depend on the order is done at once."""
    length, directions, batch, hidden = c.shape
    i, f, o, g = gates.chunk(4, dim=-1)
    tanh_c = c.tanh()
    dh_dc = o * (1 - tanh_c * tanh_c)  # (length, 2, batch, hidden)
    dz = torch.cat(  # (length, 2, batch, 4 hidden): first dc/dz and dh/dz_o, then times dc and dh
        [g * i * (1 - i), before(c) * f * (1 - f), tanh_c * o * (1 - o), i * (1 - g * g)], dim=-1
    )
    W_back = W_hh.transpose(1, 2)  # (2, 4 hidden, hidden)
    dc_t = back = torch.zeros_like(c[0])  # (2, batch, hidden)
    for t in range(length - 1, -1, -1):
        dh_t = dh[t] + back
        dc_t = torch.addcmul(dc_t, dh_t, dh_dc[t])
        dz_t = dz[t].view(directions, batch, 4, hidden)
        dz_t *= torch.stack([dc_t, dc_t, dh_t, dc_t], dim=2)
        back = torch.bmm(dz[t], W_back)
        dc_t = dc_t * f[t]
    return dz


def states(p: Tensor, W_hh: Tensor) -> Tensor:
    """h (length, 2, batch, hidden), differentiable with respect to p."""
    h: Tensor = _LstmRecurrence.apply(p, W_hh)  # type: ignore[no-untyped-call]
    return h


def join_directions(states: Tensor, present: Tensor) -> Tensor:
    """h of both directions side by side, as the encoder gives it: (batch, length, 2 hidden)."""
    return turn(states, present).permute(2, 0, 1, 3).flatten(2)
