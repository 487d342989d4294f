"""How often do the intervals hold the true value? Simulation, for shapes that measures of texts have.

    python checks/coverage_of_intervals.py [--repeats 4000] [--sizes 20 100] [--only exponential ...] [--json]
    python checks/coverage_of_intervals.py --run RUN ...    of the measures that finished runs have

For each kind of interval that heedful prints and each number of texts, the share of samples whose 95% interval holds
the true value: means (`mean_interval`, what every summary prints), means of tau, paired differences, shares
(`proportion`), medians (`quantile`), and means over training runs that differ and share their texts (`over_runs`).
With --run, samples are drawn from the rows that a run's experiments have stored, so the shapes are real ones: the true
value is the mean of all its texts. Last, how often a method that ranks words at random is called better than random
(`paired`, at the 5% level).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.experiments import EXPERIMENTS
from heedful.measure.columns import frame
from heedful.measure.levels import over_runs
from heedful.measure.paired import paired
from heedful.measure.rank import kendall
from heedful.measure.statistics import Interval, Range, mean_interval, proportion, quantile, summarise
from heedful.store.run import Run

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator, int], Floats]
SIZES = (20, 100, 1000)
RESAMPLES = 400


def _two_groups(rng: Generator, n: int) -> Floats:
    """Most texts about .1, three in ten about .7."""
    return np.where(rng.random(n) < 0.3, rng.beta(14, 6, n), rng.beta(2, 18, n))


def _two_points(share: float) -> Draw:
    """.7 for this share of the texts, .1 for the others."""
    return lambda rng, n: np.where(rng.random(n) < share, 0.7, 0.1)


SHAPES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "beta(2, 2)": (lambda rng, n: rng.beta(2, 2, n), 0.5),
    "beta(2, 8), skewed": (lambda rng, n: rng.beta(2, 8, n), 0.2),
    "lognormal, heavy tail": (lambda rng, n: rng.lognormal(0.0, 1.0, n), float(np.exp(0.5))),
    "beta(.5, 2), very skewed": (lambda rng, n: rng.beta(0.5, 2, n), 0.2),
    "beta(.5, .5), both ends": (lambda rng, n: rng.beta(0.5, 0.5, n), 0.5),
    "two groups, 30% about .7": (_two_groups, 0.3 * 0.7 + 0.7 * 0.1),
    "two points, 30% high": (_two_points(0.3), 0.28),
}
# Beyond what so few texts can tell: 12% of the samples of 20 hold no high value at all.
HARD: dict[str, tuple[Draw, float]] = {
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "two points, 10% high": (_two_points(0.1), 0.16),
}


def share_holding(interval: Callable[[Generator], Range], true: float, repeats: int, *, seed: int = 0) -> Interval:
    """The share of samples whose interval holds the true value, with the interval of that share (Wilson).

    `interval` draws a sample and gives the ends of its interval. Each sample has a generator of its own, so a rate does
    not depend on how many are drawn before it.
    """
    ends = (interval(np.random.default_rng([seed, repeat])) for repeat in range(repeats))
    return proportion(sum(low <= true <= high for low, high in ends), repeats)


def half_held(generator: Generator) -> Range:
    """For a check of the counting itself: [0, u] with u uniform holds .5 half of the time."""
    return 0.0, float(generator.random())


def a_quarter(generator: Generator) -> bool:
    return bool(generator.random() < 0.25)


def false_positive_rate(claim: Callable[[Generator], bool], seeds: int = 200, *, seed: int = 0) -> Interval:
    """How often something is claimed of a sample in which there is nothing. `claim` draws it and decides."""
    return proportion(sum(claim(np.random.default_rng([seed, at])) for at in range(seeds)), seeds)


def coverage(draw: Draw, true: float, n: int, repeats: int, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """The share of samples of n texts whose interval holds the true mean."""
    return share_holding(lambda rng: mean_interval(draw(rng, n), resamples=resamples), true, repeats, seed=seed).value


@lru_cache(maxsize=4)
def taus(agreement: float) -> Floats:
    """tau of many texts of 4 to 40 words between two rankings that agree so much: what samples are drawn from."""
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 4000, 40))
    words = np.arange(40) < rng.integers(4, 41, (4000, 1))  # (texts, words)
    return kendall(one, agreement * one + np.sqrt(1 - agreement**2) * other, words).tau


def coverage_of_tau(agreement: float, n: int, repeats: int) -> float:
    """The same for the mean of tau, whose interval stays inside [-1, 1]."""
    pool = taus(agreement)
    return share_holding(
        lambda rng: mean_interval(rng.choice(pool, n), resamples=RESAMPLES, within=(-1.0, 1.0)),
        float(pool.mean()),
        repeats,
    ).value


def coverage_of_difference(n: int, repeats: int) -> float:
    """Of two measures in [0, 1] that share what makes a text hard; the true difference is .3 - .2."""

    def ends(rng: Generator) -> Range:
        hard = rng.beta(2, 2, n)
        found = paired(hard * rng.beta(6, 4, n), hard * rng.beta(4, 6, n), resamples=1)
        return found.low, found.high

    return share_holding(ends, 0.5 * 0.6 - 0.5 * 0.4, repeats).value


def coverage_of_share(share: float, n: int, repeats: int) -> float:
    return share_holding(lambda rng: _ends(proportion(int(rng.binomial(n, share)), n)), share, repeats).value


def coverage_of_median(n: int, repeats: int) -> float:
    true = float(np.log(2))  # of the exponential distribution
    return share_holding(lambda rng: _ends(quantile(rng.exponential(size=n))), true, repeats).value


def coverage_over_runs(runs: int, between: float, texts: int, repeats: int, seed: int = 0) -> float:
    """The same for runs whose true means differ by `between` (std), on texts they share (std 1, and 1 of noise)."""

    def ends(rng: Generator) -> Range:
        values = between * rng.normal(size=(runs, 1)) + rng.normal(size=texts) + rng.normal(size=(runs, texts))
        found = over_runs(values, resamples=RESAMPLES)
        return found.low, found.high

    return share_holding(ends, 0.0, repeats, seed=seed).value


def better_than_random(n: int, seeds: int) -> Interval:
    """How often the tau of one random ranking is called higher than that of another, over n texts of 4 to 40 words."""
    pool = taus(0.0)

    def claim(rng: Generator) -> bool:
        found = paired(rng.choice(pool, n), rng.choice(pool, n), resamples=999)
        return found.difference > 0 and found.p <= 0.05

    return false_positive_rate(claim, seeds)


def real_measures(path: Path) -> Iterator[tuple[str, Floats, tuple[float, float]]]:
    """Every measure of a run's experiments: its name, its values, and what it can be."""
    run = Run(path)
    for name, experiment in EXPERIMENTS.items():
        if run.results.summary(name) is None:
            continue
        table = run.results.rows(name)
        for measure in experiment.measures:
            values = frame(table, measure.column, experiment.by, measure.group).value
            values = values[~np.isnan(values)]
            if len(values) > 1 and values.std() > 0:
                possible = experiment.columns[measure.column].possible
                yield f"{path.name.rsplit('-', 1)[0]}: {measure.key}", values, possible


