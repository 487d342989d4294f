"""One word changed in a text whose states look at near words only (CNN, average).

A convolution of width w is a sum of w products, h_s = ReLU(sum_j W_j x_{s+j} + b), and W_j x_s is the same
whatever else happens to the text. So all products are taken once, and the states around a deleted or
replaced word are sums of shifted rows: at most 6 (deleted) or 7 (replaced) positions for the CNN, none or
one for the average. All other positions keep their state; their attention is two running sums.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.explainers.perturbation.reading import Partial, TextsRead, merge, partial, running, shifted, single, turned
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import CNN, Average


def local_contexts(model: AttentiveClassifier, reading: TextsRead, rows: int = 0, tolerance: float = 0.0) -> Tensor:
    """The projected context of each text with word t deleted or set to new_t: (batch, length, features).

    Nothing is followed word by word, so `rows` and `tolerance` change nothing.
    """
    mask, query = reading.mask, reading.query
    phi = model.attention.phi(reading.h, query)  # (batch, length)
    each = single(phi, model.decoder.project(reading.h), mask)
    states, offsets = around(  # (batch, length, window, hidden)
        model.encoder, reading.x, reading.present, reading.new
    )
    reach = max(map(abs, offsets), default=0)
    contexts = merge(
        shifted(running(each), reach + 1),  # words before the window
        shifted(turned(running(turned(each))), -reach - 1),  # and after it
    )
    if offsets:
        contexts = merge(contexts, _window(model, states, offsets, mask, query))
    return contexts.context()


def _window(
    model: AttentiveClassifier, states: Tensor, offsets: list[int], mask: Tensor, query: Tensor | None
) -> Partial:
    """The words t + k, k in offsets, with their new states (batch, length, window, hidden)."""
    batch, length, window, hidden = states.shape
    phi = model.attention.phi(states.reshape(batch, length * window, hidden), query)
    reach = max(map(abs, offsets))
    padded = F.pad(mask, (reach, reach))  # (batch, length + 2 reach)
    inside = torch.stack([padded[:, reach + k : reach + k + length] for k in offsets], -1)
    return partial(phi.view(batch, length, window), model.decoder.project(states), inside)


def around(encoder: nn.Module, x: Tensor, present: Tensor, new: Tensor | None) -> tuple[Tensor, list[int]]:
    """The states that change with word t, (batch, length, window, hidden), and their places from t."""
    if type(encoder) is Average:
        if new is None:
            return x.new_zeros(*x.shape[:2], 0, encoder.linear.out_features), []
        return encoder(new, present).unsqueeze(2), [0]
    assert type(encoder) is CNN
    reach = max(encoder.widths) // 2
    offsets = [k for k in range(-reach, reach + 1) if k != 0 or new is not None]
    states = [
        _convolved(convolve, width, x * present.unsqueeze(-1), new, offsets)
        for convolve, width in zip(encoder.convolutions, encoder.widths, strict=True)
    ]
    return F.relu(torch.cat(states, -1)), offsets


def _convolved(convolve: nn.Module, width: int, x: Tensor, new: Tensor | None, offsets: list[int]) -> Tensor:
    """One convolution at t + k for k in offsets, word t deleted or new: (batch, length, window, filters)."""
    weight, bias = convolve.weight, convolve.bias  # (filters, dim, width), (filters,)
    assert isinstance(weight, Tensor)
    assert isinstance(bias, Tensor)
    batch, length, dim = x.shape
    matrix = weight.permute(1, 2, 0).reshape(dim, -1)  # (dim, width * filters)
    filters = len(bias)
    half = width // 2
    margin = max(map(abs, offsets)) + half + 1
    products = F.pad(x @ matrix, (0, 0, margin, margin))  # (batch, length + 2 margin, width * filters)
    news = None if new is None else new @ matrix  # (batch, length, width * filters)
    out = bias.expand(batch, length, len(offsets), filters).clone()
    for place, k in enumerate(offsets):
        for column, j in enumerate(range(-half, half + 1)):
            columns = slice(column * filters, (column + 1) * filters)
            source = k + j if news is not None else _without(k, j)
            if source == 0 and news is not None:
                out[:, :, place] += news[:, :, columns]
            else:
                begin = margin + source
                out[:, :, place] += products[:, begin : begin + length, columns]
    return out


def _without(k: int, j: int) -> int:
    """Where position t + k finds its neighbour j when word t is gone: beyond t, one further away."""
    beyond = (k < 0 <= k + j) or (k + j <= 0 < k)
    return k + j + (1 if k < 0 else -1) * beyond
