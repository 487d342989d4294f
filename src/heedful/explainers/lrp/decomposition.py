"""Where a logit comes from: words, special tokens, positions and types of tokens, biases; their sum is the logit.

One forward and one backward pass through the frozen network (frozen.py). Each part is computed by its own formula, so
that the sum is a check: of a network with a layer that cannot be held linear, nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.lrp.frozen import BIASES, POSITIONS, RULES, LrpRule, frozen
from heedful.explainers.lrp.gates import GATED
from heedful.models.language.families import shares
from heedful.models.network import Differentiable
from heedful.records import Batch, Tokens

TOLERANCE = 3e-4  # of the sum of all |parts|, in float32: what rounding can leave over, and no wrong layer would

RULES.update(GATED)


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """f = words + special + positions + biases + gap, the gap from rounding alone: (batch,) each."""

    f: Tensor
    passage: Tensor  # (batch, length) of each token, special tokens included
    query: Tensor | None  # (batch, query length)
    words: Tensor
    special: Tensor
    positions: Tensor
    biases: Tensor

    @property
    def gap(self) -> Tensor:
        return self.f - self.words - self.special - self.positions - self.biases

    @property
    def missing(self) -> Tensor:
        """The gap, relative to the size of all parts: (batch,)."""
        parts = torch.stack((self.f, self.words, self.special, self.positions, self.biases))
        size: Tensor = parts.abs().sum(0).clamp(min=torch.finfo(self.f.dtype).tiny)
        return self.gap.abs() / size

    @property
    def fits(self) -> Tensor:
        """Whether the gap is no more than rounding: (batch,)."""
        found: Tensor = self.missing <= max(TOLERANCE, torch.finfo(self.f.dtype).eps ** 0.5)
        return found


def decompose(network: Differentiable, batch: Batch, target: Tensor, rule: LrpRule = "frozen") -> Decomposition:
    """f_c of each text, f_c = z_c (or -z where one logit z serves two labels), as a sum of parts."""
    if shares(network):
        from heedful.explainers.lrp.steps import decompose_steps

        found = decompose_steps(network, batch, target, rule)
        if found.fits.all():
            return found
    found = _decompose(network, batch, target, rule)
    if len(batch) > 1 and not found.fits.all():
        # A network that reads a text in windows, or some texts apart, has rows that are not texts, and constants
        # cannot be told apart by text: one text at a time, all rows are its own.
        rows = torch.arange(len(batch), device=target.device).unsqueeze(1)  # (batch, 1)
        alone = [_decompose(network, batch.rows(row), target[row], rule) for row in rows]
        found = _together(alone, found)
    if not found.fits.all():
        raise Mistake(cannot_take_apart(f"{found.missing.max():.0%}"))
    return found


def cannot_take_apart(missing: str) -> str:
    return (
        f"lrp cannot take this network apart: {missing} of a logit is in none of its parts, so it has a layer that is "
        "not linear when attention, norms and activations are held constant; use gradient_x_input or "
        "integrated_gradients."
    )


def _decompose(network: Differentiable, batch: Batch, target: Tensor, rule: LrpRule) -> Decomposition:
    read = [batch.passage] if batch.query is None or not network.has_query else [batch.passage, batch.query]
    with torch.no_grad():
        embedded = [network.embed(tokens) for tokens in read]
    x = [part.detach().clone().requires_grad_() for part in embedded]
    with torch.enable_grad():
        with frozen(network, x, rule) as mode:
            logits = network(batch, **dict(zip(("x", "x_query"), x, strict=False))).logits
        f = network.link.score(logits, target)  # (batch,)
        if not f.requires_grad:
            raise Mistake(cannot_take_apart("all"))
        slopes = torch.autograd.grad(f.sum(), x)  # texts do not mix: one sum serves them all
    parts = [(slope * part).sum(-1).detach() for slope, part in zip(slopes, x, strict=True)]
    return Decomposition(
        f=f.detach(),
        passage=parts[0],
        query=parts[1] if len(parts) > 1 else None,
        words=_sum(parts, read, words=True),
        special=_sum(parts, read, words=False),
        positions=mode.constants[POSITIONS],
        biases=mode.constants[BIASES],
    )


def _together(alone: list[Decomposition], wide: Decomposition) -> Decomposition:
    """The constants of texts one by one; f and the tokens are in `wide` as the batch has them."""
    names = ("positions", "biases")
    return replace(wide, **{name: torch.cat([getattr(one, name) for one in alone]) for name in names})


def _sum(parts: list[Tensor], read: list[Tokens], words: bool) -> Tensor:
    """Of all tokens that are words, or of all others: (batch,)."""
    sums = [(part * (tokens.mask == words)).sum(1) for part, tokens in zip(parts, read, strict=True)]
    return torch.stack(sums).sum(0)
