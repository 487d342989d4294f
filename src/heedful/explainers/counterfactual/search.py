"""The smallest set of changes that changes the answer, and how few words keep it.

Sets are tried by their size. All sets of one size are tried where the budget holds them; then it is certain that no
smaller set changes the answer, and the result says so. Beyond, sets are grown from the most promising ones (the
smallest margin of the answer over its best rival), and the result is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np

from heedful.explainers.counterfactual.answers import Floats, Respondent
from heedful.explainers.counterfactual.changes import Change, changed_text
from heedful.records import Words

BEAM = 32  # sets that are grown, where not all are tried
Set = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Flip:
    """A set of changes after which the model says something else."""

    changes: Set
    text: str
    answer: str
    confidence: float  # of that answer


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found, and what is certain: every set of up to `complete` changes was tried."""

    flips: tuple[Flip, ...]
    complete: int
    texts: int  # that the model was asked about

    @property
    def smallest(self) -> bool:
        """Whether no smaller set of these changes does it: all were tried."""
        return bool(self.flips) and len(self.flips[0].changes) <= self.complete + 1


def search(asked: Respondent, words: Words, changes: Sequence[Change], most: int, budget: int, wanted: int) -> Searched:
    """Up to `wanted` sets of at most `most` of the changes, the smallest first, different ones before alike ones."""
    found: dict[Set, tuple[int, float]] = {}  # the answer and its confidence
    complete, left, grown = 0, budget, [((), 0.0)]
    for size in range(1, most + 1):
        n_sets = comb(len(changes), size)
        whole = n_sets <= left
        sets = _sets(changes, size) if whole else _grown(grown, changes)
        room = left if whole else max(1, left // (most - size + 1))  # something is left for larger sets
        tried = [s for s in islice(sets, room) if _is_text(s, words) and not any(set(f) < set(s) for f in found)]
        if not tried:
            complete = size if whole else complete
            break
        answers = asked.ask([changed_text(words, s) for s in tried])
        left -= len(tried)
        for i in np.flatnonzero(answers.margin < 0):
            found[tried[i]] = int(answers.best[i]), float(answers.confidence[i])
        if whole and complete == size - 1:
            complete = size
        ranked = np.argsort(answers.margin, kind="stable")
        grown = [(tried[i], float(answers.margin[i])) for i in ranked[:BEAM] if tried[i] not in found]
        if size == 1:
            changes = _promising(changes, tried, answers.margin)
        if len(found) >= wanted or not left or not grown or (found and size > len(min(found, key=len))):
            break
    flips = [Flip(s, changed_text(words, s), asked.name(best), p) for s, (best, p) in found.items()]
    return Searched(_different(flips, wanted), complete, budget - left)


def _sets(changes: Sequence[Change], size: int) -> Iterator[Set]:
    for some in combinations(changes, size):
        if len({change.slot for change in some}) == size:
            yield tuple(sorted(some))


def _grown(grown: Sequence[tuple[Set, float]], changes: Sequence[Change]) -> Iterator[Set]:
    """Each of the most promising sets with one more change, each once."""
    seen: set[Set] = set()
    for change in changes:
        for begun, _ in grown:
            if change.slot not in {one.slot for one in begun}:
                made = tuple(sorted((*begun, change)))
                if made not in seen:
                    seen.add(made)
                    yield made


def _promising(changes: Sequence[Change], tried: Sequence[Set], margin: Floats) -> list[Change]:
    """Those that change the answer's margin most by themselves come first."""
    alone = {s[0]: float(m) for s, m in zip(tried, margin, strict=True)}
    return sorted(changes, key=lambda change: alone.get(change, np.inf))


def _is_text(changes: Set, words: Words) -> bool:
    """Something is left, and what replaces a word is another one."""
    return bool(changed_text(words, changes).strip()) and len(words) > sum(c.kind == "remove" for c in changes)


def _different(flips: Sequence[Flip], wanted: int) -> tuple[Flip, ...]:
    """The smallest and surest first; then, of the smallest left, those that share the fewest places with the others."""
    left = sorted(flips, key=lambda f: (len(f.changes), -f.confidence))
    chosen: list[Flip] = []
    while left and len(chosen) < wanted:
        taken = {c.slot for f in chosen for c in f.changes}
        best = min(left, key=lambda f: (len(f.changes), sum(c.slot in taken for c in f.changes), -f.confidence))
        left.remove(best)
        chosen.append(best)
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class Reduced:
    """How few words keep the answer (Feng et al. 2018): the words that stay, and the confidence after each removal."""

    kept: tuple[int, ...]  # places of the words that stay
    text: str
    confidence: float
    steps: tuple[tuple[int, float], ...]  # words left, and the answer's probability, from the whole text on
    texts: int
    width: int


def reduce(asked: Respondent, words: Words, width: int = 3) -> Reduced:
    """Remove the word without which the answer is surest, again and again, while it is the answer.

    Feng et al. order words by gradients; leave-one-out asks the model itself, and needs none. A beam of `width` texts
    is followed. What is found is an upper bound: that no shorter text keeps the answer is not tried.
    """
    beam: list[tuple[int, ...]] = [tuple(range(len(words)))]
    steps, best, asked_of = [(len(words), asked.confidence)], (beam[0], asked.confidence), 0
    while len(beam[0]) > 1:
        shorter = sorted({kept[:i] + kept[i + 1 :] for kept in beam for i in range(len(kept))})
        answers = asked.ask([_keeping(words, kept) for kept in shorter])
        asked_of += len(shorter)
        order = [i for i in np.argsort(-answers.own, kind="stable") if answers.best[i] == asked.original]
        if not order:
            break
        beam = [shorter[i] for i in order[:width]]
        best = beam[0], float(answers.own[order[0]])
        steps.append((len(beam[0]), best[1]))
    return Reduced(best[0], _keeping(words, best[0]), best[1], tuple(steps), asked_of, width)


def _keeping(words: Words, kept: Sequence[int]) -> str:
    stay = set(kept)
    return changed_text(words, [Change(i, "remove") for i in range(len(words)) if i not in stay])
