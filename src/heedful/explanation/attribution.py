"""What one method says of one example: its scores, its own check, and what it cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.explanation.columns import Cells
from heedful.explanation.drawing import number
from heedful.records import Axes, MethodKind, Part


@dataclass(frozen=True, slots=True)
class Check:
    """How far a method met its own axiom. A value that is not finite becomes None: undefined, and not ok.

    There are three states: kept, met but for what the sentence says is missing, and broken (not ok).
    """

    name: str  # "completeness gap", "conservation gap", "R²"
    value: float | None
    ok: bool
    relative: float | None = None  # the gap as a share of what was to be explained
    sentence: str | None = None  # what is missing, where it is not kept

    def __post_init__(self) -> None:
        for name in ("value", "relative"):
            given = getattr(self, name)
            defined = given is not None and math.isfinite(given)
            object.__setattr__(self, name, float(given) if defined else None)
        object.__setattr__(self, "ok", bool(self.ok) and self.value is not None)

    @property
    def kept(self) -> bool:
        return self.ok and self.sentence is None

    def __str__(self) -> str:
        value = "undefined" if self.value is None else f"{self.value:.3g}"
        relative = "" if self.relative is None or self.relative > 1 else f" ({self.relative:.2%})"
        told = f": {self.sentence}" if self.sentence else ""
        mark = "✓" if self.kept else "~ in part:" if self.ok else "✗ failed:"
        return f"{mark} {self.name} {value}{relative}{told}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Passes through the model for one example."""

    forward: int = 0
    backward: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """The scores that one method gives to the positions of one example."""

    method: str
    kind: MethodKind
    signed: bool  # False: scores are ≥ 0 and say nothing about direction
    target: str  # the label whose score is explained
    scores: Mapping[Part, NDArray[np.float64]]  # (length,) for each part that is explained
    removal: str | None = None  # what "absent" means: "embedding set to 0", "token deleted", a baseline
    check: Check | None = None
    cost: Cost = field(default_factory=Cost)
    options: Mapping[str, Any] = field(default_factory=dict)  # what the method was asked for, as JSON values
    special: float | None = None  # sum of the scores of special tokens ([CLS], [SEP]), where the model has any
    rest: float | None = None  # what fell to no token at all (biases, positions), where the method tells
    spread: float | None = None  # of sampled scores: the largest standard error, as a share of the largest score
    axes: Axes = ""  # what `cells` have beside a position
    cells: Cells = field(default_factory=Cells.none)  # what several positions do together, or what each does in a layer

    def __post_init__(self) -> None:
        # through JSON once, so that what is loaded later equals what was made (tuples become lists)
        object.__setattr__(self, "options", json.loads(as_json(self.options)))

    def flat(self) -> NDArray[np.float64]:
        """The scores of all its parts, passage before query."""
        return np.concatenate([*self.scores.values()])

    @property
    def peak(self) -> float:
        """The largest |score|: where the colours of a heatmap end."""
        return float(np.abs(self.flat()).max())

    def normalised(self) -> Attribution:
        """Scores with Σ|score| = 1 over all parts; all zero stays all zero."""
        peak = self.peak or 1.0  # by the peak first: the sum of huge scores would overflow
        total = np.abs(self.flat() / peak).sum() or 1.0
        special, rest = (None if given is None else given / peak / float(total) for given in (self.special, self.rest))
        scores = {part: s / peak / total for part, s in self.scores.items()}
        cells = replace(self.cells, score=self.cells.score / peak / total)
        return replace(self, scores=scores, special=special, rest=rest, cells=cells)

    def about_support(self) -> str:
        """How many words have weight at all, of attention that leaves some out; empty where none is left out."""
        weights = self.flat()
        support = int(np.count_nonzero(weights))
        sparse = self.kind == "attention" and 0 < support < len(weights)
        return f"weight on {support} of {len(weights)} words" if sparse else ""

    def notes(self) -> tuple[str, ...]:
        """What is to be said beside its scores."""
        return tuple(filter(None, (self.about_support(), self.about_special())))

    def about_special(self) -> str:
        """What special tokens, and what no token got, as numbers and as shares of everything; empty where nothing."""
        others = {"special tokens": self.special, "positions and biases": self.rest}
        given = {name: value for name, value in others.items() if value is not None}
        peak = max(self.peak, *map(abs, given.values()), 0.0) or 1.0
        total = float(np.abs(self.flat() / peak).sum()) + sum(abs(value) / peak for value in given.values()) or 1.0
        told = [
            f"{name} {number(value, self.signed)} ({abs(value) / peak / total:.0%} of everything)"
            for name, value in given.items()
        ]
        if self.spread is not None:
            told.append(f"sampled: uncertain by {self.spread:.0%} of the largest score")
        return ", ".join(told)


def as_json(options: Mapping[str, Any]) -> str:
    """What a method was asked for as strict JSON; arrays become lists."""
    return json.dumps(dict(options), ensure_ascii=False, allow_nan=False, default=lambda array: array.tolist())
