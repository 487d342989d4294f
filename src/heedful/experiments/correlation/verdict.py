"""The verdict of correlation: how far attention gets from chance to the agreement of other explanations.

That agreement is a reference and no ceiling: attention can agree better with both than they do with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from heedful.experiments.framework.description import Reason, Result, places_by
from heedful.experiments.framework.verdict import (
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
from heedful.measure.agreement import tau_floor
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
    f"below: weakly. Reference: how well gradients and leave-one-out agree with each other. Two ways count alike: the "
    f"order of all words (Kendall's τ), and whether the strongest word is the same."
)
CLAIM = "attention agrees with other explanations better than a random order"
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "agrees with other explanations about as well as they agree with each other"),
    "mixed": Wording("Partly", "agrees with other explanations only in part"),
    "against": Wording("Only weakly", "agrees only weakly with other explanations"),
}
NO_BETTER = Wording("No", "agrees with other explanations no better than chance")


def verdict(trial: Result) -> Verdict:
    """How far attention gets, with gradients and leave-one-out, on the way from chance to the reference.

    share = (agreement - chance) / (reference - chance), of the means over the texts where all is defined; the interval
    by a bootstrap over those texts. Agreement is measured twice, and the mean of both shares is graded: Kendall's tau,
    which gives every word the same say (a random order gets 0, by its law and not by a draw: measure/agreement.py), and
    whether the strongest word is the same (a random order: 1 / T). The reference is that of gradients with
    leave-one-out; a measure by which they hardly agree with each other does not count. The claim: tau, by sign flips.
    """
    rows = [rows_of(trial.table, "pair", pair) for pair in (*ATTENTION_PAIRS, REFERENCE)]
    taus = [column(one, "tau") for one in rows]
    if len({len(tau) for tau in taus}) != 1 or not len(taus[0]):
        sentence = "These are not the pairs of explanations of the paper: see the figures."
        return unclear("Not asked", sentence, "was not compared as in the paper")
    stacked = np.stack([*taus, np.zeros(len(taus[0]))])  # (4, texts): the last is chance
    known = ~np.isnan(stacked).any(0)
    defined, floor = stacked[:, known], tau_floor(column(rows[0], "n_words")[known])
    if defined.shape[1] < 2:
        sentence = "Agreement is undefined: the attention gives all words of a text the same weight."
        return unclear("Undefined", sentence, "is the same for every word")
    first = _same_first(rows)[:, known]  # (4, texts)
    reference = float(defined[2].mean())
    numbers = (
        f"Kendall's τ of all words, mean over {defined.shape[1]:,} texts: {_mean(defined[0])} with "
        f"gradient × input, {_mean(defined[1])} with leave-one-out; a random order gets 0 ± {1.96 * floor.std:.2f} "
        f"(95%, by its law), and the two alternatives agree with each other at {two_digits(reference):.2f}."
        f"{_told_first(first)}"
    )
    measures = [one for one in (defined, first) if one[2].mean() - one[3].mean() >= APART]
    if not measures:
        sentence = (
            f"The other explanations hardly agree with each other, so there is nothing to compare with. {numbers}"
        )
        clause = "cannot be compared, because the other explanations disagree with each other"
        return unclear("Undecided", sentence, clause)
    found, p = share_of_the_way(*measures), sign_flip_test(defined[:2].mean(0))
    grade = grade_at(found.value, PARTLY, AGREES, rising=True)
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


def _same_first(rows: Sequence[pa.Table]) -> Floats:
    """Whether the strongest word is the same, of both pairs with attention, the reference, and by chance."""
    return np.stack([*(column(one, "same_first") for one in rows), column(rows[0], "same_first_expected")])


def _told_first(first: Floats) -> str:
    gradients, omission, both, chance = first.mean(1).tolist()
    return (
        f" The most attended word is also the strongest by leave-one-out in {omission:.0%} of the texts and by "
        f"gradient × input in {gradients:.0%}; these two name the same word in {both:.0%}, a random order would in "
        f"{chance:.0%}."
    )


def unclear(answer: str, sentence: str, clause: str) -> Verdict:
    return Verdict(QUESTION, "unclear", answer, sentence, RULE, clause, bars=(PARTLY, AGREES))


def _mean(values: Floats) -> str:
    low, high = mean_interval(values, resamples=RESAMPLES, within=(-1.0, 1.0))
    return interval(Interval(float(values.mean()), low, high))


def share_of_the_way(*measures: Floats) -> Interval:
    """(4, texts) of each measure -> the mean share of the way, with the interval of a bootstrap over texts.

    Draws in which the others do not agree with each other at all have no share and are left out.
    """

    def share(means: Floats) -> Floats:
        shares: Floats = (means[:, :2].mean(1) - means[:, 3]) / (means[:, 2] - means[:, 3])
        return np.asarray(shares.mean(0))

    drawn = resampled_means(np.concatenate(measures), RESAMPLES).reshape(len(measures), 4, -1)
    known = (drawn[:, 2] > drawn[:, 3]).all(0)
    low, high = np.quantile(share(drawn[..., known]), [0.025, 0.975])
    return Interval(float(share(np.stack(measures).mean(2, keepdims=True))[0]), float(low), float(high))


def reasons(trial: Result) -> Iterator[Reason]:
    """Where attention and leave-one-out put the same word first, and where they do not; then by their tau."""
    rows = rows_of(trial.table, "pair", ATTENTION_PAIRS[1])
    tau, same = column(rows, "tau"), column(rows, "same_first")
    both = ("attention", "omission")
    yield Reason(
        "Attention agrees",
        "The most attended word is also the one whose deletion matters most, and the other words come in much the "
        "same order.",
        places_by(rows, -same, -tau),
    )
    yield Reason(
        "Attention disagrees",
        "It looks most at one word, and deleting another one matters most.",
        places_by(rows, same, tau),
        both,
    )
