"""Do intervals and tests keep what they promise? Counted on samples whose truth is known.

A 95% interval should hold the true value in 95% of the samples; a claim at the 5% level should be made of nothing in at
most 5% of them. Each sample has a generator of its own, so a rate does not depend on how many are drawn before it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heedful.measure.statistics import Interval, Range, proportion


def coverage(
    interval: Callable[[np.random.Generator], Range], true: float, repeats: int, *, seed: int = 0
) -> Interval:
    """The share of samples whose interval holds the true value, with the interval of that share (Wilson).

    `interval` draws a sample and gives the ends of its interval.
    """
    ends = (interval(np.random.default_rng([seed, repeat])) for repeat in range(repeats))
    return proportion(sum(low <= true <= high for low, high in ends), repeats)


def false_positive_rate(
    claim: Callable[[np.random.Generator], bool], seeds: int = 200, *, seed: int = 0
) -> Interval:
    """How often something is claimed of a sample in which there is nothing. `claim` draws it and decides."""
    return proportion(sum(claim(np.random.default_rng([seed, at])) for at in range(seeds)), seeds)
