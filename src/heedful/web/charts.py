"""Figures as SVG. Every bar is a link to the texts it counts, so a figure works without script.

Colours are classes of the stylesheet (`c0`, `c1`, ... for labels), so that a figure follows light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from markupsafe import escape as escape_markup

from heedful.heatmap import visible

WIDTH, HEIGHT = 480.0, 220.0  # small, so that letters can be read on a phone
LEFT, RIGHT, TOP, BOTTOM = 60.0, 18.0, 12.0, 46.0


def escape(text: str) -> str:
    """Labels come from data."""
    return str(escape_markup(visible(text, 300)))


@dataclass(frozen=True, slots=True)
class Bar:
    """Texts with a value between `low` and `high`, by label; `chosen` of them are selected."""

    low: float
    high: float
    counts: Sequence[int]
    chosen: Sequence[int]
    href: str
    current: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    label: int  # colour
    chosen: bool
    href: str
    title: str


def mini(counts: Sequence[int], low: float, high: float, mean: float | None, label: str) -> Markup:
    """A small multiple: the shape of a distribution, the zero line, and the mean."""
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
        f'<svg class="mini" viewBox="-2 -1 124 38" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="0" x2="{width}" y1="{height}" y2="{height}"/>{zero}{bars}{at}</svg>'
    )


def histogram(bars: Sequence[Bar], labels: Sequence[str], title: str, x_title: str) -> Markup:
    """Bars stacked by label. Pale: all texts. Strong: the selected ones."""
    low, high = bars[0].low, bars[-1].high
    peak = _rounded(max((sum(bar.counts) for bar in bars), default=0))
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = inner_w / len(bars)
    drawn = []
    for i, bar in enumerate(bars):
        x, rects = LEFT + i * step, []
        for values, style in ((bar.counts, "pale"), (bar.chosen, "strong")):
            base = 0
            for label, n in enumerate(values):
                if n:
                    y = TOP + inner_h * (1 - (base + n) / peak)
                    rects.append(
                        f'<rect class="{style} c{label % 8}" x="{x + 0.8:.1f}" y="{y:.1f}" '
                        f'width="{step - 1.6:.1f}" height="{inner_h * n / peak:.1f}"/>'
                    )
                base += n
        said = f"{bar.low:.2f} to {bar.high:.2f}: {sum(bar.counts)} texts"
        if len(labels) > 1:
            said += " (" + ", ".join(f"{labels[j]} {n}" for j, n in enumerate(bar.counts) if n) + ")"
        current = ' aria-current="true"' if bar.current else ""
        drawn.append(
            f'<a class="bar" href="{escape_markup(bar.href)}" data-swap aria-label="{escape(said)}"{current}>'
            f"<title>{escape(said)}</title>"
            f'<rect class="hit" x="{x:.1f}" y="{TOP}" width="{step:.1f}" height="{inner_h}"/>{"".join(rects)}</a>'
        )
    return _framed(drawn, low, high, 0, peak, title, x_title, "texts")


def scatter(
    points: Sequence[Point], x: tuple[float, float], y: tuple[float, float], titles: Sequence[str]
) -> Markup:
    """Each point is a link to its text. Not in the tab order: the list below has the same links."""
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    drawn = []
    for p in sorted(points, key=lambda p: p.chosen):
        cx = LEFT + inner_w * (min(max(p.x, x[0]), x[1]) - x[0]) / (x[1] - x[0])
        cy = TOP + inner_h * (1 - (min(max(p.y, y[0]), y[1]) - y[0]) / (y[1] - y[0]))
        style = "strong" if p.chosen else "pale"
        drawn.append(
            f'<a class="point" tabindex="-1" href="{escape_markup(p.href)}"><title>{escape(p.title)}</title>'
            f'<circle class="{style} c{p.label % 8}" cx="{cx:.1f}" cy="{cy:.1f}" r="3"/></a>'
        )
    return _framed(drawn, *x, *y, *titles)


def _framed(
    drawn: Sequence[str],
    low: float,
    high: float,
    bottom: float,
    top: float,
    title: str,
    x_title: str,
    y_title: str,
) -> Markup:
    """Axes and their names around what was drawn."""
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    base = TOP + inner_h
    ticks = []
    for i in range(5):
        share = i / 4
        x, y = LEFT + inner_w * share, TOP + inner_h * (1 - share)
        ticks.append(
            f'<text class="tick" x="{x:.1f}" y="{base + 15}" text-anchor="middle">{_tick(low, high, share)}</text>'
        )
        ticks.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + inner_w}" y1="{y:.1f}" y2="{y:.1f}"/>')
        ticks.append(
            f'<text class="tick" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{_tick(bottom, top, share)}</text>'
        )
    zero = ""
    if low < 0 < high:
        x = LEFT + inner_w * -low / (high - low)
        zero = f'<line class="zero" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{base}"/>'
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="group" aria-label="{escape(title)}">'
        f"{''.join(ticks)}{zero}<g>{''.join(drawn)}</g>"
        f'<text class="name" x="{LEFT + inner_w / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_title)}</text>'
        f'<text class="name" x="15" y="{TOP + inner_h / 2}" text-anchor="middle" '
        f'transform="rotate(-90 15 {TOP + inner_h / 2})">{escape(y_title)}</text></svg>'
    )


def _rounded(n: int) -> int:
    """The end of an axis of counts whose quarters are whole: 4, 8, 12, 20, 40, 60, 80, 100, 120, 200, ..."""
    unit = 4
    while True:
        for times in (1, 2, 3, 5, 10, 15, 20, 25):
            if n <= unit * times:
                return unit * times
        unit *= 10


def _tick(low: float, high: float, share: float) -> str:
    value = low + (high - low) * share
    return f"{value:,.0f}" if high - low >= 8 else f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "−")
