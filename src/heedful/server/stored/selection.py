"""Which instances of an experiment are meant: a selection that stands in the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from heedful.measure.columns import DIGITS, Frame
from heedful.server.site import real, whole

ORDERS = {
    "example": "place in the split",
    "value": "value, lowest first",
    "-value": "value, highest first",
    "-max_attention": "max attention, highest first",
    "-n_words": "longest first",
}


@dataclass(frozen=True, slots=True)
class RowSelection:
    """`low` to `high` of the value (the last bin is closed), of max attention, and one predicted label."""

    low: float | None = None
    high: float | None = None
    attention_low: float | None = None
    attention_high: float | None = None
    label: int | None = None
    undefined: bool = False  # only those without a value

    @classmethod
    def of(cls, request: Request) -> RowSelection:
        label = request.query_params.get("label")
        return cls(
            low=real(request, "low"),
            high=real(request, "high"),
            attention_low=real(request, "alow"),
            attention_high=real(request, "ahigh"),
            label=None if label in (None, "") else whole(request, "label", 0),
            undefined=request.query_params.get("undefined") == "1",
        )

    @property
    def query(self) -> dict[str, Any]:
        """As it stands in the address."""
        return {
            "low": self.low,
            "high": self.high,
            "alow": self.attention_low,
            "ahigh": self.attention_high,
            "label": self.label,
            "undefined": 1 if self.undefined else None,
        }

    def mask(self, frame: Frame, top: float) -> NDArray[np.bool_]:
        """(n,) which rows are meant. `top` is the end of the range: the bin that ends there is closed."""
        chosen = np.ones(len(frame), dtype=bool)
        if self.label is not None:
            chosen &= frame.predicted == self.label
        chosen &= _between(frame.value, self.low, self.high, top)
        chosen &= _between(frame.max_attention, self.attention_low, self.attention_high, 1.0)
        if self.undefined:
            chosen &= np.isnan(frame.value)
        return chosen


def _between(values: NDArray[np.float64], low: float | None, high: float | None, top: float) -> NDArray[np.bool_]:
    """Rounded like the bins of a figure, so that a bar and its texts agree; the bin that ends at `top` is closed."""
    inside, values = np.ones(len(values), dtype=bool), np.round(values, DIGITS)
    with np.errstate(invalid="ignore"):  # nan is never between
        if low is not None:
            inside &= values >= round(low, DIGITS)
        if high is not None:
            inside &= (values < round(high, DIGITS)) if high < top - 1e-6 else ~np.isnan(values)
    return inside


def sort_rows(frame: Frame, chosen: NDArray[np.bool_], order: str) -> NDArray[np.int64]:
    """The chosen rows in an order of ORDERS; undefined values last."""
    rows = np.flatnonzero(chosen)
    name = order.removeprefix("-")
    values = np.asarray(getattr(frame, name)[rows], dtype=np.float64)
    if order.startswith("-"):
        values = -values
    return rows[np.lexsort((frame.example[rows], values))]
