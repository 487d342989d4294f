"""Encoders: x (batch, length, dim) -> h (batch, length, hidden), one contextual state for each token.

Padding never reaches a state: each encoder reads only where `present` is True, so a text gives the same
states alone and in any batch. `summary` gives the one vector that stands for a whole text, used when the
text is the query (question or hypothesis) of another (Jain & Wallace 2019, section 2: Q).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.errors import Mistake
from heedful.models.network import Edit


class Encoder(nn.Module):
    """The interface of all encoders."""

    title: ClassVar[str] = ""  # in words, for people: "a bidirectional LSTM"

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """x (batch, length, dim), present (batch, length) -> h (batch, length, hidden)."""
        raise NotImplementedError

    def summary(self, h: Tensor, present: Tensor) -> Tensor:
        """The mean state over the tokens: (batch, hidden)."""
        weight = present.unsqueeze(-1).to(h.dtype)  # (batch, length, 1)
        return (h * weight).sum(1) / weight.sum(1).clamp(min=1)


class _ReverseRows(torch.autograd.Function):
    """Reorder (batch * length) rows by an involution, so that backward is the same cheap row copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        return x.flatten(0, 1).index_select(0, index).view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return reverse_rows(grads[0], index), None


def reverse_rows(x: Tensor, index: Tensor) -> Tensor:
    """Each text of x (batch, length, dim) turned around, its padding left where it is."""
    turned: Tensor = _ReverseRows.apply(x, index)  # type: ignore[no-untyped-call]
    return turned


def reversal(present: Tensor) -> Tensor:
    """The row numbers (batch * length,) that turn each text around: position t <-> length - 1 - t."""
    batch, length = present.shape
    t = torch.arange(length, device=present.device).expand(batch, length)  # (batch, length)
    n = present.sum(1, keepdim=True)  # (batch, 1)
    turned = torch.where(t < n, n - 1 - t, t)  # (batch, length)
    return (turned + length * torch.arange(batch, device=present.device).unsqueeze(1)).flatten()


