"""`/runs/<run>/<experiment>`: figures with linked selection, and the instances they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, find
from heedful.heatmap import visible
from heedful.report.grades import MARKS
from heedful.web import charts
from heedful.web.answer import answer, run_address
from heedful.web.library import Entry
from heedful.web.measures import COLUMNS, DEFAULT_COLUMN, NOT_DRAWN, Column
from heedful.web.results import Frame, Table
from heedful.web.selection import ORDERS, Selection, ordered
from heedful.web.site import Site, choice, whole
from heedful.web.texts import NotReady

BINS = 20
PAGE = 25  # instances on a page
MOST_POINTS = 500
MOST_COLOURS = 4  # labels that get colours of their own
MAX_ATTENTION = (0.0, 0.25, 0.5, 0.75, 1.0)  # the bins of figures 3 and 5 of Jain & Wallace 2019


def experiment_page(site: Site, request: Request, name: str, experiment: str) -> Response:
    entry = site.library.find(name)
    table = entry.table(experiment)
    columns, pairs = drawable(site, table), site.results.pairs(table)
    if not columns:
        raise Mistake(f"{experiment} of {entry.name} has no number for each text that could be drawn.")
    default = DEFAULT_COLUMN.get(experiment, columns[0])
    column = choice(request, "column", columns, default if default in columns else columns[0])
    pair = choice(request, "pair", pairs, pairs[0]) if pairs else None
    order = choice(request, "sort", list(ORDERS), "example")
    frame = site.results.frame(table, column, pair)
    about = described(column, frame)
    selection = Selection.of(request)
    chosen = selection.mask(frame, about.high)
    rows = ordered(frame, chosen, order)
    pages = max(1, -(-len(rows) // PAGE))
    number = min(max(1, whole(request, "page", 1)), pages)
    on_page = rows[(number - 1) * PAGE : number * PAGE]
    split = site.split(entry, experiment)
    texts, note = snippets(site, entry, split, frame.example[on_page].tolist())
    data = {
        "run": entry.name,
        "experiment": experiment,
        "question": find(experiment).question if experiment in EXPERIMENTS else "",
        "verdict": site.judge.verdicts(entry).get("verdicts", {}).get(experiment),
        "split": split,
        "column": column,
        "pair": pair,
        "instances": len(frame),
        "undefined": int(np.isnan(frame.value).sum()),
        "selection": {k: v for k, v in selection.query.items() if v is not None},
        "selected": len(rows),
        "mean": _mean(frame.value),
        "mean_of_selected": _mean(frame.value[rows]),
        "summary": entry.summaries.get(experiment),
        "page": number,
        "pages": pages,
        "rows": [_row(entry, frame, int(i), texts) for i in on_page],
    }
    state = {"column": column, "pair": pair, "sort": order} | selection.query

    def here(**changes: Any) -> str:
        return run_address(entry.name, experiment, **(state | changes))

    labels = [int(label) for label in np.unique(frame.predicted)]
    return answer(
        request,
        "experiment.html",
        data,
        entry=entry,
        about=about,
        columns={c: COLUMNS[c].title if c in COLUMNS else c for c in columns},
        pairs=pairs,
        orders=ORDERS,
        state=state,
        here=here,
        note=note,
        experiments=list(entry.tables),
        marks=MARKS,
        labels=[(label, entry.label(label), int((frame.predicted == label).sum())) for label in labels[:30]],
        few=len(labels) <= MOST_COLOURS,
        histogram=_histogram(entry, frame, chosen, about, selection, here, labels),
        attention=_attention(entry, frame, chosen, selection, here, labels),
        scatter=_scatter(entry, split, frame, chosen, about, labels),
    )


def drawable(site: Site, table: Table) -> list[str]:
    """Columns with a number for each text, the known ones first."""
    schema = site.results.footer(table).columns
    if "example" not in schema or "predicted" not in schema:
        return []
    numbers = [name for name, kind in schema.items() if kind in ("double", "float") and name not in NOT_DRAWN]
    return sorted(numbers, key=lambda name: (name not in COLUMNS, list(schema).index(name)))


def described(column: str, frame: Frame) -> Column:
    """The range of a column that is not known is that of its values."""
    if column in COLUMNS:
        return COLUMNS[column]
    defined = frame.value[np.isfinite(frame.value)]
    low, high = (float(defined.min()), float(defined.max())) if defined.size else (0.0, 1.0)
    return Column(column, low, high if high > low else low + 1.0, "")


def snippets(
    site: Site, entry: Entry, split: str, places: list[int]
) -> tuple[dict[int, tuple[str, str]], str]:
    """Beginnings of texts with their ids, and a sentence where they cannot be shown."""
    try:
        found = site.texts.get(entry, split, places)
    except NotReady as wait:
        return {}, f"wait: {wait}"
    except Mistake as error:
        return {}, str(error)
    return {place: (visible(e.passage.text[:400], 180), e.id) for place, e in found.items()}, ""


def _row(entry: Entry, frame: Frame, i: int, texts: dict[int, tuple[str, str]]) -> dict[str, Any]:
    place = int(frame.example[i])
    text, identity = texts.get(place, (None, None))
    return {
        "example": place,
        "id": identity,
        "text": text,
        "predicted": entry.label(int(frame.predicted[i])),
        "value": frame.value[i].item(),
        "max_attention": frame.max_attention[i].item(),
        "n_words": int(frame.n_words[i]),
    }


def _mean(values: NDArray[np.float64]) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else None


def _bars(
    entry: Entry,
    frame: Frame,
    chosen: NDArray[np.bool_],
    values: NDArray[np.float64],
    edges: NDArray[np.float64],
) -> list[tuple[list[int], list[int]]]:
    """For each bin the texts by label, and the selected ones; with many labels all have one colour."""
    labels = np.unique(frame.predicted)
    groups = (
        [frame.predicted == label for label in labels]
        if len(labels) <= MOST_COLOURS
        else [frame.predicted > -2]
    )
    place = np.clip(np.searchsorted(edges, values + 1e-9, side="right") - 1, 0, len(edges) - 2)
    defined = ~np.isnan(values)

    def counted(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.stack(
            [np.bincount(place[rows & g & defined], minlength=len(edges) - 1) for g in groups], axis=1
        )

    return list(zip(counted(np.ones_like(chosen)).tolist(), counted(chosen).tolist(), strict=True))


def _histogram(
    entry: Entry,
    frame: Frame,
    chosen: NDArray[np.bool_],
    about: Column,
    selection: Selection,
    here: Any,
    labels: Any,
) -> Any:
    edges = np.linspace(about.low, about.high, BINS + 1)
    bars = []
    for i, (counts, picked) in enumerate(_bars(entry, frame, chosen, frame.value, edges)):
        low, high = round(float(edges[i]), 6), round(float(edges[i + 1]), 6)
        current = (selection.low, selection.high) == (low, high)
        href = here(low=None, high=None) if current else here(low=low, high=high, undefined=None)
        bars.append(charts.Bar(low, high, counts, picked, href, current))
    names = [entry.label(label) for label in labels] if len(labels) <= MOST_COLOURS else ["all"]
    return charts.histogram(
        bars, names, f"Histogram of {about.title}: choose a bar to see its texts", about.title
    )


def _attention(
    entry: Entry, frame: Frame, chosen: NDArray[np.bool_], selection: Selection, here: Any, labels: Any
) -> Any:
    edges = np.array(MAX_ATTENTION)
    bars = []
    for i, (counts, picked) in enumerate(_bars(entry, frame, chosen, frame.max_attention, edges)):
        low, high = float(edges[i]), float(edges[i + 1])
        current = (selection.attention_low, selection.attention_high) == (low, high)
        href = here(alow=None, ahigh=None) if current else here(alow=low, ahigh=high)
        bars.append(charts.Bar(low, high, counts, picked, href, current))
    names = [entry.label(label) for label in labels] if len(labels) <= MOST_COLOURS else ["all"]
    return charts.histogram(
        bars, names, "Texts by their largest attention weight", "largest attention weight"
    )


def _scatter(
    entry: Entry, split: str, frame: Frame, chosen: NDArray[np.bool_], about: Column, labels: list[int]
) -> Any:
    """Value against max attention: the selected texts first, others in even steps, at most MOST_POINTS."""
    defined = ~np.isnan(frame.value) & ~np.isnan(frame.max_attention)
    picked, rest = np.flatnonzero(defined & chosen), np.flatnonzero(defined & ~chosen)
    room = MOST_POINTS - min(len(picked), MOST_POINTS)
    rows = [*_thinned(picked, MOST_POINTS), *_thinned(rest, room)]
    few = len(labels) <= MOST_COLOURS
    points = [
        charts.Point(
            x=float(frame.max_attention[i]),
            y=float(frame.value[i]),
            label=labels.index(int(frame.predicted[i])) if few else 0,
            chosen=bool(chosen[i]),
            href=run_address(entry.name, "examples", int(frame.example[i]), split=split),
            title=f"text {int(frame.example[i])}: {frame.value[i]:.3f}",
        )
        for i in rows
    ]
    title = f"{about.title} against the largest attention weight; each point is a text"
    return charts.scatter(
        points, (0.0, 1.0), (about.low, about.high), (title, "largest attention weight", about.title)
    )


def _thinned(rows: NDArray[np.int64], most: int) -> list[int]:
    if len(rows) <= most:
        return [int(i) for i in rows]
    return [int(rows[i * len(rows) // most]) for i in range(most)]
