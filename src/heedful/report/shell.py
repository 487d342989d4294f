"""A page that stands alone: one HTML file with its style, its scripts and its data inside, and nothing else needed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from itertools import pairwise
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from heedful.experiments.framework.certainty import grade_by
from heedful.experiments.framework.verdict import BADGES, MARKS
from heedful.explanation.drawing import STYLE
from heedful.figures import script as figures
from heedful.figures.script import vega
from heedful.figures.theme import CONFIG, stylesheet
from heedful.report import shell as assets

# What a page carries with it: its style and its script; and how data enters it.
#
# The Content-Security-Policy names each script and style by the hash of its text, so nothing that came from
# data can run, even if it should slip through the escaping. Vega runs without `eval` (its interpreter).


HERE = "heedful.report"


def text_of(name: str) -> str:
    """A file of this package."""
    return files(HERE).joinpath(name).read_text(encoding="utf-8")


def page_style() -> str:
    return stylesheet() + STYLE + figures.STYLE + text_of("parts.css") + text_of("page.css")


def page_script() -> str:
    return figures.drawing() + "".join(map(text_of, ("attention.js", "opening.js", "tip.js", "page.js")))


def digest(text: str) -> str:
    """As a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing is loaded from anywhere, and only these scripts and styles count."""
    return (
        f"default-src 'none'; script-src {' '.join(map(digest, scripts))}; "
        f"style-src {' '.join(map(digest, styles))}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def embed_json(value: Any) -> str:
    """JSON that can stand inside a <script> element whatever strings it holds."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# The one bar of a verdict: where the value and its interval are, between the bars that decide its grade.
#
# Drawn in per cent of its width, so it fits a card of any size; for the report, the audit and `heedful serve`.


def span_of(value: float, low: float, high: float, bars: Sequence[float]) -> tuple[float, float]:
    """What the bar spans: from 0 to 1 where that shows anything, else as far as values and bars go."""
    least, most = min(0.0, low, value), max(high, value, *bars)
    return least, 1.0 if 0.4 < most <= 1 else 1.25 * most


def verdict_bar(
    value: float | None, low: float | None, high: float | None, bars: Sequence[float], rising: bool, scale: str = ""
) -> Markup:
    """The zones of the grades, the interval and the value; nothing where a verdict has no value or no bars.

    `scale` says what the value is: what a screen reader says instead of the drawing.
    """
    if value is None or not bars:
        return Markup()
    ends = (value if low is None else low, value if high is None else high)
    least, most = span_of(value, *ends, bars)

    def at(x: float) -> str:
        return f"{100 * (min(max(x, least), most) - least) / (most - least):.2f}%"

    edges = [least, *sorted(bars), most]
    zones, names = Markup(), Markup()
    for a, b in pairwise(edges):
        grade = grade_by((a + b) / 2, tuple(sorted(bars)), rising)
        width = f"{100 * (b - a) / (most - least):.2f}%"
        zones += Markup('<rect class="zone {}" x="{}" y="4" width="{}" height="12"/>').format(grade, at(a), width)
        if (b - a) / (most - least) > 0.16:  # else there is no room for its name
            names += Markup('<text class="name" x="{}" y="30" text-anchor="middle">{}</text>').format(
                at((a + b) / 2), BADGES[grade]
            )
    told = f"{value:.2f}" + ("" if low is None or high is None else f" (95% interval {low:.2f} to {high:.2f})")
    where = " and ".join(f"{bar:g}" for bar in sorted(bars))
    spoken = f"{scale[:1].upper()}{scale[1:]}: {told}. The grade changes at {where}." if scale else told
    return Markup(
        '<svg class="verdict-bar" role="img" aria-label="{}" width="100%" height="34">{}'
        '<line class="interval" x1="{}" x2="{}" y1="10" y2="10"/><circle class="value" cx="{}" cy="10" r="6"/>{}</svg>'
    ).format(spoken, zones, at(ends[0]), at(ends[1]), at(value), names)


def render(template: str, data: Sequence[tuple[str, Any]], **values: Any) -> str:
    """`template` extends shell.html; `data` is what scripts read, by the id of its element."""
    style, script, library = assets.page_style(), assets.page_script(), vega()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=FunctionLoader(assets.text_of)
    )
    environment.globals |= {"marks": MARKS, "badges": BADGES, "verdict_bar": verdict_bar}
    return environment.from_string(template).render(
        version=version("heedful"),
        policy=Markup(assets.policy([library, script], [style])),
        style=Markup(style),
        vega=Markup(library),
        script=Markup(script),
        data=[(name, Markup(assets.embed_json(value))) for name, value in (("theme", CONFIG), *data)],
        **values,
    )
