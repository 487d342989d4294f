"""The verdict of correlation: how far attention gets from chance to the agreement of other explanations.

That agreement is a reference and no ceiling: attention can agree better with both than they do with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.experiments.description import Reason, Trial, places_by
from heedful.experiments.verdict import (
    Grade,
    Verdict,
    Wording,
    border,
    ends,
    grade_at,
    interval,
    percent,
    two_digits,
)
from heedful.measure.chance import tau_floor
from heedful.measure.columns import Floats, column, rows_of
from heedful.measure.paired import sign_flip_test
from heedful.measure.statistics import Interval, mean_interval, resampled_means

QUESTION = "Does attention agree with other measures of what mattered?"
ATTENTION_PAIRS = ("attention/gradient_x_input", "attention/omission")
REFERENCE = "gradient_x_input/omission"
AGREES, PARTLY = 0.8, 0.5  # of the way from chance to the reference
APART = 0.2  # tau between chance and reference, or there is nothing to measure against
RESAMPLES = 1000
RULE = (
    f"From {AGREES:.0%} of the way from chance to the reference on: it agrees; from {PARTLY:.0%} on: partly; "
    f"below: weakly. Reference: how well gradients and leave-one-out agree with each other."
)
CLAIM = "attention agrees with other explanations better than a random order"
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "agrees with other explanations about as well as they agree with each other"),
    "mixed": Wording("Partly", "agrees only partly with other explanations"),
    "against": Wording("Only weakly", "agrees only weakly with other explanations"),
}
NO_BETTER = Wording("No", "agrees with other explanations no better than chance")


def verdict(trial: Trial) -> Verdict:
    """tau of attention with gradients and leave-one-out, on the way from chance to the reference.

    The reference is the tau of gradients with leave-one-out; chance is that of a random order, by its law and not by a
    draw (measure/chance.py): it is 0. share = (tau - chance) / (reference - chance) of the means over the texts where
    all of them are defined, its interval by a bootstrap over those texts. The claim: by sign flips.
    """
    rows = [rows_of(trial.table, "pair", pair) for pair in (*ATTENTION_PAIRS, REFERENCE)]
    taus = [column(one, "tau") for one in rows]
    if len({len(tau) for tau in taus}) != 1 or not len(taus[0]):
        sentence = "This was asked of other pairs of explanations than those of the paper: see the figures."
        return unclear("Not asked", sentence, "was not compared as in the paper")
    stacked = np.stack([*taus, np.zeros(len(taus[0]))])  # (4, texts): the last is chance
    known = ~np.isnan(stacked).any(0)
    defined, floor = stacked[:, known], tau_floor(column(rows[0], "n_words")[known])
    if defined.shape[1] < 2:
        sentence = "Agreement is undefined: the attention gives all words of a text the same weight."
        return unclear("Undefined", sentence, "is the same for every word")
    reference = float(defined[2].mean())
    numbers = (
        f"Kendall's τ, mean over {defined.shape[1]:,} texts: {_mean(defined[0])} with gradient × input, "
        f"{_mean(defined[1])} with leave-one-out; a random order gets 0 ± {1.96 * floor.std:.2f} (95%, by its law), "
        f"and the two alternatives agree with each other at {two_digits(reference):.2f}."
    )
    grade = grade_of_agreement(defined.mean(1))
    if grade == "unclear":
        sentence = f"The other explanations hardly agree with each other: nothing to compare with. {numbers}"
        clause = "cannot be compared, because the other explanations disagree with each other"
        return unclear("Cannot be told", sentence, clause)
    found, p = _share(defined), sign_flip_test(defined[:2].mean(0))
    no_better = found.high <= 0 or (found.value < PARTLY and found.low <= 0)
    answer, clause = NO_BETTER if no_better else WORDINGS[grade]
    reached = (
        f"Attention gets {percent(found)} of the way from a random order to the agreement that other explanations "
        "reach with each other."
    )
    if found.value >= 1:
        reached = "Attention agrees with other explanations at least as well as they agree with each other."
    sentence = f"{reached} {numbers}{border(found, PARTLY, AGREES)}"
    return Verdict(
        QUESTION, grade, answer, sentence, RULE, clause, *ends(found), bars=(PARTLY, AGREES), claim=CLAIM, p=p
    )


def unclear(answer: str, sentence: str, clause: str) -> Verdict:
    return Verdict(QUESTION, "unclear", answer, sentence, RULE, clause, bars=(PARTLY, AGREES))


def grade_of_agreement(means: Floats) -> Grade:
    """Of the mean taus with gradients and with leave-one-out, the reference and chance, over the same texts."""
    gradients, omission, reference, floor = means.tolist()
    if reference - floor < APART:
        return "unclear"
    return grade_at(((gradients + omission) / 2 - floor) / (reference - floor), PARTLY, AGREES, rising=True)


def _mean(values: Floats) -> str:
    low, high = mean_interval(values, resamples=RESAMPLES, within=(-1.0, 1.0))
    return interval(Interval(float(values.mean()), low, high))


def _share(taus: Floats) -> Interval:
    """(4, texts) -> the share of the way, with the interval of a bootstrap over texts.

    Draws in which the others do not agree with each other at all have no share and are left out.
    """

    def share(means: Floats) -> Floats:
        shares: Floats = (means[:2].mean(0) - means[3]) / (means[2] - means[3])
        return shares

    drawn = resampled_means(taus, RESAMPLES)
    low, high = np.quantile(share(drawn[:, drawn[2] > drawn[3]]), [0.025, 0.975])
    return Interval(float(share(taus.mean(1, keepdims=True))[0]), float(low), float(high))


def reasons(trial: Trial) -> Iterator[Reason]:
    """Where the order of the gradients is that of the attention, and where it is not."""
    rows = rows_of(trial.table, "pair", ATTENTION_PAIRS[0])
    tau = column(rows, "tau")
    with_gradients = "agreement of the attention's order of words with that of the gradients"
    yield Reason("Attention agrees", f"The highest {with_gradients}.", places_by(rows, -tau))
    both = ("attention", "gradient_x_input")
    yield Reason("Attention disagrees", f"The lowest {with_gradients}.", places_by(rows, tau), both)
