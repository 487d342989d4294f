"""Figures of study pages: many settings at once, small multiples by dataset, for a file and not for a live page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.figures.drawing import Data
from heedful.figures.figure import Spec
from heedful.figures.theme import CONFIG, SERIES, variable

FOUND = {"better": "for", "worse": "against", "undecided": "quiet"}  # -> a colour of the theme
SHAPES = ("circle", "square", "triangle-up", "diamond")
COLUMNS = 3  # panels side by side
DIGITS = 4


def beside_published(rows: Data, encoders: Sequence[str], titles: tuple[str, str], description: str) -> Spec:
    """Points of two numbers on one scale, an encoder a colour and a shape, and the line on which both are equal."""
    ends = [row[key] for row in rows for key in ("published", "ours")]
    domain = [min(ends) - 0.05, max(ends) + 0.05]
    scale = {"domain": domain, "nice": False, "zero": False}
    names = [name for name in encoders if any(row["encoder"] == name for row in rows)]
    axes = {
        "x": {"field": "published", "type": "quantitative", "title": titles[0], "scale": scale},
        "y": {"field": "ours", "type": "quantitative", "title": titles[1], "scale": scale},
    }
    points = {
        "data": {"values": [_rounded(row) for row in rows]},
        "mark": {"type": "point", "filled": True, "size": 38, "opacity": 0.65},
        "encoding": {
            **axes,
            "color": {
                "field": "encoder",
                "title": "encoder",
                "scale": {"domain": names, "range": [variable(c) for c in SERIES[: len(names)]]},
            },
            "shape": {
                "field": "encoder",
                "title": "encoder",
                "scale": {"domain": names, "range": SHAPES[: len(names)]},
            },
            "tooltip": [{"field": key} for key in ("name", "published", "ours")],
        },
    }
    diagonal = {
        "data": {"values": [{"published": end, "ours": end} for end in domain]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": variable("quiet")},
        "encoding": axes,
    }
    return {"layer": [diagonal, points], "height": 420, "description": description, "config": CONFIG}


def differences(rows: Data, panels: Sequence[str], names: Sequence[str], title: str, description: str) -> Spec:
    """A panel for each dataset: named differences with their intervals, coloured by what was found, and zero."""
    x = {"type": "quantitative", "title": title, "scale": {"zero": True}}
    y = {"field": "name", "type": "nominal", "title": None, "sort": list(names)}
    colour = {
        "field": "found",
        "title": "found to be",
        "scale": {"domain": list(FOUND), "range": [variable(colour) for colour in FOUND.values()]},
    }
    layers = [
        {"mark": {"type": "rule", "color": variable("line")}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"x": {**x, "field": "value"}, "y": y, "color": colour},
        },
    ]
    return _facets(rows, panels, {"layer": layers, "width": 165, "height": 17 * len(names)}, description)


def errors(rows: Data, panels: Sequence[str], names: Sequence[str], title: str, description: str) -> Spec:
    """A panel for each dataset: named numbers as points, from zero on."""
    encoding = {
        "x": {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": True}},
        "y": {"field": "name", "type": "nominal", "title": None, "sort": list(names)},
    }
    mark = {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": variable("c0")}
    spec = _facets(
        rows, panels, {"mark": mark, "encoding": encoding, "width": 420, "height": {"step": 22}}, description
    )
    return {**spec, "columns": 1, "resolve": {"scale": {"x": "shared", "y": "independent"}}}


def _facets(rows: Data, panels: Sequence[str], panel: dict[str, Any], description: str) -> Spec:
    return {
        "data": {"values": [_rounded(row) for row in rows]},
        "facet": {
            "field": "panel",
            "type": "nominal",
            "title": None,
            "sort": list(panels),
            "header": {"labelFontWeight": "bold"},
        },
        "columns": COLUMNS,
        "spec": panel,
        "description": description,
        "config": CONFIG,
    }


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, DIGITS) if isinstance(value, float) else value for key, value in row.items()}
