"""A tiny histogram for a cell of a table or a card: SVG, without axes and without script."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from markupsafe import escape as escape_markup

from heedful.heatmap import visible


def sparkline(counts: Sequence[int], low: float, high: float, mean: float | None, label: str) -> Markup:
    """The shape of a distribution, the zero line, and the mean."""
    width, height = 120.0, 30.0
    peak, step = max(counts, default=0) or 1, width / max(1, len(counts))
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{height * (1 - n / peak):.1f}" width="{max(step - 0.6, 0.4):.1f}" '
        f'height="{height * n / peak:.1f}"/>'
        for i, n in enumerate(counts)
        if n
    )

    def place(value: float) -> str:
        return f"{width * (min(max(value, low), high) - low) / (high - low):.1f}"

    zero = (
        f'<line class="zero" x1="{place(0)}" x2="{place(0)}" y1="0" y2="{height}"/>' if low < 0 < high else ""
    )
    at = "" if mean is None else f'<path class="mean" d="M{place(mean)} 31l-3.5 5h7z"/>'
    return Markup(
        f'<svg class="mini" viewBox="-2 -1 124 38" role="img" aria-label="{escape_markup(visible(label, 300))}">'
        f'<line class="axis" x1="0" x2="{width}" y1="{height}" y2="{height}"/>{zero}{bars}{at}</svg>'
    )
