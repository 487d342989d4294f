"""The seed floor: what chance alone does to attention (seeds.py), for figures of other experiments.

A run of which `seeds` was asked has it in `Trial.beside`; figures of `adversarial`, `correlation` and `imitation` then
draw it, and say how far their own number is from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heedful.experiments.description import Trial, number_at


@dataclass(frozen=True, slots=True)
class SeedFloor:
    """Means over texts and seeds of what lies between the model and one with another seed."""

    seeds: int
    jsd: float  # of the attentions
    tau: float | None  # of the attentions; None where it is undefined
    tvd: float | None  # of the outputs
    by_seed: Mapping[str, Mapping[str, Any]]  # the same means, seed by seed

    def line(self, value: float | None) -> dict[str, float]:
        """A named line for a figure; none where the value is undefined."""
        return {} if value is None else {"between seeds": value}

    def sentence(self, jsd: float) -> str:
        """A mean JSD against the floor."""
        return (
            f" For comparison: the attention of the same model trained with another seed is {self.jsd:.3f} away "
            f"(mean of {self.seeds} seeds); this is {jsd / self.jsd:.1f} times as far."
            if self.jsd > 0
            else ""
        )


def seed_floor(trial: Trial) -> SeedFloor | None:
    """Of the same run, where `seeds` was asked of it."""
    summary = trial.beside.get("seeds")
    jsd = number_at(summary, "overall.mean")
    if summary is None or jsd is None:
        return None
    tau, tvd = (number_at(summary, f"overall.{name}.mean") for name in ("tau", "tvd"))
    return SeedFloor(int(summary["overall"]["runs"]), jsd, tau, tvd, summary["by_seed"])
