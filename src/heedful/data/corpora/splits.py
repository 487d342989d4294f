"""Splits that a source does not give are drawn, stratified by label.

All draws use the split seed, which is part of the corpus: models trained with different seeds see the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from heedful.data.corpora.recipe import Recipe
from heedful.records import SPLITS, Split

Group = Split | None  # None: rows that belong to no split yet
T = TypeVar("T")


def draw(labels: Sequence[str], fraction: float, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """(places drawn, places left), the same fraction of every label, both in the order of the source.

    The drawn rows are `fraction` of all, rounded, and at least one; the only row of a label stays. If they are
    as many as the labels, each label with more than one row gets one of them at least (then a few more than
    `fraction` may be drawn).
    """
    by_label: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        by_label.setdefault(label, []).append(i)
    many = sorted(label for label, places in by_label.items() if len(places) > 1)
    counts = {label: int(fraction * len(by_label[label])) for label in many}
    remainder = {label: fraction * len(by_label[label]) - counts[label] for label in many}
    wanted = max(round(fraction * len(labels)), 1)
    short = wanted - sum(counts.values())
    none_yet = {label for label in many if counts[label] == 0} if len(many) <= wanted else set()
    order = sorted(many, key=lambda label: (label not in none_yet, -remainder[label]))
    for label in order[: max(short, len(none_yet), 0)]:
        counts[label] += 1
    drawn = {i for label in many for i in rng.permutation(by_label[label])[: counts[label]].tolist()}
    return sorted(drawn), [i for i in range(len(labels)) if i not in drawn]


def draw_subset(labels: Sequence[str], size: int, rng: np.random.Generator) -> list[int]:
    """`size` places, in the order of the source: of every label its share, and one at least where there is room."""
    by_label: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        by_label.setdefault(label, []).append(i)
    share = {label: size * len(places) / len(labels) for label, places in by_label.items()}
    least = int(len(by_label) <= size)
    counts = {label: max(int(share[label]), least) for label in sorted(by_label)}
    while (left := size - sum(counts.values())) != 0:  # at most once for each label
        over = {label: n - share[label] for label, n in counts.items() if left > 0 or n > least}
        label = min(over, key=over.__getitem__) if left > 0 else max(over, key=over.__getitem__)
        counts[label] += 1 if left > 0 else -1
    return sorted(i for label, n in counts.items() for i in rng.permutation(by_label[label])[:n].tolist())


@dataclass(frozen=True, slots=True)
class Subset:
    """How many rows of each split are used, and the seed that draws them. Rows without a split are for training."""

    rows: Mapping[Split, int] = field(default_factory=dict)
    seed: int = 0

    def draw(
        self, groups: Mapping[Group, list[T]], label_of: Callable[[T], str], notes: list[str]
    ) -> dict[Group, list[T]]:
        """Before tokenisation, which costs most."""
        kept = dict(groups)
        for group, given in groups.items():
            size = self.rows.get(group or "train")
            if size is not None and size < len(given):
                rng = np.random.default_rng([self.seed, *(group or "all").encode()])
                kept[group] = [given[i] for i in draw_subset([label_of(r) for r in given], size, rng)]
                notes.append(f"{size} of {len(given)} {group or 'train'} rows drawn with seed {self.seed}")
        return kept


ALL_ROWS = Subset()


def sample_test(groups: Mapping[Group, list[T]], recipe: Recipe, seed: int, notes: list[str]) -> dict[Group, list[T]]:
    """The part of the test split that the corpus uses; drawn before tokenisation, which costs most."""
    test = groups.get("test")
    if not test or recipe.test_sample >= 1:
        return dict(groups)
    rng = np.random.default_rng((seed, 1))
    places = rng.choice(len(test), size=round(recipe.test_sample * len(test)), replace=False)
    notes.append(f"{recipe.test_sample:.0%} of test drawn with split seed {seed}")
    return {**groups, "test": [test[i] for i in np.sort(places)]}


def complete_splits(
    groups: Mapping[Group, list[T]], label_of: Callable[[T], str], recipe: Recipe, seed: int, notes: list[str]
) -> dict[Split, list[T]]:
    """Rows without a split are for training; a missing test and dev split are drawn from them."""
    splits: dict[Split, list[T]] = {split: list(groups.get(split, [])) for split in SPLITS}
    pool = groups.get(None, [])
    splits["train"] += pool
    plan: tuple[tuple[int, Split, float], ...] = ((2, "test", recipe.test_fraction), (3, "dev", recipe.dev_fraction))
    for stream, split, fraction in plan:
        missing = not splits[split] and splits["train"] and fraction > 0
        if missing and (split == "dev" or pool):
            train = splits["train"]
            drawn, left = draw([label_of(r) for r in train], fraction, np.random.default_rng((seed, stream)))
            splits["train"], splits[split] = [train[i] for i in left], [train[i] for i in drawn]
            notes.append(f"{split} is {fraction:.0%} of train, drawn with split seed {seed}")
    return splits


def files_for_split(files: Sequence[tuple[Group, T]], recipe: Recipe, part: Split | None) -> list[tuple[Group, T]]:
    """The files that the examples of split `part` depend on; all of them for None.

    Dev and test with a file of their own need no other, but the training file where labels are found in it.
    Train needs all: what dev and test lack is drawn from it.
    """
    groups = [group for group, _ in files]
    if part is None or part == "train" or part not in groups or recipe.split_field is not None:
        return list(files)
    needed: set[Group] = {part}
    if recipe.labels is None:
        needed |= set(groups) if recipe.labels_from == "entities" else {"train", None}
    return [(group, file) for group, file in files if group in needed]
