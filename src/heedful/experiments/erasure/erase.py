"""Attention weights set to zero, the others renormalised: what would the model say then?

Serrano & Smith 2019, section 3: without the weights of the items R (words, or sentences) the model reads
alpha_t / sum_{u not in R} alpha_u for t not in R, and only what comes after the attention is computed again.
Where no weight is left there is nothing to read: the output is undefined (nan), and no decision has flipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.experiments.edited_attention.observe import Observed
from heedful.experiments.framework.experiment import Chunk, Floats, Ints
from heedful.measure.distance import jsd
from heedful.models.link import Link

Drawn = Literal["other", "not_first"]
ROUNDING = 1e-6  # of a weight, in float32


def check_decides(link: Link, who: str) -> None:
    """A flip is a change of the most probable label, and JS compares distributions over labels."""
    if not link.distribution:
        raise Mistake(f"{who} needs a model that chooses one of its labels; this one reads {link.name}.")


def decision(seen: Observed) -> Tensor:
    """The most probable label under the model's own attention, in the precision of the questions: (B,)."""
    return seen.y.argmax(-1)


def flipped(p: Tensor, decided: Tensor) -> Tensor:
    """Whether another label is more probable than the decided one: (B, n, labels), (B,) -> (B, n).

    A tie has flipped nothing, and neither has an output that is undefined.
    """
    own = p.gather(-1, decided.view(-1, 1, 1).expand(*p.shape[:2], 1)).squeeze(-1)
    return p.amax(-1) > own


@dataclass(frozen=True, slots=True, eq=False)
class ErasedPair:
    """The most attended item i* and a random item r, each erased by itself; nan where that is undefined."""

    delta_alpha: Floats  # (B,) alpha_i* - alpha_r
    js: Floats  # (B, 2) JS(p, q without the item)
    flips: Floats  # (B, 2) 1 where another label is then the most probable
    margin: Floats  # (B,) how far the most probable label is ahead of the next, as it is

    def columns(self) -> Chunk:
        return {
            "delta_alpha": self.delta_alpha,
            "js_top": self.js[:, 0],
            "js_random": self.js[:, 1],
            "delta_js": self.js[:, 0] - self.js[:, 1],
            "flip_top": self.flips[:, 0],
            "flip_random": self.flips[:, 1],
            "margin": self.margin,
        }


@torch.no_grad()
def erase_pair(seen: Observed, rngs: list[np.random.Generator], drawn: Drawn = "other") -> ErasedPair:
    """Undefined for a text of one item: there is no other."""
    several = torch.from_numpy(seen.n_words > 1)  # (B,)
    B, T = seen.alpha.shape
    if T < 2:
        nothing = np.full((B, 2), np.nan)
        return ErasedPair(nothing[:, 0], nothing, nothing, nothing[:, 0])
    top = most_attended(seen.alpha)
    items = torch.from_numpy(np.stack([top, random_items(top, seen.n_words, rngs, drawn)], 1))  # (B, 2)
    removed = torch.zeros(B, 2, T, dtype=torch.bool).scatter_(2, items.unsqueeze(-1), True)
    p, q = seen.y, seen.erase(removed)  # (B, labels), (B, 2, labels)
    defined = (~q.isnan().any(-1) & several.unsqueeze(1)).numpy()  # (B, 2)
    q = q.nan_to_num()
    alpha = seen.alpha.gather(1, items).numpy()  # (B, 2)
    flips = flipped(q, p.argmax(-1)).numpy().astype(np.float64)
    return ErasedPair(
        np.where(several, alpha[:, 0] - alpha[:, 1], np.nan),
        np.where(defined, jsd(p.unsqueeze(1).expand_as(q).numpy(), q.numpy()), np.nan),
        np.where(defined, flips, np.nan),
        np.where(several, ahead(p).numpy(), np.nan),
    )


def most_attended(alpha: Tensor) -> Ints:
    """i* of each text, the first of equals: (B, T) -> (B,).

    Equal to rounding is equal. Without context a word that stands twice has one weight, of which a product of matrices
    may give two last bits, and which is the larger one depends on the processor.
    """
    best = alpha.amax(1, keepdim=True) * (1 - ROUNDING)
    found: Ints = (alpha >= best).to(torch.uint8).argmax(1).numpy()
    return found


def ahead(p: Tensor) -> Tensor:
    """The largest probability minus the second: (B, labels) -> (B,)."""
    best = p.topk(2, dim=-1).values
    return best[:, 0] - best[:, 1]


def random_items(top: Ints, n_words: Ints, rngs: list[np.random.Generator], drawn: Drawn) -> Ints:
    """r for each text. "other": any item but i* (the paper). "not_first": any but the first of the text.

    The authors' code draws a number from 1 to n - 1 that is meant as a rank and used as a position, so that it can
    be i* itself: that is "not_first".
    """
    found = np.zeros(len(top), dtype=np.int64)
    for row, (i, n, rng) in enumerate(zip(top, n_words, rngs, strict=True)):
        if n > 1 and drawn == "other":
            place = rng.integers(n - 1)
            found[row] = place + (place >= i)
        elif n > 1:
            found[row] = rng.integers(1, n)
    return found
