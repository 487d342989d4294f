"""What a page carries with it: its style and its script; and how data enters it.

The Content-Security-Policy names each script and style by the hash of its text, so nothing that came from
data can run, even if it should slip through the escaping. Vega runs without `eval` (its interpreter).
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from heedful.colours import STYLE
from heedful.figures import script as figures
from heedful.figures.theme import stylesheet

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
