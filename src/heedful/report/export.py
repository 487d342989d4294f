"""Figures as files, and the page as a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import Mistake
from heedful.experiments.framework.verdict import Verdict
from heedful.figures.figure import Spec
from heedful.figures.theme import PALETTE, resolved
from heedful.files import whole_file


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and the verdicts by run and experiment."""

    page: Path
    figures: tuple[Path, ...]
    verdicts: Mapping[str, Mapping[str, Verdict]]


WIDTH, SCALE = 620, 2.0  # of an exported figure, in pixels; and of these in a PNG


def plain(spec: Spec) -> Spec:
    """A figure for paper: a width of its own, and plain colours on a white ground."""
    made = resolved(spec)
    if "facet" not in made:  # its panels have widths of their own
        made["width"] = WIDTH
    made["config"] = {**made["config"], "background": PALETTE["surface"][0]}
    return made


def svg(spec: Spec) -> str:
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(plain(spec))
    return drawn


def png(spec: Spec) -> bytes:
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(plain(spec), scale=SCALE)
    return drawn


def write_figures(specs: Mapping[str, Spec], folder: Path) -> list[Path]:
    """Each figure as <name>.svg and <name>.png."""
    if folder.exists() and not folder.is_dir():
        raise Mistake(f"--figures {folder} is a file: give the name of a folder.")
    written = []
    for name, spec in specs.items():
        stem = re.sub(r"[^\w-]+", "-", name)
        for ending, content in (("svg", svg(spec).encode()), ("png", png(spec))):
            path = folder / f"{stem}.{ending}"
            with whole_file(path) as temporary:
                temporary.write_bytes(content)
            written.append(path)
    return written


def check_page(path: Path) -> None:
    """Before anything is computed: can this be the page's name?"""
    if path.is_dir() or path.suffix not in (".html", ".htm"):
        raise Mistake(f"--output {path}: give the name of a file that ends in .html.")


def write_page(html: str, path: Path) -> None:
    """Whole or not at all."""
    check_page(path)
    with whole_file(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
