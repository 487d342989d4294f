"""The order of labels, and the number of each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heedful.errors import Mistake


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """By alphabet; numbers, and names that end in one, by that number."""

    def key(label: str) -> tuple[str, float, str]:
        try:
            return ("", float(label), label)
        except ValueError:
            match = re.fullmatch(r"(.*?)(\d+)", label)
            return (match[1], float(match[2]), label) if match else (label, 0.0, label)

    return tuple(sorted(labels, key=key))


def label_numbers(labels: tuple[str, ...]) -> dict[str, int]:
    """The number of each label by its name; where no name is itself a number, also by its number."""
    twice = sorted({label for label in labels if labels.count(label) > 1}) if len(labels) < 1000 else []
    if twice:
        raise Mistake(f"the label {twice[0]!r} is listed twice.")
    numbers = {label: i for i, label in enumerate(labels)}
    if not any(label.isdigit() for label in labels):
        numbers.update((str(i), i) for i in range(len(labels)))
    return numbers
