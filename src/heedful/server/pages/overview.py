"""`/`: every run with its verdicts, as a table; or datasets x encoders x attentions, each cell a distribution."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from statistics import fmean
from threading import Lock
from typing import Any

from fastapi import Request
from markupsafe import Markup
from markupsafe import escape as escape_markup
from starlette.responses import Response

from heedful.experiments import EXPERIMENTS
from heedful.experiments.framework.verdict import BELIEVE, HEADLINE_RULE, Grade
from heedful.explanation.drawing import visible
from heedful.server.answer import answer, number, wants_json, with_query
from heedful.server.site import Site, choice, whole
from heedful.server.stored.library import RunEntry
from heedful.server.stored.measures import MeasureOf, measures
from heedful.server.stored.results import total

# A tiny histogram for a cell of a table or a card: SVG, without axes and without script.


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

    zero = f'<line class="zero" x1="{place(0)}" x2="{place(0)}" y1="0" y2="{height}"/>' if low < 0 < high else ""
    at = "" if mean is None else f'<path class="mean" d="M{place(mean)} 31l-3.5 5h7z"/>'
    return Markup(
        f'<svg class="mini" viewBox="-2 -1 124 38" role="img" aria-label="{escape_markup(visible(label, 300))}">'
        f'<line class="axis" x1="0" x2="{width}" y1="{height}" y2="{height}"/>{zero}{bars}{at}</svg>'
    )


SORTS = ("name", "accuracy", "value", "seed")
VIEWS = ("table", "grid", "list")  # `list` is what the table was called
KEPT_PAGES = 32
LISTED = 40  # runs on a page of the list
SCORES = ("accuracy", "f1", "roc_auc")


class Pages:
    """The last pages that were made. Of many who ask for the same one at once, one makes it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.kept: OrderedDict[tuple[int, str], Response] = OrderedDict()


def overview(site: Site, request: Request, pages: Pages) -> Response:
    """Every state stands in the address: measure, filters, view and order."""
    site.library.entries()
    key = (site.library.version, str(request.query_params))
    if wants_json(request):
        return _overview(site, request)
    with pages.lock:
        if key not in pages.kept:
            pages.kept[key] = made = _overview(site, request)
            if b"data-refresh" in bytes(made.body):  # verdicts are being made: the next one is another
                return pages.kept.pop(key)
            while len(pages.kept) > KEPT_PAGES:
                pages.kept.popitem(last=False)
        return pages.kept[key]


