"""How much of a sample's skewness should the interval of a mean count with? `python checks/choose_interval.py`.

Hall's transformation with all of the skewness, some of it or none (Student's t), on shapes that
checks/coverage_of_intervals.py does not report: what is chosen here is tested there on others. Printed: for
each shape and number of texts how often 95% intervals hold the true mean, how many shapes are outside 93 to 97%, and
how far from 95% they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Draw = Callable[[np.random.Generator, int], Floats]
SIZES = (10, 20, 35, 100)
CHOICES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)


def _mixture(share: float, first: tuple[float, float], second: tuple[float, float]) -> tuple[Draw, float]:
    mean = share * first[0] / sum(first) + (1 - share) * second[0] / sum(second)
    return lambda rng, n: np.where(rng.random(n) < share, rng.beta(*first, n), rng.beta(*second, n)), mean


def _beta(a: float, b: float) -> tuple[Draw, float]:
    return lambda rng, n: rng.beta(a, b, n), a / (a + b)


SHAPES: dict[str, tuple[Draw, float]] = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    **{f"beta({a:g}, {b:g})": _beta(a, b) for a, b in ((1, 5), (0.3, 0.9), (0.7, 4), (5, 1.5))},
    "two points, 20% high": (lambda rng, n: np.where(rng.random(n) < 0.2, 0.8, 0.2), 0.32),
    "two points, 40% high": (lambda rng, n: np.where(rng.random(n) < 0.4, 1.0, 0.0), 0.4),
    "two groups, 20% high": _mixture(0.2, (10, 3), (1, 10)),
    "two groups, 50% high": _mixture(0.5, (10, 3), (2, 10)),
    "half are zero": (lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.beta(2, 3, n)), 0.2),
    "gamma(2)": (lambda rng, n: rng.gamma(2, size=n), 2.0),
    "lognormal(.5)": (lambda rng, n: rng.lognormal(0, 0.5, n), float(np.exp(0.125))),
    "t with 5 degrees": (lambda rng, n: rng.standard_t(5, size=n), 0.0),
    "Laplace": (lambda rng, n: rng.laplace(size=n), 0.0),
    "tau near 1": (lambda rng, n: 1 - 2 * rng.beta(0.8, 5, n), 1 - 2 * 0.8 / 5.8),
}


def holds(samples: Floats, true: float, skewness: float) -> Bools:
    """Whether the interval of each of the samples (repeats, n) holds the mean; see `mean_interval`."""
    n = samples.shape[1]
    mean, std = samples.mean(1), samples.std(1, ddof=1)
    third = ((samples - mean[:, None]) ** 3).mean(1)
    g = skewness * third / np.where(std > 0, std, 1.0) ** 3
    t = (mean - true) * np.sqrt(n) / np.where(std > 0, std, 1.0)
    u = t + g * t**2 / (3 * np.sqrt(n)) + g**2 * t**3 / (27 * n) + g / (6 * np.sqrt(n))
    return np.asarray(np.where(std > 0, np.abs(u) <= stats.t.ppf(0.975, n - 1), mean == true))


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--repeats", type=int, default=4000)
    repeats = given.parse_args().repeats
    print(f"coverage of 95% intervals, {repeats} samples; of the skewness {', '.join(map(str, CHOICES))}")
    for n in SIZES:
        found = {}
        for name, (draw, true) in SHAPES.items():
            samples = draw(np.random.default_rng([9, n]), repeats * n).reshape(repeats, n)
            found[name] = [float(holds(samples, true, choice).mean()) for choice in CHOICES]
            print(f"  {n:4d} texts  {name:22s} {'  '.join(f'{share:.1%}' for share in found[name])}")
        table = np.array(list(found.values()))
        outside, off = ((table < 0.93) | (table > 0.97)).sum(0), np.abs(table - 0.95).mean(0)
        print(f"  {n:4d} texts  {'outside 93 to 97%':22s} {'  '.join(f'{count:5d}' for count in outside)}")
        print(f"  {n:4d} texts  {'mean distance to 95%':22s} {'  '.join(f'{mean:5.1%}' for mean in off)}")


if __name__ == "__main__":
    main()
