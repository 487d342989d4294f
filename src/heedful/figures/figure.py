"""A figure: a Vega-Lite drawing, the sentence on how to read it, and what is said instead of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from heedful.errors import Mistake
from heedful.registry import EXPLAINERS

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """`spoken` is what a screen reader says instead of the drawing.

    What can be clicked has, in its datum, the fields that a list of texts is filtered by: `measure` (a column, or
    column:group), `low`, `high`, `closed` (the last bin holds its upper end) and `label`; a point has `example`.
    """

    id: str
    title: str
    read: str
    spoken: str
    spec: Spec
    wide: bool = False


# What methods and pairs of methods are called in figures and on pages.


def method_name(method: str) -> str:
    """What an explainer calls itself; of anything else, and of one that is not installed here, its name in words."""
    with suppress(Mistake):
        if method in EXPLAINERS:
            return EXPLAINERS[method].label
    return method.replace("_", " ")


def pair_name(pair: str) -> str:
    """ "attention/omission" in words."""
    return " and ".join(map(method_name, pair.split("/")))


def join_words(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
