"""Verdicts: what the numbers of a run say about its attention, in sentences a reader can repeat.

How they are graded stands in grades.py. A grade goes by the point estimate; where the 95% interval crosses a
bar, the sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.experiments.summary import column
from heedful.measure.statistics import Interval, bootstrap, quantile
from heedful.report.grades import (
    AGREES,
    FOUND,
    FREE,
    HARDLY,
    MISSED,
    MUCH,
    PARTLY,
    PINNED,
    Grade,
    grade_of_agreement,
    grade_of_change,
    grade_of_freedom,
    graded,
    overall_of,
)
from heedful.report.naming import method_name

Floats = NDArray[np.float64]

ATTENTION_PAIRS = ("attention/gradient_x_input", "attention/omission")
CEILING, FLOOR = "gradient_x_input/omission", "attention/random"
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question, its grade, and the sentences. `clause` completes "the attention of this model ..."."""

    question: str
    grade: Grade
    answer: str
    sentence: str
    rule: str
    clause: str
    value: float | None = None


def rounded(value: float) -> float:
    """To two digits, and never "-0.00"."""
    return round(value, 2) + 0.0


def interval(found: Interval, digits: int = 2) -> str:
    """ "0.05 (95% CI 0.04 to 0.06)"; without an interval where there is none."""
    if np.isnan(found.low) or np.isnan(found.high):
        return f"{found.value:.{digits}f}"
    return f"{found.value:.{digits}f} (95% CI {found.low:.{digits}f} to {found.high:.{digits}f})"


def percent(found: Interval) -> str:
    """ "68% (95% CI 66% to 70%)"."""
    ends = "" if np.isnan(found.low) else f" (95% CI {found.low:.0%} to {found.high:.0%})"
    return f"{found.value:.0%}{ends}"


def border(found: Interval, *bars: float) -> str:
    """A warning where the interval holds a bar: then the grade could as well be the next."""
    crossed = [bar for bar in bars if found.low < bar < found.high]
    return f" The interval holds the bar of {crossed[0]:g}, so take the grade with care." if crossed else ""


def agreement(table: pa.Table) -> Verdict:
    """tau of attention with gradients and leave-one-out, on the way from chance to the ceiling.

    The ceiling is the tau of gradients with leave-one-out, chance is that of attention with a random order:
    share = (tau - chance) / (ceiling - chance) of the means over the texts where all of them are defined,
    its interval by a bootstrap over those texts.
    """
    question = "Does attention point at the same words as other explanations?"
    rule = (
        f"From {AGREES:.0%} of the way from chance to the ceiling on: it agrees; from {PARTLY:.0%} on: partly; "
        f"below: weakly. Ceiling: how well gradients and leave-one-out agree with each other."
    )
    names = table["pair"].to_numpy(zero_copy_only=False)
    taus = [
        column(table.filter(pa.array(names == pair)), "tau") for pair in (*ATTENTION_PAIRS, CEILING, FLOOR)
    ]
    if len({len(tau) for tau in taus}) != 1 or not len(taus[0]):
        sentence = "This was asked of other pairs of explanations than those of the paper: see the figures."
        return Verdict(question, "unclear", "Not asked", sentence, rule, "was not compared as in the paper")
    stacked = np.stack(taus)  # (4, texts)
    defined = stacked[:, ~np.isnan(stacked).any(0)]
    if defined.shape[1] < 2:
        sentence = "Agreement is undefined: the attention gives all words of a text the same weight."
        return Verdict(question, "unclear", "Undefined", sentence, rule, "is the same for every word")
    ceiling, floor = (float(tau) for tau in defined[2:].mean(1))
    numbers = (
        f"Kendall's τ, mean over {defined.shape[1]:,} texts: {_mean(defined[0])} with gradient × input, "
        f"{_mean(defined[1])} with leave-one-out; a random order gets {rounded(floor):.2f}, and the two alternatives "
        f"agree with each other at {rounded(ceiling):.2f}."
    )
    grade = grade_of_agreement(defined.mean(1).tolist())
    if grade == "unclear":
        sentence = f"The other explanations hardly agree with each other: nothing to compare with. {numbers}"
        clause = "cannot be compared, because the other explanations disagree with each other"
        return Verdict(question, "unclear", "Cannot be told", sentence, rule, clause)
    found = _share(defined)
    answer = {"for": "Yes", "mixed": "Partly", "against": "Only weakly"}[grade]
    if found.high <= 0 or (found.value < PARTLY and found.low <= 0):
        answer, clause = "No", "agrees with other explanations no better than chance"
    else:
        clause = {
            "for": "agrees with other explanations about as well as they agree with each other",
            "mixed": "agrees only partly with other explanations",
            "against": "agrees only weakly with other explanations",
        }[grade]
    reached = (
        f"Attention gets {percent(found)} of the way from a random order to the agreement that other explanations "
        "reach with each other."
    )
    if found.value >= 1:
        reached = "Attention agrees with other explanations at least as well as they agree with each other."
    sentence = f"{reached} {numbers}{border(found, PARTLY, AGREES)}"
    return Verdict(question, grade, answer, sentence, rule, clause, found.value)


