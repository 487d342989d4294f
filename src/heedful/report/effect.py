"""Attention against effect: what a model looks at, beside what happens when it is deleted.

Both are shares of a text: a_t = alpha_t / sum alpha, and e_t = |f(x) - f(x without t)| / sum of the same
(leave-one-out: Li et al. 2016; Jain & Wallace 2019, Algorithm 1). An even share is 1 / T. A word decides unseen where
e_t is at least twice an even share (and TENTH) and a_t less than an even one; it is seen for nothing where it is the
other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from heedful.explainers.attention import ATTENTION as LOOKED_AT
from heedful.explainers.perturbation import OMISSION as LEFT_OUT
from heedful.explanation.drawing import strongest, visible
from heedful.explanation.explanation import Explanation
from heedful.explanation.record import Explained
from heedful.figures.figure import join_words
from heedful.measure.statistics import Interval, proportion

Floats = NDArray[np.float64]

ATTENTION, OMISSION = LOOKED_AT.name, LEFT_OUT.name  # the two that this page holds against each other
TENTH = 0.1
NOTHING = 0.01  # the largest effect, in probability, below which no single word decides
SHOWN, LEAST = 10, 0.02  # words of a text that are drawn: so many, with at least this share of either
NAMED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Against:
    """The words of one text by both shares; `signed` is the fall of the probability itself."""

    words: tuple[str, ...]
    attention: Floats  # (T,) sums to 1
    effect: Floats  # (T,) sums to 1, or 0 where nothing changes anything
    signed: Floats  # (T,)

    @property
    def decides_unseen(self) -> list[int]:
        return self._apart(self.effect, self.attention) if self.moves else []

    @property
    def seen_for_nothing(self) -> list[int]:
        return self._apart(self.attention, self.effect) if self.moves else []

    @property
    def moves(self) -> bool:
        """Whether deleting one word changes anything."""
        return bool(np.abs(self.signed).max(initial=0.0) >= NOTHING)

    def _apart(self, much: Floats, little: Floats) -> list[int]:
        even = 1 / max(1, len(self.words))
        found = np.flatnonzero((much >= max(2 * even, TENTH)) & (little < even))
        return sorted(found.tolist(), key=lambda i: -much[i])

    def sentence(self) -> str:
        """What the dumbbells show, in words."""
        if not self.moves:
            return "No single word decides here: whichever is deleted, the prediction hardly changes."
        unseen, seen = (self._named(places) for places in (self.decides_unseen, self.seen_for_nothing))
        told = []
        if unseen:
            told.append(f"{unseen[0]} {'decides' if unseen[1] == 1 else 'decide'}, and the attention is elsewhere.")
        if seen:
            verbs = ("is", "decides") if seen[1] == 1 else ("are", "decide")
            told.append(f"{seen[0]} {verbs[0]} looked at, and {verbs[1]} little.")
        return " ".join(told) or "Here it looks at the words that decide."

    def _named(self, places: Sequence[int]) -> tuple[str, int] | None:
        words = list(dict.fromkeys(self.words[i] for i in places))[:NAMED]
        return (join_words([f"“{word}”" for word in words]), len(words)) if words else None


def against(explained: Explained) -> Against | None:
    """None of a text without words, or without both methods."""
    known = {a.method for a in explained.attributions}
    n = len(explained.passage)
    if not n or not {ATTENTION, OMISSION} <= known:
        return None
    attention, signed = (explained.attribution(name).scores["passage"] for name in (ATTENTION, OMISSION))
    words = tuple(visible(explained.passage.surface(i), 28).replace("\n", " ") for i in range(n))
    return Against(words, _shares(attention), _shares(signed), np.asarray(signed, dtype=np.float64))


def _shares(scores: Floats) -> Floats:
    size = np.abs(scores)
    total = float(size.sum())
    return size / total if total > 0 else np.zeros(len(size))


def same_strongest(explained: Explanation) -> Interval | None:
    """In how many texts the most attended word is the one whose deletion matters most."""
    found = [
        int(one.attention.argmax()) == int(one.effect.argmax())
        for e in explained
        if (one := against(e)) is not None and len(one.words) > 1
    ]
    return proportion(sum(found), len(found)) if found else None


def strongest_sentence(explained: Explanation) -> str:
    """How often attention and effect name the same word, for someone who reads one sentence; empty without texts."""
    found = same_strongest(explained)
    if found is None:
        return ""
    return (
        "The word it looks at most is also the word whose deletion changes the prediction most in "
        f"{found.value:.0%} of {len(explained):,} texts (95% interval {found.low:.0%} to {found.high:.0%})."
    )


def dumbbells(one: Against) -> dict[str, Any]:
    """What the template draws: the strongest words by either share, in the order of the text."""
    both = np.maximum(one.attention, one.effect)
    kept = sorted(i for i in strongest(both, SHOWN) if both[i] >= LEAST)
    most = float(both.max(initial=0.0)) or 1.0
    left = len(one.words) - len(kept)
    rest = float(both[[i for i in range(len(one.words)) if i not in kept]].max(initial=0.0))
    unseen, seen = set(one.decides_unseen), set(one.seen_for_nothing)
    return {
        "sentence": one.sentence(),
        "rows": [
            {
                "word": one.words[i],
                "attention": f"{one.attention[i]:.0%}",
                "effect": f"{one.effect[i]:.0%}",
                "fall": f"{round(-one.signed[i], 2) + 0.0:+.2f}".replace("-", "−"),
                "kind": "unseen" if i in unseen else "seen" if i in seen else "",
                "drawing": _drawing(one.attention[i] / most, one.effect[i] / most, one.signed[i] >= 0),
            }
            for i in kept
        ],
        "rest": f"The other {left} words have at most {rest:.0%} of either." if left else "",
    }


def _drawing(attention: float, effect: float, supports: bool) -> Markup:
    """A dumbbell in per cent of its width: a circle for the attention, a diamond for the effect."""
    x, y = (f"{3 + 94 * share:.2f}%" for share in (attention, effect))
    return Markup(
        '<svg class="dumbbell" aria-hidden="true" width="100%" height="20"><line x1="3%" x2="97%" y1="10" y2="10" '
        'class="track"/><line x1="{x}" x2="{y}" y1="10" y2="10" class="between"/><circle cx="{x}" cy="10" r="6" '
        'class="looks"/><svg x="{y}" y="10" overflow="visible"><path d="M-7 0L0 -7L7 0L0 7Z" class="{sign}"/></svg>'
        "</svg>"
    ).format(x=x, y=y, sign="for" if supports else "against")