def _overview(site: Site, request: Request) -> Response:
    entries = list(site.library.entries().values())
    known = measures()
    measure_name = choice(request, "measure", list(known), next(iter(known)))
    measure, view = (known[measure_name], choice(request, "view", list(VIEWS), "table").replace("list", "table"))
    sort = choice(request, "sort", list(SORTS), "name")
    chosen = {name: request.query_params.get(name, "") for name in ("dataset", "encoder", "attention")}
    words = request.query_params.get("q", "")[:200].lower().split()
    shown = [e for e in entries if _passes(e, chosen, words)]
    files = list(measure.files(shown).values())
    span = measure.range(site.results, files)
    rows, waiting, unreadable = _rows(site, shown, measure, span)
    order = {"name": lambda r: r["run"], "seed": lambda r: (r["seed"] is None, r["seed"] or 0, r["run"])}.get(sort) or (
        lambda r: _falling(r["mean"] if sort == "value" else r["performance"].get("accuracy"))
    )
    rows.sort(key=order)
    data = {
        "measure": measure_name,
        "title": measure.title,
        "low": span[0],
        "high": span[1],
        "runs": rows,
        "waiting": waiting,  # runs whose verdicts are still being made
        "broken": site.library.broken | unreadable,
    }
    pages = max(1, -(-len(rows) // LISTED))
    number_of_page = min(max(1, whole(request, "page", 1)), pages)
    return answer(
        request,
        "overview.html",
        data,
        listed=rows[(number_of_page - 1) * LISTED : number_of_page * LISTED],
        page=number_of_page,
        pages=pages,
        state=chosen | {"measure": measure_name, "view": view, "sort": sort, "q": " ".join(words)},
        choices={name: sorted({getattr(e, name) for e in entries}) for name in chosen},
        measures=known,
        reading=measure.column.reading,
        grid=_grid(rows, measure, span, sort),
        drawing=lambda row: _drawing([row], measure, span),
        questions=[e.question for e in EXPERIMENTS.values() if e.counts],
        asked={name: e.question for name, e in EXPERIMENTS.items() if any(name in r["verdicts"] for r in rows)},
        scores=SCORES,
        comparable=len(entries) > 1,
        believe=BELIEVE,
        rule=HEADLINE_RULE,
        sorts=SORTS,
        views=VIEWS[:2],
    )


def _falling(value: float | None) -> tuple[bool, float]:
    """Largest first, undefined last."""
    return (True, 0.0) if value is None else (False, -value)


def _passes(entry: RunEntry, chosen: dict[str, str], words: Sequence[str]) -> bool:
    about = f"{entry.name} {entry.dataset} {entry.encoder} {entry.attention}".lower()
    same = all(not value or getattr(entry, name) == value for name, value in chosen.items())
    return same and all(word in about for word in words)


def _rows(
    site: Site, entries: Sequence[RunEntry], measure: MeasureOf, span: tuple[float, float]
) -> tuple[list[dict[str, Any]], int, dict[str, str]]:
    """(one for each run: what it is, its score, and the distribution of the measure; runs without verdicts yet; runs
    whose row cannot be made, and why)."""
    tables = measure.files(entries)
    counts = measure.counts(site.results, list(tables.values()), span)
    grades, waiting = site.verdicts.grades(entries)
    rows: list[dict[str, Any]] = []
    unreadable: dict[str, str] = {}
    for e in entries:
        try:
            bins = total(counts.get(tables[e.name], {})) if e.name in tables else []
            rows.append(_row(site, e, measure, bins, grades.get(e.name)))
        except Exception as error:  # one run's files are not a matter of the others
            unreadable[e.name] = f"its files are damaged ({type(error).__name__}: {error})."
    return rows, waiting, unreadable


def _row(site: Site, e: RunEntry, measure: MeasureOf, bins: list[int], grade: Grade | None) -> dict[str, Any]:
    return {
        "run": e.name,
        "dataset": e.dataset,
        "model": e.model,
        "encoder": e.encoder,
        "attention": e.attention,
        "seed": e.seed,
        "task": e.info.get("task"),
        "performance": {name: e.performance.get(name) for name in SCORES},
        "texts": e.performance.get("examples"),
        "baseline": (e.performance.get("baseline") or {}).get("accuracy"),
        "experiments": list(e.tables),
        "believe": grade,
        "verdicts": {
            name: {"grade": verdict.grade, "answer": verdict.answer, "sentence": verdict.sentence}
            for name, verdict in site.verdicts.made(e).items()
        },
        "mean": measure.number(e, "mean"),
        "counts": bins,
    }


def _grid(rows: Sequence[dict[str, Any]], measure: MeasureOf, span: tuple[float, float], sort: str) -> dict[str, Any]:
    """Rows of datasets, columns of encoder and attention; a cell pools the seeds of its runs."""
    columns = sorted({(row["encoder"], row["attention"]) for row in rows})
    datasets: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for row in rows:  # in the order that was asked for
        datasets.setdefault(row["dataset"], {}).setdefault((row["encoder"], row["attention"]), []).append(row)
    names = sorted(datasets) if sort == "name" else list(datasets)
    return {
        "columns": columns,
        "datasets": [
            (name, [_cell(datasets[name].get(column, []), measure, span) for column in columns]) for name in names
        ],
    }


def _cell(rows: Sequence[dict[str, Any]], measure: MeasureOf, span: tuple[float, float]) -> dict[str, Any] | None:
    if not rows:
        return None
    accuracy = [row["performance"]["accuracy"] for row in rows if row["performance"]["accuracy"] is not None]
    return {
        "runs": rows,
        "drawing": _drawing(rows, measure, span),
        "mean": _mean(rows),
        "accuracy": fmean(accuracy) if accuracy else None,
        "believe": Counter(row["believe"] for row in rows if row["believe"]).most_common(),
        "href": with_query({"a": rows[0]["run"], "b": rows[1]["run"]}) if len(rows) > 1 else "",
    }


def _mean(rows: Sequence[dict[str, Any]]) -> float | None:
    means = [row["mean"] for row in rows if row["mean"] is not None]
    return fmean(means) if means else None


def _drawing(rows: Sequence[dict[str, Any]], measure: MeasureOf, span: tuple[float, float]) -> Any:
    pooled = [sum(bins) for bins in zip(*(row["counts"] for row in rows if row["counts"]), strict=True)]
    if not pooled:
        return None
    mean, texts = _mean(rows), sum(pooled)
    said = f"{measure.title}: mean {number(mean)} over {texts} texts"
    return sparkline(pooled, *span, mean, said)
