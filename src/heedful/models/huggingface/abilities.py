"""What a module can do, found out by asking it about short texts (probe.py) when it is wrapped.

No architecture is known by name here: whether a module takes embeddings, on which side it can be padded, and whether
its attention goes through the attention interface are seen from its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Attended, AttentionCall
from heedful.models.huggingface.forward import Forward, Inputs
from heedful.models.sequence import Side

CLOSE = 1e-3  # answers that differ less, relative to their size, are the same: rounding is 1e-7, padding is not
CLOSE_HALF = 5e-2  # with numbers of 16 bits
LEAST_SPREAD = 3e-2  # of answers, relative to their size: what texts change is not taken for less than this
SUMS_TO_ONE = 1e-2  # attention of 16 bits does, to so much
SIDES: tuple[Side, ...] = ("right", "left")
SHORT, MIDDLE, LONG = 0, 1, 2  # the texts


class Make(Protocol):
    def __call__(self, which: list[int], side: Side, embeddings: bool, hide: bool = False) -> Inputs:
        """Some of the texts, padded at a side, as embeddings or as ids; `hide`: one word shut out of attention."""
        ...


@dataclass(frozen=True, slots=True)
class Abilities:
    embeddings: bool  # it can be given embeddings
    padding: Side | None  # where padding leaves its answer alone; None: nowhere, so texts of one length go together
    attention: Literal["edited", "read"] | None  # through the interface; only told by the module; not at all
    n_outputs: int
    n_layers: int = 0
    n_heads: int = 0
    states: bool = False  # it tells the states that go into its first layer and come out of each
    looks_back: bool = False  # no token attends to a later one
    hides: bool = False  # a word can be shut out of its attention, in company as alone


@torch.no_grad()
def find_abilities(forward: Forward, make: Make, sides: Sequence[Side] = SIDES) -> Abilities:
    """`make` gives three texts, each longer than the one before, as the module is to read them."""
    embeddings = _takes_embeddings(forward, make)
    alone = forward(make([SHORT], "right", embeddings), "right")  # (1, outputs)
    if alone.dim() != 2 or not torch.isfinite(alone).all():
        raise Mistake(
            f"{type(forward.module).__name__} answers one text with {tuple(alone.shape)} numbers"
            + ("" if alone.dim() == 2 else "; logits of shape (texts, labels) are needed")
            + ("" if torch.isfinite(alone).all() else ", and they are not finite")
            + "."
        )
    padding = None if forward.by_length else _padding(forward, make, embeddings, sides)
    outputs = alone.shape[1]
    every = [SHORT, MIDDLE, LONG] if padding else [LONG]
    inputs = make(every, padding or "right", embeddings)
    side = padding or "right"
    own = forward(inputs, side)
    seen: list[Tensor] = []

    def note(call: AttentionCall) -> Attended:
        seen.append(call.own[1])
        return call.own

    kind: Literal["edited", "read"] | None = None
    if getattr(getattr(forward.module, "config", None), "is_encoder_decoder", False):
        return Abilities(embeddings, padding, None, outputs)  # three kinds of attention: none is the attention
    try:
        listened = forward(inputs, side, note)
        if _is_attention(seen, inputs) and _same(listened, own) and padding:
            kind = "edited"
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError):
        pass  # an attention function of another form: it cannot be edited, and may still be told
    if kind is None:
        try:
            told_weights, listened = forward.attended(inputs, side)
            seen = list(told_weights)  # asked for them, some modules compute something else
            kind = "read" if _is_attention(seen, inputs) and _same(listened, own) else None
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            pass
    if kind is None:
        return Abilities(embeddings, padding, None, outputs)
    try:
        told = forward.output(inputs, side, output_hidden_states=True).hidden_states or ()
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        told = ()
    states = len(told) == len(seen) + 1 and len({tuple(state.shape) for state in told}) == 1
    looks_back = all(bool((w.triu(1) * _both(inputs) == 0).all()) for w in seen)
    hides = padding is not None and _hides(forward, make, embeddings, padding)
    return Abilities(embeddings, padding, kind, outputs, len(seen), seen[0].shape[1], states, looks_back, hides)


def _takes_embeddings(forward: Forward, make: Make) -> bool:
    if "inputs_embeds" not in forward.takes or not hasattr(forward.module, "get_input_embeddings"):
        return False
    try:
        given = forward(make([SHORT], "right", True), "right")
    except (NotImplementedError, TypeError, ValueError):
        return False
    return _same(given, forward(make([SHORT], "right", False), "right"))


def _padding(forward: Forward, make: Make, embeddings: bool, sides: Sequence[Side]) -> Side | None:
    """The side on which padding leaves the answers alone, to embeddings and to ids (those of training)."""
    ways = {embeddings, False}
    alone = [forward(make([i], "right", embeddings), "right") for i in (SHORT, MIDDLE, LONG)]
    right = torch.cat(alone)  # (texts, outputs)

    def keeps(side: Side) -> bool:
        answers = [forward(make([SHORT, MIDDLE, LONG], side, way), side) for way in ways]
        return all(agree(answer, right, right) for answer in answers)

    return next((side for side in sides if keeps(side)), None)


def _hides(forward: Forward, make: Make, embeddings: bool, side: Side) -> bool:
    """Whether a word that is shut out of attention is gone in company as it is alone, and its text another."""
    texts = [SHORT, MIDDLE, LONG]
    shown = torch.cat([forward(make([i], side, embeddings), side) for i in texts])  # (texts, outputs)
    alone = torch.cat([forward(make([i], side, embeddings, hide=True), side) for i in texts])
    together = forward(make(texts, side, embeddings, hide=True), side)
    return agree(together, alone, shown) and not torch.equal(alone, shown)


def _is_attention(weights: list[Tensor], inputs: Inputs) -> bool:
    """Whether all layers attend from every place to every place, with as many heads each, in shares of a whole."""
    if not weights:
        return False
    n, width = inputs.present.shape
    shape = (n, weights[0].shape[1], width, width)
    return all(tuple(w.shape) == shape and _sums_to_one(w, inputs.present) for w in weights)


def _sums_to_one(weights: Tensor, present: Tensor) -> bool:
    """weights (n, heads, to, from): of the rows of tokens; raw scores do not."""
    sums = weights.double().sum(-1).transpose(1, 2)[present]  # (tokens, heads)
    return bool(((sums - 1).abs() <= SUMS_TO_ONE).all() and (weights >= 0).all())


def _both(inputs: Inputs) -> Tensor:
    """(n, 1, to, from) where there is a token at both places."""
    return (inputs.present[:, :, None] & inputs.present[:, None, :]).unsqueeze(1)


def agree(ours: Tensor, theirs: Tensor, answers: Tensor) -> bool:
    """Answers (texts, outputs) that differ by less than a small share of what the texts differ by themselves.

    A large bias says the same of every text, so the size of answers alone would hide a wrong one behind it.
    """
    if not torch.isfinite(ours).all():
        return False
    ours, theirs = ours.double(), theirs.double()
    size = float(theirs.abs().max().clamp(min=1e-6))
    if answers.dtype in (torch.float16, torch.bfloat16):
        limit = CLOSE_HALF * size
    else:
        spread = float((answers.amax(0) - answers.amin(0)).max())
        limit = CLOSE * max(spread, LEAST_SPREAD * size)
    return bool((ours - theirs).abs().max() <= limit)


def _same(ours: Tensor, theirs: Tensor) -> bool:
    close = CLOSE_HALF if ours.dtype in (torch.float16, torch.bfloat16) else CLOSE
    return bool((ours - theirs).abs().max() <= close * theirs.abs().max().clamp(min=1e-6))


@torch.no_grad()
def check_repeats(ask: Callable[[], Tensor], name: str) -> None:
    """A network that draws at random has no explanation. `ask`: logits (texts, outputs)."""
    first, again = ask(), ask()
    if not agree(again, first, first):
        raise Mistake(
            f"{name} answers the same text differently when it is asked twice: what it draws at random (dropout of "
            "its own, sampling, noise) must be switched off before it is wrapped."
        )
