"""How often do the intervals hold the true mean? Simulation, for shapes that measures of texts have.

    python benchmarks/coverage_of_means.py [--repeats 4000]

For each shape and number of texts the share of samples whose 95% interval (`mean_interval`, what every summary prints)
holds the true mean; and the same for `over_runs`, with few training runs that differ and share their texts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from heedful.measure.statistics import mean_interval, over_runs

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
SIZES = (20, 100, 1000)


def _two_groups(rng: np.random.Generator, n: int) -> Floats:
    """Most texts about .1, three in ten about .7."""
    return np.where(rng.random(n) < 0.3, rng.beta(14, 6, n), rng.beta(2, 18, n))


def _two_points(share: float) -> Draw:
    """.7 for this share of the texts, .1 for the others."""
    return lambda rng, n: np.where(rng.random(n) < share, 0.7, 0.1)


SHAPES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "beta(2, 2)": (lambda rng, n: rng.beta(2, 2, n), 0.5),
    "beta(2, 8), skewed": (lambda rng, n: rng.beta(2, 8, n), 0.2),
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


def coverage(draw: Draw, true: float, n: int, repeats: int, seed: int = 0, resamples: int = 400) -> float:
    """The share of samples of n texts whose interval holds the true mean."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(repeats):
        low, high = mean_interval(draw(rng, n), resamples=resamples)
        held += low <= true <= high
    return held / repeats


def coverage_over_runs(runs: int, texts: int, between: float, repeats: int, seed: int = 0) -> float:
    """The same for runs whose true means differ by `between` (std), on texts they share (std 1, and 1 of noise)."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(repeats):
        values = (
            between * rng.normal(size=(runs, 1)) + rng.normal(size=texts) + rng.normal(size=(runs, texts))
        )
        found = over_runs(values, resamples=400)
        held += found.low <= 0 <= found.high
    return held / repeats


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=4000)
    repeats = parser.parse_args().repeats
    print(f"coverage of 95% intervals, {repeats} samples each; texts: {', '.join(map(str, SIZES))}")
    for name, (draw, true) in (SHAPES | HARD).items():
        shares = [coverage(draw, true, n, repeats) for n in SIZES]
        print(f"  {name:26s} {'  '.join(f'{share:.1%}' for share in shares)}", flush=True)
    print("over runs and texts (runs x texts, std between runs against 1 between texts)")
    for runs, texts, between in (
        (3, 100, 0.5),
        (5, 100, 0.5),
        (5, 1000, 0.1),
        (5, 1000, 0.0),
        (10, 200, 0.1),
    ):
        share = coverage_over_runs(runs, texts, between, repeats)
        print(f"  {runs} x {texts}, {between}: {share:.1%}", flush=True)


if __name__ == "__main__":
    main()
