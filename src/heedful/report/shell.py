"""A page that stands alone: one HTML file with its style, its scripts and its data inside, and nothing else needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from heedful.experiments.verdict import BADGES, MARKS
from heedful.figures.script import vega
from heedful.figures.theme import CONFIG
from heedful.report import assets
from heedful.report.verdict_bar import verdict_bar


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
