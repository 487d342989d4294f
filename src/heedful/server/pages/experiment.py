"""`/runs/<run>/<experiment>`: figures whose bars select texts, and the texts they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fastapi import Request
from markupsafe import Markup
from numpy.typing import NDArray
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import Experiment, experiment_of
from heedful.experiments.framework.plain_figures import column_figures
from heedful.explanation.drawing import LEVELS, visible
from heedful.measure.columns import DIGITS, EDGES, Floats, Frame
from heedful.records import Example
from heedful.server.answer import answer, run_address, with_query
from heedful.server.live import prediction
from heedful.server.site import Site, choice, whole
from heedful.server.stored.library import RunEntry
from heedful.server.stored.measures import group_parameter
from heedful.server.stored.results import File
from heedful.server.stored.selection import ORDERS, RowSelection, sort_rows
from heedful.server.stored.texts import NotReady
from heedful.server.stored.verdicts import verdict_json, warnings_about

PAGE = 25  # instances on a page
LONGEST_SNIPPET = 180  # characters of a text in a list


def experiment_page(site: Site, request: Request, name: str, experiment: str) -> Response:
    entry = site.library.find(name)
    table = entry.table(experiment)
    about = experiment_of(experiment)
    columns = drawable(site, about, table)
    if not columns:
        raise Mistake(f"{experiment} of {entry.name} has no number for each text that could be drawn.")
    column = choice(request, "column", columns, columns[0])
    groups = site.results.groups(table, about.by)
    parameter = group_parameter(about.by) if about.by is not None else ""
    group = choice(request, parameter, groups, groups[0]) if groups else None
    order = choice(request, "sort", list(ORDERS), "example")
    frame = site.results.frame(table, column, None if group is None else (str(about.by), group))
    of_column = about.column(column)
    selection = RowSelection.of(request)
    chosen = selection.mask(frame, of_column.range_of(frame.value)[1])
    rows = sort_rows(frame, chosen, order)
    pages = max(1, -(-len(rows) // PAGE))
    number = min(max(1, whole(request, "page", 1)), pages)
    on_page = rows[(number - 1) * PAGE : number * PAGE]
    split = site.split(entry, experiment)
    places = frame.example[on_page].tolist()
    texts, note = read_texts(site, entry, split, places)
    verdict = site.verdicts.of(entry, experiment).get(experiment)
    data = {
        "run": entry.name,
        "experiment": experiment,
        "question": about.question,
        "verdict": None if verdict is None else verdict_json(verdict),
        "warnings": warnings_about(entry, site.library.entries().values()),
        "split": split,
        "column": column,
        "by": about.by,
        "group": group,
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
    state = {"column": column, "sort": order} | ({parameter: group} if group is not None else {})
    plain_state = dict(state)
    state |= selection.query

    def here(**changes: Any) -> str:
        return run_address(entry.name, experiment, **(state | changes))

    labels = [int(label) for label in np.unique(frame.predicted)]
    title = of_column.title + (f" of {about.pages.group_title(group)}" if group is not None else "")
    own, undrawn = site.figures.of(entry, experiment)
    return answer(
        request,
        "experiment.html",
        data,
        entry=entry,
        about=of_column,
        columns={c: about.column(c).title for c in columns},
        groups={g: about.pages.group_title(g) for g in groups},
        parameter=parameter,
        orders=ORDERS,
        state=state,
        here=here,
        cleared=run_address(entry.name, experiment, **plain_state),
        note=note,
        experiments=list(entry.tables),
        labels=[(label, entry.label(label), int((frame.predicted == label).sum())) for label in labels[:30]],
        holder=_holder(entry, experiment, split, with_query(state)[1:], parameter),
        figures=column_figures(column, group, frame, of_column, title, entry.labels, chosen),
        bins=_links(entry, frame.value, frame, of_column.edges_of(frame.value), selection, here, ("low", "high")),
        attention_bins=_links(entry, frame.max_attention, frame, np.array(EDGES), selection, here, ("alow", "ahigh")),
        own=own,
        undrawn=undrawn,
        heats=_heats(site, entry, split, texts),
        shades=_shades(frame.value[on_page], of_column.range_of(frame.value)),
    )


def drawable(site: Site, about: Experiment, table: File) -> list[str]:
    """Columns with a number for each text, the described ones first."""
    types = site.results.footer(table).columns
    return about.drawable(types) if {"example", "predicted"} <= set(types) else []


def read_texts(site: Site, entry: RunEntry, split: str, places: list[int]) -> tuple[dict[int, Example], str]:
    """Texts by place, and a sentence where they cannot be shown."""
    try:
        return site.texts.get(entry, split, places), ""
    except NotReady as wait:
        return {}, f"wait: {wait}"
    except Mistake as error:
        return {}, str(error)


def _row(entry: RunEntry, frame: Frame, i: int, texts: dict[int, Example]) -> dict[str, Any]:
    place, predicted = int(frame.example[i]), int(frame.predicted[i])
    example = texts.get(place)
    truth = None if example is None else example.label
    return {
        "example": place,
        "id": None if example is None else example.id,
        "text": None if example is None else visible(example.passage.text[:400], LONGEST_SNIPPET),
        "predicted": entry.label(predicted),
        "truth": None if truth is None else entry.label(truth),
        "right": None if truth is None else truth == predicted,
        "value": frame.value[i].item(),
        "max_attention": frame.max_attention[i].item(),
        "n_words": int(frame.n_words[i]),
    }


def _heats(site: Site, entry: RunEntry, split: str, texts: dict[int, Example]) -> dict[int, Markup]:
    """The beginnings of texts, coloured by the attention that an experiment has kept of them."""
    for name, table in entry.tables.items():
        weights = experiment_of(name).pages.weights
        if weights is not None and site.split(entry, name) == split:
            kept = site.results.lists(table, weights.own, list(texts))
            return {
                place: prediction.paint_beginning(example.passage, kept[place], LONGEST_SNIPPET)
                for place, example in texts.items()
                if len(kept.get(place, ())) == len(example.passage)
            }
    return {}


def _shades(values: Floats, span: tuple[float, float]) -> list[int]:
    """How strong the colour of each value is, 0 to LEVELS, by its place in the range of all."""
    low, high = span
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return [int(level) for level in np.round(LEVELS * np.nan_to_num(share).clip(0, 1))]


def _mean(values: Floats) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else None


def _holder(entry: RunEntry, experiment: str, split: str, state: str, parameter: str) -> dict[str, str]:
    """What the script needs to know to make an address of what was clicked."""
    from heedful.figures.drawing import class_names

    return {
        "action": run_address(entry.name, experiment),
        "state": state,
        "group": parameter,
        "text": run_address(entry.name, "examples", "PLACE", split=split),
        "classes": json.dumps(class_names(entry.labels)),
    }


def _links(
    entry: RunEntry,
    values: Floats,
    frame: Frame,
    edges: NDArray[np.float64],
    selection: RowSelection,
    here: Callable[..., str],
    ends: tuple[str, str],
) -> list[dict[str, Any]]:
    """The bars of a histogram as links: for those who do not see it, and without script."""
    edges = np.round(edges, DIGITS)
    rounded = np.round(values, DIGITS)
    now = tuple(selection.query[end] for end in ends)
    links = []
    for i, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        inside = (rounded >= low) & ((rounded < high) if i < len(edges) - 2 else (rounded <= high))
        counts = {label: int((frame.predicted[inside] == label).sum()) for label in np.unique(frame.predicted)}
        current = now == (low, high)
        change = dict.fromkeys(ends) if current else dict(zip(ends, (low, high), strict=True))
        links.append(
            {
                "low": low,
                "high": high,
                "texts": int(inside.sum()),
                "labels": _said(entry, counts),
                "href": here(**change, undefined=None),
                "current": current,
                "key": f"{ends[0]}-{i}",
            }
        )
    return links


def _said(entry: RunEntry, counts: dict[int, int]) -> Sequence[str]:
    """By label, where there are several but not many."""
    if not 1 < len(counts) <= 4:
        return []
    return [f"{visible(entry.label(label), 40)} {n}" for label, n in counts.items() if n]