def coverage_of_rows(values: Floats, possible: Range, n: int, repeats: int) -> float:
    """Yes and no are summarised as a share, as the experiments do."""
    share = bool(np.isin(values, (0.0, 1.0)).all())

    def ends(rng: Generator) -> Range:
        drawn = rng.choice(values, n)
        found = summarise(drawn, resamples=RESAMPLES, within=possible, yes_or_no=share)
        return found.low, found.high

    return share_holding(ends, float(values.mean()), repeats).value


def _ends(found: Interval) -> Range:
    return found.low, found.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of texts")
    parser.add_argument("--only", nargs="+", default=[], help="kinds whose name has one of these")
    parser.add_argument("--json", action="store_true", help="print {kind: {texts: share}} and nothing else")
    parser.add_argument("--run", type=Path, nargs="+", help="of the rows of these runs")
    asked = parser.parse_args()
    repeats, sizes = asked.repeats, tuple(asked.sizes)
    kinds: dict[str, Callable[[int, int], float]] = {
        name: partial(coverage_of_rows, values, possible)
        for run in asked.run or ()
        for name, values, possible in real_measures(run)
    }
    if not asked.run:
        kinds = made_up()
    if asked.json and not asked.run:
        kinds["a random ranking is called better"] = lambda n, seeds: better_than_random(n, seeds).value
        kinds["an interval that holds half"] = lambda n, seeds: share_holding(half_held, 0.5, seeds).value
        kinds["a claim of a quarter"] = lambda n, seeds: false_positive_rate(a_quarter, seeds).value
    if asked.only:
        kinds = {name: of for name, of in kinds.items() if any(part in name for part in asked.only)}
    if asked.json:
        print(json.dumps({name: {n: of(n, repeats) for n in sizes} for name, of in kinds.items()}))
        return
    print(f"coverage of 95% intervals, {repeats} samples each; texts: {', '.join(map(str, sizes))}")
    width = max(map(len, kinds), default=0)
    for name, of in kinds.items():
        print(f"  {name:{width}s} {'  '.join(f'{of(n, repeats):.1%}' for n in sizes)}", flush=True)
    if asked.only or asked.run:
        return
    print("a random ranking is called better than random (two-sided test at 5%, and higher), 200 seeds")
    print("  " + "  ".join(f"{n} texts: {better_than_random(n, 200).value:.1%}" for n in sizes))


def made_up() -> dict[str, Callable[[int, int], float]]:
    """Every kind of interval, for shapes that are written down here."""
    kinds: dict[str, Callable[[int, int], float]] = {
        f"mean, {name}": partial(coverage, *shape) for name, shape in (SHAPES | HARD).items()
    }
    for agreement in (0.0, 0.6, 0.95):
        kinds[f"mean of tau, about {taus(agreement).mean():.2f}"] = partial(coverage_of_tau, agreement)
    kinds["paired difference"] = coverage_of_difference
    kinds |= {f"share, {share:.0%}": partial(coverage_of_share, share) for share in (0.1, 0.3, 0.5)}
    kinds["median, exponential"] = coverage_of_median
    for runs in (2, 3, 5, 10):
        for between in (0.5, 0.1, 0.0):
            kinds[f"{runs} runs, std {between:g} between"] = partial(coverage_over_runs, runs, between)
    return kinds


if __name__ == "__main__":
    main()