def _mean(values: Floats) -> str:
    low, high = bootstrap(values, resamples=RESAMPLES)
    return interval(Interval(float(values.mean()), low, high))


def _share(taus: Floats) -> Interval:
    """(4, texts) -> the share of the way, with the interval of a bootstrap over texts."""

    def share(means: Floats) -> Floats:
        shares: Floats = (means[:2].mean(0) - means[3]) / (means[2] - means[3])
        return shares

    rng, n = np.random.default_rng(0), taus.shape[1]
    # how often each text is drawn, as weights: (RESAMPLES, texts) in pieces that fit into memory
    drawn = [taus @ rng.multinomial(n, np.full(n, 1 / n)) / n for _ in range(RESAMPLES)]
    low, high = np.quantile(share(np.array(drawn).T), [0.025, 0.975])
    return Interval(float(share(taus.mean(1, keepdims=True))[0]), float(low), float(high))


def permutation(table: pa.Table) -> Verdict:
    """The median over texts of the median TVD under permuted attention, with its order-statistic interval."""
    question = "Do the attention weights decide the prediction?"
    rule = (
        f"Median change of the output below {HARDLY:g}: hardly; below {MUCH:g}: somewhat; from there on: yes. "
        "Change: total variation distance, which is the change of the probability where there are two labels."
    )
    values = column(table, "median")
    defined = values[~np.isnan(values)]
    if not defined.size:
        return Verdict(question, "unclear", "Undefined", "No text has words to shuffle.", rule, "is empty")
    found = quantile(defined)
    grade = grade_of_change(found.value)
    answer = {"for": "Yes", "mixed": "Somewhat", "against": "Hardly"}[grade]
    meaning = {
        "for": "on this model the prediction depends on which word gets which weight",
        "mixed": "on this model the weights matter, but they do not decide alone",
        "against": "on this model the attention weights are not what decides",
    }[grade]
    clause = {
        "for": "decides the prediction to a large part",
        "mixed": "moves the prediction somewhat",
        "against": "hardly moves the prediction",
    }[grade]
    # A change of more than 1/2 always turns the answer of a model with two labels.
    turned = float((defined > 0.5).mean())
    more = (
        f" For {turned:.0%} of the texts most shuffles change it by more than 0.5." if turned >= 0.005 else ""
    )
    digits = 3 if found.value < 0.1 else 2
    sentence = (
        f"Shuffling the attention weights over the words of a text changes the prediction by "
        f"{interval(found, digits)} in the median of {defined.size:,} texts: {meaning}.{more}"
        f"{border(found, HARDLY, MUCH)}"
    )
    return Verdict(question, grade, answer, sentence, rule, clause, found.value)


