"""Splits that a source does not give are drawn, stratified by label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def draw(labels: Sequence[str], fraction: float, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """(places drawn, places left), the same fraction of every label, both in the order of the source.

    The drawn rows are `fraction` of all, rounded, and at least one; the only row of a label stays.
    """
    by_label: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        by_label.setdefault(label, []).append(i)
    many = sorted(label for label, places in by_label.items() if len(places) > 1)
    counts = {label: int(fraction * len(by_label[label])) for label in many}
    remainder = {label: fraction * len(by_label[label]) - counts[label] for label in many}
    short = max(round(fraction * len(labels)), 1) - sum(counts.values())
    for label in sorted(many, key=lambda label: -remainder[label])[: max(short, 0)]:
        counts[label] += 1
    drawn = {i for label in many for i in rng.permutation(by_label[label])[: counts[label]].tolist()}
    return sorted(drawn), [i for i in range(len(labels)) if i not in drawn]
