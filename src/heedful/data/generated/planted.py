"""Review-like sentences whose label is decided by planted words, so that the evidence is known.

Four rules (deciding words are "cues", positive or negative; see `planted_language`):

    single     one cue; the label is its side                                         evidence: the cue
    negation   one cue, negated or not; a negated cue counts for the other side       evidence: the cue and,
               (one negator or more in every text: those that do not negate           if it is negated, its
               the cue negate neutral words)                                          negator
    majority   three or five cues; the side with more of them, by one                 evidence: the cues of
                                                                                      that side
    order      one cue of each side; the label is the side of the last                evidence: both cues

Everything else is drawn first and without the label: clauses, their order, their words, how many negators.
Then the label is drawn, and last the cues that make it true. So no word beside the cues tells anything of
the label, alone or together, and under `negation` and `order` no bag of words does, cues included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.data.generated.language import ENDINGS, FRAMES, GRAMMAR, JOINTS, NEGATORS, PLAIN, WORDS
from heedful.errors import one_of

Rule = Literal["single", "negation", "majority", "order"]
Label = Literal["negative", "positive"]
Bools = NDArray[np.bool_]
T = TypeVar("T")
RULES: tuple[Rule, ...] = get_args(Rule)
LABELS: tuple[Label, ...] = get_args(Label)
SHORTEST, LONGEST = 8, 40  # words, with punctuation

SIDES: dict[Label, dict[str, tuple[str, ...]]] = {
    label: {kind: tuple(words[label].split()) for kind, words in WORDS.items()} for label in LABELS
}
NEUTRALS = {kind: tuple(words["neutral"].split()) for kind, words in WORDS.items()}
SIDE_OF: dict[str, Label] = {word: side for side, kinds in SIDES.items() for words in kinds.values() for word in words}


@dataclass(frozen=True, slots=True)
class Planted:
    """A text whose words are separated by single blanks, and the positions of those that decide."""

    text: str
    label: Label
    evidence: tuple[int, ...]

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where the evidence stands in `text`: start and end (exclusive) in characters."""
        words = self.text.split(" ")
        begins = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
        return tuple((begins[i], begins[i] + len(words[i])) for i in self.evidence)


def generate(rule: Rule, n: int, seed: int) -> Iterator[Planted]:
    """`n` different texts; the same rule and seed give the same texts, and a larger `n` only adds to them.

    Take the splits of a corpus from one call: then no text is in two of them.
    """
    if rule not in RULES:
        raise one_of("rule", rule, list(RULES))
    rng = np.random.default_rng([seed, RULES.index(rule)])
    seen: set[str] = set()
    while len(seen) < n:
        planted = _one(rule, rng)
        if SHORTEST <= planted.text.count(" ") + 1 <= LONGEST and planted.text not in seen:
            seen.add(planted.text)
            yield planted


def decide(rule: Rule, evidence: Sequence[str]) -> Label:
    """The label that follows from the words of the evidence, in their order in the text."""
    sides = [SIDE_OF[word] for word in evidence if word in SIDE_OF]
    negated = rule == "negation" and len(sides) < len(evidence)
    return other(sides[-1]) if negated else sides[-1]


def other(side: Label) -> Label:
    return "negative" if side == "positive" else "positive"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the words for a cue or a neutral word, and the place of its negator if it can have one."""

    at: int
    kind: str
    negator: int | None


def _one(rule: Rule, rng: np.random.Generator) -> Planted:
    cues, neutral, plain = _counts(rule, rng)
    words, slots = _carrier(cues + neutral, plain, rule == "negation", rng)
    is_cue = rng.permutation(cues + neutral) < cues
    is_negated = _negations(rule, is_cue, rng)
    label = LABELS[rng.integers(2)]
    sides = iter(_sides(rule, label, cues, bool((is_cue & is_negated).any()), rng))
    negators = NEGATORS["before a verb" if any(slot.kind == "verb" for slot in slots) else "any"]
    evidence: list[int] = []
    for slot, cue, negated in zip(slots, is_cue, is_negated, strict=True):
        side = next(sides) if cue else None
        words[slot.at] = _pick((SIDES[side] if side else NEUTRALS)[slot.kind], rng)
        if negated and slot.negator is not None:
            words[slot.negator] = _pick(negators, rng)
            evidence += [slot.negator] if side else []
        evidence += [slot.at] if side == label or (side and rule != "majority") else []
    kept = [i for i, word in enumerate(words) if word != "<neg>"]  # where nothing is negated
    return Planted(" ".join(words[i] for i in kept), label, tuple(kept.index(i) for i in evidence))


def _counts(rule: Rule, rng: np.random.Generator) -> tuple[int, int, int]:
    """How many cues, neutral words in places where a cue could be, and clauses without such a place."""
    if rule == "majority":
        return _pick(((3, 0, 0), (3, 0, 1), (3, 1, 0), (5, 0, 0)), rng)
    cues = 2 if rule == "order" else 1
    neutral = _pick((1, 2) if rule == "negation" else (0, 1, 2), rng)
    return cues, neutral, _pick((0, 0, 1, 2), rng)


def _carrier(n_slots: int, n_plain: int, negatable: bool, rng: np.random.Generator) -> tuple[list[str], list[Slot]]:
    """The words around the slots: clauses with a slot and clauses without, in any order."""
    frames = FRAMES["any"] + FRAMES["before a verb"] + (() if negatable else FRAMES["none"])
    clauses = [_pick(frames, rng) for _ in range(n_slots)]
    clauses += [_pick(PLAIN, rng) for _ in range(n_plain)]
    words: list[str] = []
    for i in rng.permutation(len(clauses)):
        words += [*(_pick(JOINTS, rng).split() if words else ()), *_expand(clauses[i], rng)]
    words += _pick(ENDINGS, rng).split()
    slots, negator = [], None
    for at, word in enumerate(words):
        if word == "<neg>":
            negator = at
        elif word.startswith("<"):
            slots.append(Slot(at, word.strip("<>"), negator))
            negator = None
    return words, slots


def _expand(pattern: str, rng: np.random.Generator) -> list[str]:
    """Replace the symbols of the grammar until only words and slots are left."""
    words: list[str] = []
    for word in pattern.split():
        words += _expand(_pick(GRAMMAR[word], rng), rng) if word in GRAMMAR else [word]
    return words


def _negations(rule: Rule, is_cue: Bools, rng: np.random.Generator) -> Bools:
    """Which slots are negated: cues only under `negation`, there every second one.

    How many are negated there is drawn before it is drawn whether the cue is among them: the number of
    negators must not tell.
    """
    if rule != "negation":
        return ~is_cue & (rng.random(len(is_cue)) < 0.25)
    negated = is_cue & (rng.random() < 0.5)
    how_many = rng.integers(1, len(is_cue))  # at least one, and never all
    neutral = rng.permutation(np.flatnonzero(~is_cue))
    negated[neutral[: how_many - negated.sum()]] = True
    return negated


def _sides(rule: Rule, label: Label, cues: int, negated: bool, rng: np.random.Generator) -> list[Label]:
    """The sides of the cues, in their order in the text, that give the label."""
    if rule == "majority":
        few = cues // 2
        return [label if i >= few else other(label) for i in rng.permutation(cues)]
    if rule == "order":
        return [other(label), label]
    return [other(label) if negated else label]


def _pick(options: Sequence[T], rng: np.random.Generator) -> T:
    return options[int(rng.integers(len(options)))]
