"""The sweep: one LSTM direction over all variants of its texts at once.

All rows are in one frame, in which the direction reads to the right. A row follows the original text until
its word is changed: the original texts are rows too, and the rows of word t start as a copy of them before
step t. A deletion omits step t; a replacement takes it with another input.

tanh(z) = 2 sigmoid(2 z) - 1, so one sigmoid serves the four gates and the attention's inner layer. The
factors of two are in the weights, and the rows hold h / 2 and 2 c.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.explainers.perturbation.reading import Partial

CHECK_EVERY = 8  # steps between two looks at which rows have come back to the original


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction, and how attention and decoder read it.

    With C = 4 H + A columns: the four gates (g doubled), then the attention's inner layer (A = 0 where it
    has none).
    """

    table: Tensor  # (length + 1, batch, C): W_ih x_s + b, and the cached half of the inner layer at s - 1
    new_table: Tensor | None  # (length, batch, C): the same for the new word at s; None: words are deleted
    step: Tensor  # (H, C): from h / 2 to the same columns
    v: Tensor | None  # (A,) reads phi from sigmoid(2 inner)
    Q: Tensor | None  # (batch, H) reads phi from h / 2, where there is no v
    project: Tensor  # (H, features): from h / 2
    phi_rest: Tensor  # (length, batch): what the other direction, or a constant, adds to phi
    projected_rest: Tensor  # (batch, length, features): what the other direction adds to the projection
    mask: Tensor  # (length, batch)
    ends: list[int]  # for each text a position after its last word; never rising
    changing: list[int] | None = None  # (length,) of how many texts, the first ones, a word is changed; None: of all


class SweepRows:
    """The states of a sweep: the original texts first, then the variants in the order they entered.

    Row i is of text `text[i]`, and its results go to `slot[i]`. Until a row is dropped both are as they were
    laid out at first: slots 0, 1, 2, ..., and all texts again for each word.
    """

    def __init__(self, original: Tensor, variants: int, C: int, whole: bool = True) -> None:
        batch, H = original.shape[1:]
        most = batch * (1 + variants)
        self.k = original.new_empty(most, H)  # h / 2
        self.c = original.new_empty(most, H)  # 2 c
        self.pre = original.new_empty(most, C)
        self.u = original.new_empty(most, H)
        self.order = torch.arange(most, device=original.device)
        self.slot = self.order.clone()
        self.text = self.order % batch
        self.k[:batch], self.c[:batch] = original
        self.n = batch  # rows in use
        self.whole = whole  # none was dropped, or left out

    def append(self, reading: int, first_slot: int) -> None:
        """One more row for each of the texts that are still read: a copy of the original's."""
        end = self.n + reading
        self.k[self.n : end], self.c[self.n : end] = self.k[:reading], self.c[:reading]
        if not self.whole:
            self.text[self.n : end] = self.order[:reading]
            self.slot[self.n : end] = self.order[first_slot : first_slot + reading]
        self.n = end

    def keep(self, which: Tensor) -> None:
        """Only the rows where `which` (n,) is True."""
        index = which.nonzero().squeeze(1)
        if len(index) < self.n:
            for buffer in (self.k, self.c, self.text, self.slot):
                buffer[: len(index)] = buffer.index_select(0, index)
            self.n, self.whole = len(index), False


