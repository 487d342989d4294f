"""One word changed in a text read by a BiLSTM or an LSTM, without reading all of it again.

Changing word t leaves the forward states before t and the backward states after t as they were, and
W_ih x_s + b is the same for every variant. So each (variant, position) needs one recurrent step of one
direction, and half of the linear maps with which attention and decoder begin: the half that reads the other
direction is cached. Attention over the words after t comes from a sweep of the forward direction, over the
words before t from a sweep of the backward direction, and the two are put together. An LSTM that reads from left to
right has no second sweep: its states before t stay whole.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.explainers.perturbation.bilstm_sweep import Direction, sweep
from heedful.explainers.perturbation.reading import Partial, TextsRead, merge, running, shifted, single
from heedful.models.attentive.attention import Additive, Attention, Dot, General
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import LSTM, BiLSTM, reversal, reverse_rows


def bilstm_contexts(model: AttentiveClassifier, reading: TextsRead, rows: int, tolerance: float) -> Tensor:
    """The projected context of each text with word t deleted or embedded as new_t: (batch, length, features)."""
    encoder = model.encoder
    assert isinstance(encoder, BiLSTM)
    index = reversal(reading.present)  # (batch * length,)

    def turned(tensor: Tensor) -> Tensor:
        return reverse_rows(tensor, index)

    after, forwards = sweep(_frame(model, encoder.forwards, 0, reading), rows, tolerance)
    before, backwards = sweep(_frame(model, encoder.backwards, 1, reading.turned()), rows, tolerance)
    before = Partial(
        turned(before.m.unsqueeze(-1)).squeeze(-1), turned(before.Z.unsqueeze(-1)).squeeze(-1), turned(before.A)
    )
    words = merge(before, after)
    if forwards is not None and backwards is not None:
        own = torch.cat([forwards, turned(backwards)], -1)  # (batch, length, hidden): of the new word itself
        phi = model.attention.phi(own, reading.query)  # (batch, length)
        words = merge(words, single(phi, model.decoder.project(own), reading.mask))
    return words.context()


def lstm_contexts(model: AttentiveClassifier, reading: TextsRead, rows: int, tolerance: float) -> Tensor:
    """The same for an LSTM: (batch, length, features)."""
    encoder, project = model.encoder, model.decoder.project
    assert isinstance(encoder, LSTM)
    after, own = sweep(_frame(model, encoder.forwards, 0, reading), rows, tolerance)
    each = single(model.attention.phi(reading.h, reading.query), project(reading.h), reading.mask)
    words = merge(shifted(running(each), 1), after)
    if own is not None:
        words = merge(words, single(model.attention.phi(own, reading.query), project(own), reading.mask))
    return words.context()


def _frame(model: AttentiveClassifier, lstm: nn.LSTM, side: int, reading: TextsRead) -> Direction:
    """What a sweep of one side (0 forwards, 1 backwards) needs, computed once for all variants.

    `other` is the half of a state that reads the other way: empty where there is none.
    """
    x, h, mask, query, new = reading.x, reading.h, reading.mask, reading.query, reading.new
    batch, length, _ = x.shape
    H = lstm.hidden_size
    mine, other = [slice(0, H), slice(H, 2 * H)][:: 1 if side == 0 else -1]
    weight_ih, weight_hh, bias_ih, bias_hh = lstm.all_weights[0]  # of gates i, f, g, o
    doubled = torch.ones_like(bias_ih)
    doubled[2 * H : 3 * H] = 2  # g is a tanh
    W_ih = (weight_ih * doubled.unsqueeze(1)).T  # (dim, 4 H)
    bias = (bias_ih + bias_hh) * doubled  # (4 H,)
    step = 2 * (weight_hh * doubled.unsqueeze(1)).T  # (H, 4 H)
    attention, v, Q = model.attention, None, None
    if isinstance(attention, Additive):
        W1 = attention.W1.weight  # (A, 2 H)
        inner = h[..., other] @ W1[:, other].T + attention.W1.bias  # (batch, length, A)
        if attention.W2 is not None:
            inner = inner + attention.W2(query).unsqueeze(1)
        step = torch.cat([step, 4 * W1[:, mine].T], 1)  # (H, 4 H + A)
        v = 2 * attention.v.weight[0]  # phi = v . tanh(inner) = 2 v . sigmoid(2 inner) - sum v
        phi_rest = -attention.v.weight.sum().expand(length, batch)
    else:
        q = _linear_query(attention, query, h)  # (batch, 2 H)
        inner = h.new_zeros(batch, length, 0)
        Q = 2 * q[:, mine]
        phi_rest = (h[..., other] @ q[:, other].unsqueeze(-1)).squeeze(-1).T
    table = h.new_zeros(length + 1, batch, step.shape[1])
    table[:-1, :, : 4 * H] = (x @ W_ih + bias).transpose(0, 1)
    table[1:, :, 4 * H :] = 2 * inner.transpose(0, 1)
    new_table = None
    if new is not None:
        new_table = torch.zeros_like(table[:-1])
        new_table[..., : 4 * H] = (new @ W_ih + bias).transpose(0, 1)
    first = model.decoder.first
    ends = (mask * torch.arange(1, length + 1, device=mask.device)).amax(1)  # (batch,)
    return Direction(
        table=table,
        new_table=new_table,
        step=step.contiguous(),
        v=v,
        Q=Q,
        project=2 * first.weight[:, mine].T,
        phi_rest=phi_rest,
        projected_rest=h[..., other] @ first.weight[:, other].T,
        mask=mask.T,
        ends=ends.flip(0).cummax(0).values.flip(0).tolist(),
        changing=None if reading.changing is None else reading.changing.sum(0).tolist(),
    )


def _linear_query(attention: Attention, query: Tensor | None, h: Tensor) -> Tensor:
    """The vector q with phi(h, Q) = h . q, (batch, hidden): of dot and general; zero for uniform."""
    if not isinstance(attention, Dot | General):
        return h.new_zeros(len(h), h.shape[-1])
    Q = query if attention.Q is None else attention.Q.expand(len(h), -1)
    assert Q is not None
    if isinstance(attention, Dot):
        return Q / math.sqrt(h.shape[-1])
    asked: Tensor = attention.W(Q)
    return asked
