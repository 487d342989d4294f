"""What a module can do, found out by asking it about two short texts when it is wrapped.

No architecture is known by name here: whether a module takes embeddings, on which side it can be padded, and whether
its attention goes through the attention interface are seen from its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Attended, AttentionCall
from heedful.models.huggingface.forward import Forward, Inputs
from heedful.models.sequence import Side

CLOSE = (
    1e-3  # answers that differ less, relative to their size, are the same: rounding is 1e-7, padding is not
)
CLOSE_HALF = 5e-2  # with numbers of 16 bits
Make = Callable[[list[int], Side, bool], Inputs]  # which of the texts, padding, embeddings (or ids)


@dataclass(frozen=True, slots=True)
class Abilities:
    embeddings: bool  # it can be given embeddings
    padding: (
        Side | None
    )  # where padding leaves its answer alone; None: nowhere, so texts of one length go together
    attention: Literal["edited", "read"] | None  # through the interface; only told by the module; not at all
    n_outputs: int
    n_layers: int = 0
    n_heads: int = 0
    states: bool = False  # it tells the states that go into its first layer and come out of each


@torch.no_grad()
def find_abilities(forward: Forward, make: Make) -> Abilities:
    """`make` gives two texts, the first shorter than the second, as the module is to read them."""
    embeddings = _takes_embeddings(forward, make)
    alone = forward(make([0], "right", embeddings), "right")  # (1, outputs)
    if alone.dim() != 2 or not torch.isfinite(alone).all():
        raise Mistake(
            f"{type(forward.module).__name__} answers one text with {tuple(alone.shape)} numbers"
            + ("" if alone.dim() == 2 else "; logits of shape (texts, labels) are needed")
            + ("" if torch.isfinite(alone).all() else ", and they are not finite")
            + "."
        )
    sides: tuple[Side, ...] = ("right", "left")
    padding = next((s for s in sides if _same(forward(make([0, 1], s, embeddings), s)[:1], alone)), None)
    outputs = alone.shape[1]
    inputs = make([0, 1] if padding else [1], padding or "right", embeddings)
    side = padding or "right"
    own = forward(inputs, side)
    seen: list[Tensor] = []

    def note(call: AttentionCall) -> Attended:
        seen.append(call.own[1])
        return call.own

    kind: Literal["edited", "read"] | None = None
    if getattr(getattr(forward.module, "config", None), "is_encoder_decoder", False):
        return Abilities(
            embeddings, padding, None, outputs
        )  # three kinds of attention: none is the attention
    try:
        listened = forward(inputs, side, note)
        if seen and _square(seen, inputs) and _same(listened, own) and padding:
            kind = "edited"
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError):
        pass  # an attention function of another form: it cannot be edited, and may still be told
    if kind is None:
        try:
            seen = list(forward.attentions(inputs, side))
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            seen = []
        kind = "read" if seen and _square(seen, inputs) else None
    if kind is None:
        return Abilities(embeddings, padding, None, outputs)
    try:
        told = forward.output(inputs, side, output_hidden_states=True).hidden_states or ()
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        told = ()
    states = len(told) == len(seen) + 1 and len({tuple(state.shape) for state in told}) == 1
    return Abilities(embeddings, padding, kind, outputs, len(seen), seen[0].shape[1], states)


def _takes_embeddings(forward: Forward, make: Make) -> bool:
    if "inputs_embeds" not in forward.takes or not hasattr(forward.module, "get_input_embeddings"):
        return False
    try:
        given = forward(make([0], "right", True), "right")
    except (NotImplementedError, TypeError, ValueError):
        return False
    return _same(given, forward(make([0], "right", False), "right"))


def _square(weights: list[Tensor], inputs: Inputs) -> bool:
    """Whether all layers attend from every place to every place, with as many heads each."""
    n, width = inputs.present.shape
    return all(tuple(w.shape) == (n, weights[0].shape[1], width, width) for w in weights)


def _same(ours: Tensor, theirs: Tensor) -> bool:
    close = CLOSE_HALF if ours.dtype in (torch.float16, torch.bfloat16) else CLOSE
    return bool((ours - theirs).abs().max() <= close * theirs.abs().max().clamp(min=1e-6))