def sweep(frame: Direction, rows: int, tolerance: float) -> tuple[Partial, Tensor | None]:
    """Attention over the words after t with word t changed, for every word t of every text: (batch, length).

    Also the new words' own states (batch, length, H), if there are any. At most about `rows` variants are
    followed at once; one that is within `tolerance` of the original is not followed further.
    """
    length, batch = frame.mask.shape
    H, features = frame.project.shape
    new = frame.step.new_zeros
    after = Partial(
        torch.full_like(new(batch, length), torch.finfo(frame.step.dtype).min),
        new(batch, length),
        new(batch, length, features),
    )
    states = None if frame.new_table is None else new(batch, length, H)
    words = frame.mask.any(1).nonzero().squeeze(1).tolist()  # positions that are a word in some text
    original, begin = new(2, batch, H), 0  # h / 2 and 2 c of the texts before step `begin`
    if words:
        for start in range(words[0], words[-1] + 1, max(1, rows // batch)):
            stop = min(start + max(1, rows // batch), words[-1] + 1)
            part, original = _variants(frame, start, stop, begin, original, tolerance, states)
            begin = stop
            after.m[:, start:stop], after.Z[:, start:stop], after.A[:, start:stop] = part.m, part.Z, part.A
    return after, states


def _variants(
    frame: Direction, start: int, stop: int, begin: int, original: Tensor, tolerance: float, states: Tensor | None
) -> tuple[Partial, Tensor]:
    """The variants of the words start <= t < stop, and the original's state before step `stop`."""
    batch, last = frame.mask.shape[1], frame.ends[0]
    slots = batch * (1 + stop - start)
    phi = original.new_full((last, slots), torch.nan)  # where it stays NaN, no row was followed so far
    projected = original.new_zeros(last, slots, frame.project.shape[1])
    r = SweepRows(original, stop - start, frame.step.shape[1], frame.changing is None)
    reading = batch
    for s in range(begin, last + 1):
        if frame.ends[reading - 1] < s:
            reading = sum(end >= s for end in frame.ends)  # texts with a word at s - 1 or later
            r.keep(r.text[: r.n] < reading)
        if s == stop:
            original = torch.zeros_like(original)
            original[0, :reading], original[1, :reading] = r.k[:reading], r.c[:reading]
        n = stepped = r.n
        torch.index_select(frame.table[s], 0, r.text[:n], out=r.pre[:n])
        if start <= s < stop:
            entering = reading if frame.changing is None else min(reading, frame.changing[s])
            r.append(entering, batch * (1 + s - start))
            if frame.new_table is not None:
                stepped = r.n
                r.pre[n:stepped] = frame.new_table[s, :entering]
        pre, k = r.pre[:stepped], r.k[:stepped]
        pre.addmm_(k, frame.step).sigmoid_()
        if s > 0:
            _read(frame, r, pre[:n], k[:n], phi[s - 1], projected[s - 1])
        if s == last:
            break
        _advance(pre, k, r.c[:stepped], r.u[:stepped])
        if states is not None and stepped > n:
            states[: stepped - n, s] = 2 * r.k[n:stepped]
        if tolerance > 0 and s % CHECK_EVERY == 0:
            r.keep(_apart(r, reading, tolerance))
    return _sums(frame, phi, projected, start, stop, tolerance > 0 or frame.changing is not None), original


def _advance(pre: Tensor, k: Tensor, c: Tensor, u: Tensor) -> None:
    """One LSTM step in place, from the sigmoids pre (rows, C): k = h / 2 and c = 2 c, (rows, H)."""
    H = k.shape[1]
    i, f, g, o = pre[:, : 4 * H].chunk(4, 1)
    c.mul_(f).addcmul_(i, g.sub_(0.5), value=4)  # c = f c' + i tanh(g)
    torch.sigmoid(c, out=u)
    torch.mul(u.sub_(0.5), o, out=k)  # h = o tanh(c)


def _read(frame: Direction, r: SweepRows, pre: Tensor, k: Tensor, phi: Tensor, projected: Tensor) -> None:
    """Phi (slots,) and the projection (slots, features) of one position, from pre (n, C) and k (n, H)."""
    n = k.shape[0]
    if frame.v is not None:
        of_rows = torch.mv(pre[:, 4 * k.shape[1] :], frame.v)  # (n,)
    else:
        assert frame.Q is not None
        of_rows = (k * frame.Q.index_select(0, r.text[:n])).sum(-1)
    one = frame.project.shape[1] == 1  # mv is faster than a product with one column
    of_projected = torch.mv(k, frame.project[:, 0]).unsqueeze(1) if one else k @ frame.project  # (n, features)
    if r.whole:
        phi[:n], projected[:n] = of_rows, of_projected
    else:
        phi.index_copy_(0, r.slot[:n], of_rows)
        projected.index_copy_(0, r.slot[:n], of_projected)


def _apart(r: SweepRows, reading: int, tolerance: float) -> Tensor:
    """Which rows are further than tolerance from the original's state: (n,). The originals stay."""
    k, c, text = r.k[: r.n], r.c[: r.n], r.text[: r.n]
    k = (k - k[:reading].index_select(0, text)).abs_().amax(1)
    c = (c - c[:reading].index_select(0, text)).abs_().amax(1)
    apart = torch.maximum(2 * k, c / 2) > tolerance
    apart[:reading] = True
    return apart


def _sums(frame: Direction, phi: Tensor, projected: Tensor, start: int, stop: int, came_back: bool) -> Partial:
    """Over the words s > t, for start <= t < stop: (batch, variants) from phi (positions, slots)."""
    batch, n = frame.mask.shape[1], len(phi)
    own = projected[:, batch:].view(n, -1, batch, projected.shape[-1])
    phi, of_original = phi[:, batch:].view(n, -1, batch), phi[:, :batch]  # (positions, variants, batch)
    if came_back:  # from where a variant was not followed, it has what the original has
        own = torch.where(phi.isnan().unsqueeze(-1), projected[:, None, :batch], own)
        phi = torch.where(phi.isnan(), of_original.unsqueeze(1), phi)
    phi = phi + frame.phi_rest[:n].unsqueeze(1)
    place = torch.arange(n, device=phi.device)
    later = place.unsqueeze(1) > torch.arange(start, stop, device=phi.device)  # (positions, variants)
    attended = later.unsqueeze(-1) & frame.mask[:n].unsqueeze(1)
    phi.masked_fill_(~attended, torch.finfo(phi.dtype).min)
    m = phi.amax(0)  # (variants, batch)
    w = phi.sub_(m).exp_().mul_(attended)
    A = (own.mul_(w.unsqueeze(-1))).sum(0).transpose(0, 1)  # (batch, variants, features)
    A = torch.baddbmm(A, w.permute(2, 1, 0), frame.projected_rest[:, :n])
    return Partial(m.T, w.sum(0).T, A)