class Bidirectional(Encoder):
    """h_t = [forward states; backward states], hidden / 2 units each.

    Two one-directional layers on padded batches, the second reading each text turned around within its own
    length: equal to a packed bidirectional layer, and free of the slow packed path.
    """

    cell: type[nn.LSTM] | type[nn.GRU]
    forwards: nn.LSTM | nn.GRU
    backwards: nn.LSTM | nn.GRU

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.forwards = self.cell(dim, hidden // 2, batch_first=True)
        self.backwards = self.cell(dim, hidden // 2, batch_first=True)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        index = reversal(present)  # (batch * length,)
        forwards, _ = self.forwards(x)  # (batch, length, hidden / 2)
        backwards, _ = self.backwards(reverse_rows(x, index))  # (batch, length, hidden / 2)
        return torch.cat([forwards, reverse_rows(backwards, index)], dim=-1)

    def summary(self, h: Tensor, present: Tensor) -> Tensor:
        """The last state of each direction: forward at the last token, backward at the first."""
        last = (present.sum(1) - 1).clamp(min=0)  # (batch,)
        forwards, backwards = h.chunk(2, dim=-1)  # (batch, length, hidden / 2) each
        at_last = forwards[torch.arange(len(h), device=h.device), last]  # (batch, hidden / 2)
        return torch.cat([at_last, backwards[:, 0]], dim=-1)


class BiLSTM(Bidirectional):
    """128 units per direction in Jain & Wallace 2019."""

    title = "a bidirectional LSTM"

    cell = nn.LSTM
    forwards: nn.LSTM
    backwards: nn.LSTM


class BiGRU(Bidirectional):
    """50 units per direction in Serrano & Smith 2019."""

    title = "a bidirectional GRU"

    cell = nn.GRU
    forwards: nn.GRU
    backwards: nn.GRU


class LSTM(Encoder):
    """One LSTM that reads from left to right: 256 units in Mohankumar et al. 2020."""

    title = "an LSTM"

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(dim, hidden, batch_first=True)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.forwards(x)[0]  # padding comes after a text: no state of a word has read it
        return h

    def summary(self, h: Tensor, present: Tensor) -> Tensor:
        """The state at the last token."""
        return h[torch.arange(len(h), device=h.device), (present.sum(1) - 1).clamp(min=0)]


class CNN(Encoder):
    """h_t = ReLU of convolutions of some widths around t, as many filters each: widths 1, 3, 5, 7 and 64 filters in
    Jain & Wallace 2019, widths 3 and 5 and 50 filters in Serrano & Smith 2019."""

    title = "a convolutional network"

    def __init__(
        self,
        dim: int,
        hidden: int,
        widths: tuple[int, ...] = (1, 3, 5, 7),
        query_pooling: Literal["mean", "max_of_words"] = "mean",
    ) -> None:
        super().__init__()
        self.query_pooling = query_pooling
        if hidden % len(widths) or any(width % 2 == 0 for width in widths):
            raise Mistake(f"widths {widths}: they must be odd, and their number must divide hidden_dim {hidden}.")
        self.widths = widths
        self.convolutions = nn.ModuleList(
            nn.Conv1d(dim, hidden // len(self.widths), width, padding=width // 2) for width in self.widths
        )

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        x = (x * present.unsqueeze(-1)).transpose(1, 2)  # (batch, dim, length): padding is the zero border
        h = torch.cat([convolve(x) for convolve in self.convolutions], dim=1)  # (batch, hidden, length)
        return F.relu(h).transpose(1, 2)

    def summary(self, h: Tensor, present: Tensor) -> Tensor:
        """The mean state, or the largest value of each feature over the words."""
        if self.query_pooling == "mean":
            return super().summary(h, present)
        return h.masked_fill(~between_markers(present).unsqueeze(-1), 0.0).amax(1)  # no feature is below 0


def between_markers(present: Tensor) -> Tensor:
    """Where the words of texts are that begin and end with a marker: (batch, length)."""
    at = torch.arange(present.shape[1], device=present.device)
    return (at > 0) & (at < present.sum(1, keepdim=True) - 1)


class Average(Encoder):
    """h_t = ReLU(W x_t + b): each state knows its own word only (footnote 4 of the paper; tanh in its code)."""

    title = "an averaging network"

    def __init__(self, dim: int, hidden: int, activation: Literal["relu", "tanh"] = "relu") -> None:
        super().__init__()
        self.linear = nn.Linear(dim, hidden)
        self.activation = torch.tanh if activation == "tanh" else torch.relu

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        return self.activation(self.linear(x))


class NoEncoder(Encoder):
    """h_t = x_t: attention reads the embeddings themselves (the "no encoder" models of Serrano & Smith 2019)."""

    title = "a network without an encoder"

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        if dim != hidden:
            raise Mistake(f"without an encoder states are embeddings: hidden_dim must be {dim}, not {hidden}.")

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        return x


class Transformer(Encoder):
    """A small self-attention encoder: W x_t + position, then pre-norm blocks (Vaswani et al. 2017)."""

    title = "a transformer"

    def __init__(self, dim: int, hidden: int, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(
        self, x: Tensor, present: Tensor, edit: Edit | None = None, states: list[Tensor] | None = None
    ) -> Tensor:
        """`edit` changes the weights of each block; `states` is given what goes into the first and out of each."""
        h = self.linear(x) + positions(x.shape[1], self.linear.out_features).to(x)  # (batch, length, hidden)
        for number, block in enumerate(self.blocks):
            if states is not None:
                states.append(h)
            h = block(h, present, None if edit is None else partial(edit, number))
        if states is not None:
            states.append(h)
        normed: Tensor = self.norm(h)
        return normed


class Block(nn.Module):
    """h + SelfAttention(norm h), then h + MLP(norm h)."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(hidden)
        self.project_in = nn.Linear(hidden, 3 * hidden)
        self.project_out = nn.Linear(hidden, hidden)
        self.norm_mlp = nn.LayerNorm(hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden))

    def forward(self, h: Tensor, present: Tensor, edit: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """`edit`: weights (batch, heads, to, from) -> weights. Without it they are never made."""
        batch, length, hidden = h.shape
        qkv = self.project_in(self.norm_attention(h)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (batch, heads, length, hidden / heads) each
        if edit is None:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=present[:, None, None, :])
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (batch, heads, to, from)
            mixed = edit(scores.masked_fill(~present[:, None, None, :], -torch.inf).softmax(-1)) @ v
        h = h + self.project_out(mixed.transpose(1, 2).reshape(batch, length, hidden))
        deeper: Tensor = h + self.mlp(self.norm_mlp(h))
        return deeper


def positions(length: int, hidden: int) -> Tensor:
    """Sinusoidal position encodings (length, hidden)."""
    t = torch.arange(length).unsqueeze(1)  # (length, 1)
    rate = torch.exp(torch.arange(0, hidden, 2) * (-math.log(10000.0) / hidden))  # (hidden / 2,)
    encoding = torch.zeros(length, hidden)
    encoding[:, 0::2] = torch.sin(t * rate)
    encoding[:, 1::2] = torch.cos(t * rate[: hidden // 2])
    return encoding
