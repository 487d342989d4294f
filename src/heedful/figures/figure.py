"""A figure: a Vega-Lite drawing, the sentence on how to read it, and what is said instead of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
