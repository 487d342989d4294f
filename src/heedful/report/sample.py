"""What a sample of explained texts says of a model: how its explainers compare, and whether they find what decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.experiments.framework.certainty import settle
from heedful.experiments.framework.verdict import Grade, Verdict, Wording, border, ends, grade_at, percent
from heedful.explanation.attribution import Attribution
from heedful.explanation.explanation import Explanation
from heedful.explanation.record import Explained
from heedful.figures.figure import method_name
from heedful.measure.rank import kendall
from heedful.measure.statistics import Interval, mean_interval, proportion
from heedful.records import Example
from heedful.report.effect import ATTENTION, OMISSION

if TYPE_CHECKING:
    from heedful.models.model import Model

FOUND, MISSED = 0.8, 0.5  # of the deciding words


class SampleSize(NamedTuple):
    """The most texts of a sample, and the most words of them all together."""

    texts: int
    words: int


SAMPLE = SampleSize(100, 3000)  # for all methods
COUNTED = SampleSize(1000, 30_000)  # for leave-one-out alone, of models whose structure saves most of its work


@dataclass(frozen=True, slots=True)
class ExplainerRow:
    """A row of the table of explainers, over a sample of texts."""

    method: str
    kind: str
    signed: bool
    removal: str | None
    texts: int
    agreement: Interval | None  # mean tau of |score| with attention
    passed: int | None  # texts whose own check is met; None: it has no check
    check: str | None
    forward: int  # median passes for a text
    backward: int
    found: float | None  # share of texts whose strongest word is known to decide; None: not known


def choose_sample(examples: Mapping[int, Example], size: SampleSize = SAMPLE) -> list[int]:
    """The places of the sample."""
    return spread({place: len(example.passage) for place, example in examples.items()}, size)


def spread(lengths: Mapping[int, int], size: SampleSize = SAMPLE) -> list[int]:
    """Places evenly spread over the texts, as many as `size` allows; `lengths` in words."""
    places = [place for place in sorted(lengths) if lengths[place]]
    mean = sum(lengths[place] for place in places) / max(1, len(places))
    n = min(len(places), size.texts, max(1, int(size.words / max(1.0, mean))))
    return [places[i * len(places) // n] for i in range(n)]


def counted_size(model: Model) -> SampleSize:
    """Of the sample whose words are left out: large where that costs little."""
    from heedful.explainers.perturbation.one_word import has_structure

    return COUNTED if has_structure(model.network) else SAMPLE


def leave_words_out(
    model: Model, examples: Sequence[Example], on_done: Callable[[int], None] = lambda texts: None
) -> Explanation:
    """Attention and leave-one-out, in probabilities, word by word; nothing of a model that does not attend."""
    from heedful.explainers.run import explain

    if "attends" not in model.network.can or not examples:
        return Explanation(())
    return explain(model, examples, [ATTENTION, OMISSION], on_done=on_done, of="probability").by_word()


def hits(sample: Explanation, evidence: Sequence[Sequence[int] | None], method: str) -> list[bool]:
    """Is the strongest word of each text one of those that decide? Only texts whose words are known."""
    return [
        int(np.abs(e.attribution(method).scores["passage"]).argmax()) in known
        for e, known in zip(sample, evidence, strict=True)
        if known
    ]


def chance(sample: Explanation, evidence: Sequence[Sequence[int] | None]) -> float:
    """How often a word at random is one of those that decide."""
    shares = [len(known) / len(e.passage) for e, known in zip(sample, evidence, strict=True) if known]
    return float(np.mean(shares)) if shares else float("nan")


def evidence(sample: Explanation, known: Sequence[Sequence[int] | None]) -> Verdict | None:
    """Where the deciding words are known: how often the most attended word of a text is one of them."""
    if not any(known) or ATTENTION not in sample.methods:
        return None
    others = {
        method: found.count(True) / len(found)
        for method in sample.methods
        if method != ATTENTION and (found := hits(sample, known, method))
    }
    return evidence_verdict(hits(sample, known, ATTENTION), chance(sample, known), others)


SCALE = "share of the texts whose most attended word is one of those that decide"
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "finds the words that decide"),
    "mixed": Wording("Often", "often finds the words that decide"),
    "against": Wording("No", "looks at other words than those that decide"),
}


def evidence_verdict(hits: Sequence[bool], chance: float, others: Mapping[str, float]) -> Verdict:
    """`hits` of the most attended word for each text; `chance` is a random word's, `others` other methods'."""
    from scipy.stats import binomtest

    claim = "the most attended word is one of those that decide more often than a random word"
    question = "Does attention find the words that decide?"
    rule = f"Found in {FOUND:.0%} of the texts or more: yes; in {MISSED:.0%} or more: often; below: no."
    n, k = len(hits), int(sum(hits))
    found = proportion(k, n)
    # Texts differ in their chance, which only makes the count vary less than the binomial that is asked here.
    p = float(binomtest(k, n, chance).pvalue)
    grade = grade_at(found.value, MISSED, FOUND, rising=True)
    answer, clause = WORDINGS[grade]
    sentence = (
        f"In this corpus the deciding words are known. The most attended word is one of them in {percent(found)} of "
        f"{n:,} texts; a random word would be in {chance:.0%}.{_others(others)}{border(found, MISSED, FOUND)}"
    )
    verdict = Verdict(
        question,
        grade,
        answer,
        sentence,
        rule,
        clause,
        *ends(found),
        bars=(MISSED, FOUND),
        claim=claim,
        p=p,
        scale=SCALE,
    )
    return settle(verdict, n)


def _others(found: Mapping[str, float]) -> str:
    told = [f"{method_name(name)} {share:.0%}" for name, share in sorted(found.items(), key=lambda x: -x[1])]
    return f" The strongest word by other methods: {', '.join(told)}." if told else ""


def explainers(sample: Explanation, evidence: Sequence[Sequence[int] | None]) -> Iterator[ExplainerRow]:
    """One row for each method of the sample."""
    known = any(evidence)
    for method in sample.methods:
        found = [e.attribution(method) for e in sample]
        first = found[0]
        checks = [a.check for a in found if a.check]
        right = hits(sample, evidence, method) if known else []
        yield ExplainerRow(
            method=method,
            kind=first.kind,
            signed=first.signed,
            removal=first.removal,
            texts=len(found),
            agreement=None if method == ATTENTION else agreement(sample, method),
            passed=sum(check.ok for check in checks) if checks else None,
            check=checks[0].name if checks else None,
            forward=int(np.median([a.cost.forward for a in found])),
            backward=int(np.median([a.cost.backward for a in found])),
            found=sum(right) / len(right) if right else None,
        )


def agreement(sample: Explanation, method: str) -> Interval | None:
    """Mean tau-b of |score| with attention over the texts where it is defined."""
    width = max((len(e.passage) for e in sample), default=0)
    mask = np.arange(width) < np.array([[len(e.passage)] for e in sample])

    def padded(name: str) -> NDArray[np.float64]:
        return np.stack([_padded(e, e.attribution(name), width) for e in sample])

    tau = kendall(padded(ATTENTION), padded(method), mask).tau
    tau = tau[~np.isnan(tau)]
    if tau.size < 2:
        return None
    return Interval(float(tau.mean()), *mean_interval(tau, within=(-1.0, 1.0)))


def _padded(e: Explained, a: Attribution, width: int) -> NDArray[np.float64]:
    return np.pad(np.abs(a.scores["passage"]), (0, width - len(e.passage)))
