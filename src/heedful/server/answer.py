"""A page, or its JSON twin at the same address; and mistakes in one sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from fastapi import Request
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from heedful import __version__
from heedful.experiments.framework.verdict import BADGES, MARKS
from heedful.explanation.drawing import visible
from heedful.figures.figure import method_name
from heedful.report.shell import text_of, verdict_bar

LONGEST_SHOWN = 4000  # characters of any one value in a page


def _shown(value: Any) -> Any:
    """Every string in a page: control characters as signs, cut. Escaping follows."""
    return visible(value, LONGEST_SHOWN) if type(value) is str else value


def number(value: object, digits: int = 3) -> str:
    """For people: 0.123, or a dash where it is undefined."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}f}".replace("-", "−")


def small(value: float) -> str:
    """Of changes: what is too small for three digits is said to be small, not to be nothing."""
    return "<0.001" if 0 < value < 0.0005 else number(float(value))


def score_name(name: str) -> str:
    return {"f1": "F1", "roc_auc": "ROC AUC"}.get(name, name.replace("_", " "))


def raw(text: str) -> Markup:
    """Escaped, and otherwise as it is: for the text field that it is edited in."""
    return escape(text)


def run_address(run: str, *parts: object, **query: object) -> str:
    """/runs/<run>/<parts>?<query>; what is None is left out."""
    path = "/".join(quote(str(part), safe="") for part in (run, *parts))
    return f"/runs/{path}{with_query(query)}"


def with_query(query: Mapping[str, object]) -> str:
    said = {name: value for name, value in query.items() if value not in (None, "", [], ())}
    return f"?{urlencode(said, doseq=True)}" if said else ""


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
            jinja2.DictLoader({"parts.html": text_of("parts.html")}),  # what pages of the report look like, too
        ]
    ),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {"number": number, "raw": raw, "visible": visible, "small": small}
ENVIRONMENT.filters |= {"method": method_name, "score": score_name}
ENVIRONMENT.globals |= {"run_address": run_address, "version": __version__, "with_query": with_query}
ENVIRONMENT.globals |= {"marks": MARKS, "badges": BADGES, "verdict_bar": verdict_bar}


def wants_json(request: Request) -> bool:
    """`?format=json`, or an Accept header that prefers JSON to HTML."""
    asked = request.query_params.get("format")
    if asked in ("json", "html"):
        return asked == "json"
    weights = {"application/json": 0.0, "text/html": 0.0}
    for part in request.headers.get("accept", "").split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        q = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        if kind in weights:
            weights[kind] = float(q) if q.replace(".", "", 1).isdecimal() else 1.0
    return weights["application/json"] > weights["text/html"]


def plain(value: Any) -> Any:
    """As JSON can say it: nan is null, arrays are lists."""
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(data: Any, status: int = 200) -> Response:
    body = json.dumps(plain(data), ensure_ascii=True, allow_nan=False)
    return Response(body, status, {"Vary": "Accept", "Cache-Control": "no-store"}, "application/json")


def page(template: str, data: dict[str, Any], status: int = 200, **more: Any) -> Response:
    html = ENVIRONMENT.get_template(template).render(data=data, **{"twin": None, **more})
    return HTMLResponse(html, status, {"Vary": "Accept", "Cache-Control": "no-store"})


def answer(request: Request, template: str, data: dict[str, Any], **more: Any) -> Response:
    """`data` is all that JSON says; `more` is what only the page needs (drawings, addresses)."""
    if wants_json(request):
        return as_json(data)
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "format"]
    twin = f"{quote(request.url.path)}?{urlencode([*query, ('format', 'json')])}"
    return page(template, data, twin=twin, **more)


def mistake(request: Request, sentence: str, status: int) -> Response:
    sentence = visible(sentence, 600)
    if request.method == "POST" or wants_json(request):
        return as_json({"error": sentence}, status)
    return page("mistake.html", {"error": sentence, "status": status}, status)