def adversarial(table: pa.Table, epsilon: float | None = None) -> Verdict:
    """The mean of jsd / ceiling: how much of the possible distance is free while the prediction stays."""
    question = "Is there quite another attention with the same prediction?"
    rule = (
        f"From {FREE:.0%} of the greatest possible distance on: yes; from {PINNED:.0%} on: partly; below: no. "
        "Distance: Jensen-Shannon divergence from the model's own attention."
    )
    jsd, ceiling = column(table, "jsd"), column(table, "ceiling")
    defined = ~np.isnan(jsd) & (ceiling > 0)
    if not defined.any():
        sentence = "No text has two words or more: there is no other attention."
        return Verdict(question, "unclear", "Undefined", sentence, rule, "has no alternative")
    shares = jsd[defined] / ceiling[defined]
    low, high = bootstrap(shares, resamples=RESAMPLES)
    found = Interval(float(shares.mean()), low, high)
    exact = bool((column(table, "exact")[defined] > 0).all())
    grade = grade_of_freedom(found.value, exact)
    answer = {"for": "No", "mixed": "Partly", "against": "Yes", "unclear": "None was found"}[grade]
    clause = {
        "for": "cannot be replaced without changing the prediction",
        "mixed": "can be partly replaced without changing the prediction",
        "against": "can be replaced by a very different one without changing the prediction",
        "unclear": "was not found to be replaceable, but the search proves nothing",
    }[grade]
    change = "hardly" if epsilon is None else f"by at most {epsilon:g}"
    within = f"while the prediction changes {change}"
    least = "" if exact else "at least "
    above = float((jsd[defined] > 0.5).mean())
    sentence = (
        f"Attention can be moved {least}{percent(found)} of the way to the most different attention there is, "
        f"{within} (mean of {int(defined.sum()):,} texts). In {above:.0%} of the texts the distance is above 0.5, "
        f"where ln 2 = 0.69 is the most possible.{border(found, PINNED, FREE)}"
    )
    return Verdict(question, grade, answer, sentence, rule, clause, found.value)


def evidence(hits: Sequence[bool], chance: float, others: Mapping[str, float] | None = None) -> Verdict:
    """Where the deciding words are known: how often the most attended word of a text is one of them.

    `hits` says it for each text, `chance` is what a random word gets, `others` what other methods get.
    """
    from scipy.stats import binomtest

    question = "Does attention find the words that decide?"
    rule = f"Found in {FOUND:.0%} of the texts or more: yes; in {MISSED:.0%} or more: often; below: no."
    n, k = len(hits), int(sum(hits))
    if not n:
        return Verdict(question, "unclear", "Not known", "No deciding words are known.", rule, "is untested")
    ends = binomtest(k, n).proportion_ci(method="wilson")
    found = Interval(k / n, float(ends.low), float(ends.high))
    grade = graded(found.value, MISSED, FOUND, rising=True)
    answer = {"for": "Yes", "mixed": "Often", "against": "No"}[grade]
    clause = {
        "for": "finds the words that decide",
        "mixed": "often finds the words that decide",
        "against": "looks at other words than those that decide",
    }[grade]
    sentence = (
        f"In this corpus the deciding words are known. The most attended word is one of them in {percent(found)} of "
        f"{n} texts; a random word would be in {chance:.0%}.{_others(others or {})}{border(found, MISSED, FOUND)}"
    )
    return Verdict(question, grade, answer, sentence, rule, clause, found.value)


def _others(found: Mapping[str, float]) -> str:
    told = [f"{method_name(name)} {share:.0%}" for name, share in sorted(found.items(), key=lambda x: -x[1])]
    return f" The strongest word by other methods: {', '.join(told)}." if told else ""


HEADLINES = {
    "for": "The attention of this model can be believed, as far as these tests go",
    "against": "Do not take the attention of this model for the reason of its predictions",
    "mixed": "Read the attention of this model with caution",
    "unclear": "These tests do not tell whether the attention of this model can be believed",
}


def overall(verdicts: Sequence[Verdict]) -> Grade:
    """By HEADLINE_RULE."""
    return overall_of([verdict.grade for verdict in verdicts])


def headline(verdicts: Sequence[Verdict]) -> str:
    """One sentence: the grade, then what speaks for the attention, and what does not."""
    because = reasons(verdicts)
    return HEADLINES[overall(verdicts)] + (f": it {because}." if because else ".")


def reasons(verdicts: Sequence[Verdict]) -> str:
    """What completes "it ...": "hardly moves the prediction and ..."; empty where nothing is known."""
    grade = overall(verdicts)
    good, middle, bad = (
        [v.clause for v in verdicts if v.grade == wanted] for wanted in ("for", "mixed", "against")
    )
    halves = {"for": [good + middle], "against": [bad + middle]}.get(
        grade, [good, middle + bad] if good else [middle, bad]
    )
    return ", but ".join(listed(half) for half in halves if half)


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
