"""What a model reads that takes passage and query as one sequence: their tokens side by side, without a gap.

A sequence is an index into the tokens of the passage and, after them, of the query. A text that is longer than the
model reads becomes several sequences, windows that overlap; its logits are those of its windows, weighted by `share`:

    f(text) = sum_w share_w f(window w)        share_w = 1/n sum over the pieces of window w of 1 / (windows with it)

so each of its n pieces counts the same, shares sum to 1, and f is one function of the text that can be explained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.records import Batch, Tokens

Long = Literal["windows", "truncate", "refuse"]  # what is done about a text that is longer than a model reads
Side = Literal["right", "left"]  # where padding goes
OVERLAP = 4  # a window shares one in so many of its pieces with the next


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """How many special tokens a tokenizer puts before and after the pieces of a passage."""

    before: int
    after: int


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """n sequences for a batch of texts."""

    index: Tensor  # (n, width) into the tokens of passage and query side by side
    present: Tensor  # (n, width) bool
    row: Tensor | None = None  # (n,) the text that a sequence is a window of; None: each text is one sequence
    share: Tensor | None = None  # (n,) float64

    def take(self, passage: Tensor, query: Tensor | None) -> Tensor:
        """What stands at the places of each sequence: (batch, length, ...) of both parts -> (n, width, ...)."""
        both = passage if query is None else torch.cat([passage, query], dim=1)
        if self.row is not None:
            both = both[self.row]
        index = self.index.view(*self.index.shape, *[1] * (both.dim() - 2))
        return both.gather(1, index.expand(-1, -1, *both.shape[2:]))

    def gather(self, logits: Tensor, n_texts: int) -> Tensor:
        """From the logits of sequences to those of texts: (n, outputs) -> (batch, outputs)."""
        if self.row is None or self.share is None:
            return logits
        weighted = logits * self.share.to(logits).unsqueeze(1)
        return logits.new_zeros(n_texts, logits.shape[1]).index_add(0, self.row, weighted)


def sequences(
    batch: Batch,
    limit: int | None = None,
    frame: SpecialTokens | None = None,
    long: Long = "windows",
    side: Side = "right",
) -> Sequences:
    """The sequences of a batch for a model that reads at most `limit` tokens."""
    of_passage = batch.passage.present.sum(1)  # (batch,)
    of_query = torch.zeros_like(of_passage) if batch.query is None else batch.query.present.sum(1)
    if limit is None or frame is None or int((of_passage + of_query).max()) <= limit:
        nothing = torch.zeros_like(of_passage)
        return _indexed(batch, of_passage, of_query, nothing, nothing, nothing, of_passage, side)
    rows, starts, kept, shares = [], [], [], []
    for row, (n, q) in enumerate(zip(of_passage.tolist(), of_query.tolist(), strict=True)):
        windows = windows_of(n - frame.before - frame.after, limit - q - frame.before - frame.after, long)
        rows += [row] * len(windows)
        starts += [start for start, _, _ in windows]
        kept += [size for _, size, _ in windows]
        shares += [share for _, _, share in windows]
    device = of_passage.device
    row_of = torch.tensor(rows, device=device)
    before = torch.full_like(row_of, frame.before)
    found = _indexed(
        batch,
        of_passage[row_of],
        of_query[row_of],
        before,
        torch.full_like(row_of, frame.after),
        torch.tensor(starts, device=device),
        torch.tensor(kept, device=device),
        side,
    )
    return Sequences(found.index, found.present, row_of, torch.tensor(shares, dtype=torch.float64, device=device))


def _indexed(
    batch: Batch,
    of_passage: Tensor,
    of_query: Tensor,
    before: Tensor,
    after: Tensor,
    start: Tensor,
    kept: Tensor,
    side: Side,
) -> Sequences:
    """All (n,): lengths, special tokens before and after, and which pieces of the passage are kept.

    Of a text that has no token at all (every word deleted, no special tokens) one token of padding is read.
    """
    middle = before + kept  # (n,) where the special tokens at the end of the passage begin
    length = middle + after + of_query  # (n,)
    width = max(1, int(length.max()) if len(length) else 1)
    place = torch.arange(width, device=length.device).expand(len(length), -1)  # (n, width)
    if side == "left":
        place = place - (width - length).unsqueeze(1)
    present = (place >= 0) & (place < length.unsqueeze(1))
    blank = (length == 0).unsqueeze(1) & (place == (0 if side == "right" else -1))  # (n, width)
    b, m, a, n = (part.unsqueeze(1) for part in (before, middle, after, of_passage))
    index = torch.where(
        place < b,
        place,
        torch.where(
            place < m,
            place + start.unsqueeze(1),
            torch.where(place < m + a, n - a + place - m, batch.passage.ids.shape[1] + place - m - a),
        ),
    )
    return Sequences(index.masked_fill(~present, 0), present | blank)


def windows_of(pieces: int, room: int, long: Long) -> list[tuple[int, int, float]]:
    """(first piece, how many, share) of each window of a text with so many pieces."""
    if pieces <= room:
        return [(0, pieces, 1.0)]
    if long == "refuse":
        raise Mistake(
            f"a text has {pieces} pieces, and the model reads {max(room, 0)} of it at once: "
            "ask for long='windows' or long='truncate'."
        )
    if room < OVERLAP:
        raise Mistake(f"the query leaves room for {max(room, 0)} pieces of the text: give a shorter query.")
    if long == "truncate":
        return [(0, room, 1.0)]
    step = room - room // OVERLAP
    starts = [*range(0, pieces - room, step), pieces - room]
    covered = torch.zeros(pieces, dtype=torch.float64)  # windows that a piece is in
    for start in starts:
        covered[start : start + room] += 1
    return [(start, room, float((1 / covered[start : start + room]).sum()) / pieces) for start in starts]


def split(values: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """Values at the places of sequences (batch, width) as those of passage and query, 0 at padding."""
    passage = batch.passage
    n = passage.ids.shape[1]
    wide = torch.nn.functional.pad(values, (0, max(0, n - values.shape[1])))
    first = wide[:, :n] * passage.present
    if batch.query is None or values.shape[1] <= n:  # the model attends to its passage alone
        return first, None
    place = torch.arange(batch.query.ids.shape[1], device=values.device) + passage.present.sum(1, keepdim=True)
    found = values.gather(1, place.clamp(max=values.shape[1] - 1))  # (batch, query length)
    return first, found * batch.query.present


def asked_places(batch: Batch) -> Tensor:
    """(batch, width) which places of sequences a question is about."""
    marks = [torch.zeros_like(part.ids) if part.places is None else part.places for part in parts(batch)]
    found = sequences(batch)
    taken = found.take(marks[0], marks[1] if len(marks) > 1 else None) * found.present
    if not bool((taken != 0).any()):
        raise Mistake("row='asked' is for models that answer at places of a text: this question is about none.")
    return taken != 0


def parts(batch: Batch) -> list[Tokens]:
    return [batch.passage] if batch.query is None else [batch.passage, batch.query]


def present(batch: Batch, width: int) -> Tensor:
    """(batch, width) which places hold a token: of the passage alone where a model attends to no more."""
    alone = batch.passage.present
    return alone if batch.query is None or width <= alone.shape[1] else sequences(batch).present
