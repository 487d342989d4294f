"""The colours of pages and figures, once: as CSS variables for the screen, as plain colours for export.

A figure names its colours `var(--c0)`; the page that holds it decides what that is, so one drawing serves
light and dark screens and paper. Two palettes never mean the same: labels are green, pink, gold and slate; what speaks
for or against is blue or orange, in words, verdicts and badges alike. Each is told apart with any common colour
blindness (after Okabe & Ito 2008), and no meaning is carried by a colour alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

from heedful.explanation.drawing import INK, QUIET, SURFACE

PALETTE: dict[str, tuple[str, str]] = {  # name -> light, dark
    "surface": (SURFACE["light"], SURFACE["dark"]),
    "raised": ("#f6f6f4", "#262626"),
    "ink": (INK["light"], INK["dark"]),
    "quiet": (QUIET["light"], QUIET["dark"]),
    "line": ("#d9d9d6", "#444444"),
    "accent": ("#0060a0", "#6fb7ee"),
    "c0": ("#0072b2", "#56a8e0"),
    "c1": ("#d55e00", "#f08c3c"),
    "c2": ("#00835f", "#2fbf93"),
    "c3": ("#a8508a", "#dd94c4"),
    "label0": ("#00795a", "#2fbf93"),
    "label1": ("#a8407f", "#e08fc4"),
    "label2": ("#8a6a00", "#d8b64a"),
    "label3": ("#52606e", "#a3b3c2"),
    "looks": ("#7a3fb8", "#b58be8"),  # attention, which has no direction
    "for": ("#0060a0", "#6fb7ee"),
    "mixed": ("#5a5a5a", "#c4c4c4"),
    "against": ("#a84300", "#ff9f4a"),
}
SERIES = ("c0", "c1", "c2", "c3")  # of methods and other lines of one figure
CLASSES = ("label0", "label1", "label2", "label3")  # a figure with more labels than these shows them together


def variable(name: str) -> str:
    """The colour by name, as a figure or a stylesheet writes it."""
    assert name in PALETTE, name
    return f"var(--{name})"


def stylesheet() -> str:
    """The variables; dark only on screens, so that paper is always light."""
    light, dark = (
        "".join(f"--{name}:{colours[i]};" for name, colours in PALETTE.items()) + f"color-scheme:{scheme}"
        for i, scheme in enumerate(("light", "dark"))
    )
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def resolved(spec: dict[str, Any], scheme: int = 0) -> dict[str, Any]:
    """A figure with plain colours (0 light, 1 dark), for renderers that know no CSS."""
    text = re.sub(r"var\(--(\w+)\)", lambda found: PALETTE[found[1]][scheme], json.dumps(spec))
    plain: dict[str, Any] = json.loads(text)
    return plain


FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif"
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": variable("quiet"),
        "titleColor": variable("ink"),
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 12,
        "gridColor": variable("line"),
        "domainColor": variable("line"),
        "tickColor": variable("line"),
        "tickCount": 5,
        "labelOverlap": True,
    },
    "legend": {
        "labelColor": variable("ink"),
        "titleColor": variable("quiet"),
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "orient": "top",
        "symbolOpacity": 1,
        "labelLimit": 220,
    },
    "text": {"color": variable("ink"), "fontSize": 12},
}
