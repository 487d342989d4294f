"""`/runs/<run>/examples/<n>`: one text, what the experiments found, and the model's own answers."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import Experiment, experiment_of
from heedful.experiments.framework.description import WeightsPair
from heedful.records import Example
from heedful.server.answer import answer, run_address
from heedful.server.live import prediction
from heedful.server.live.inference import methods_named, offered
from heedful.server.live.self_attention import heads_of
from heedful.server.pages.experiment import drawable
from heedful.server.site import Site
from heedful.server.stored.library import Missing, RunEntry
from heedful.server.stored.measures import group_parameter
from heedful.server.stored.texts import NotReady


def instance(site: Site, name: str, place: int, split: str | None) -> tuple[RunEntry, str, Example]:
    """A text by its place, for a question to the model."""
    entry = site.library.find(name)
    split = split or site.split(entry)
    found = site.texts.get(entry, split, [place], patience=60.0)
    if place not in found:
        raise Missing(f"the {split} split of {entry.dataset} has no text at place {place}.")
    return entry, split, found[place]


async def instance_page(site: Site, request: Request, name: str, place: int) -> Response:
    """What is stored comes at once, without torch; with `live=1` or `methods=` the model is asked, too."""
    methods = _methods(request)
    if methods or request.query_params.get("live") == "1":
        return await site.models.long.ask(request, lambda: asked_page(site, request, name, place, methods))
    return await to_thread.run_sync(stored_page, site, request, name, place, limiter=site.drawing)


def _methods(request: Request) -> list[str]:
    """`methods=lrp,omission` or `methods=lrp&methods=omission`."""
    return [name for given in request.query_params.getlist("methods") for name in given.split(",") if name]


def stored_page(site: Site, request: Request, name: str, place: int) -> Response:
    data, more = _stored(site, request, name, place)
    return answer(request, "instance.html", data, view=None, **more)


def asked_page(site: Site, request: Request, name: str, place: int, methods: list[str]) -> Response:
    entry, _, example = instance(site, name, place, request.query_params.get("split"))  # waits for the corpus
    data, more = _stored(site, request, name, place)
    model = site.models.get(entry)
    looked, explained = prediction.look(model, example, model.methods(methods, example), None)
    source = {"example": place, "split": data["split"]}
    view = prediction.draw(model, example, looked, explained) | {
        "other": _other_weights(data["results"], len(example.passage)),
        "source": source,
        "editable": False,
        "before": None,
        "heads": heads_of(model, entry.name, source),
        "recommended": (entry.recommended() or ("", ""))[0],
    }
    return answer(request, "instance.html", data | {"live": looked}, view=view, **more)


def _weights(results: dict[str, list[dict[str, Any]]], words: int) -> tuple[WeightsPair, dict[str, Any]] | None:
    """The first experiment that has kept weights of the words of this text, and its row."""
    for experiment, rows in results.items():
        weights = experiment_of(experiment).pages.weights
        if weights is not None:
            kept = [rows[0].get(name) for name in (weights.own, weights.other)]
            if all(isinstance(one, list) and len(one) == words for one in kept):
                return weights, rows[0]
    return None


def _other_weights(results: dict[str, list[dict[str, Any]]], words: int) -> list[float] | None:
    found = _weights(results, words)
    return None if found is None else found[1][found[0].other]


def _stored(site: Site, request: Request, name: str, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
    entry = site.library.find(name)
    split = request.query_params.get("split") or site.split(entry)
    results = {
        experiment: site.results.rows(table, place)
        for experiment, table in entry.tables.items()
        if site.split(entry, experiment) == split
    }
    results = {experiment: rows for experiment, rows in results.items() if rows}
    example, note = None, ""
    try:
        example = site.texts.get(entry, split, [place]).get(place)
        if example is None and not results:
            raise Missing(f"the {split} split of {entry.dataset} has no text at place {place}.")
    except NotReady as wait:
        note = f"wait: {wait}"
    except Missing:
        raise
    except Mistake as error:
        if not results:
            raise
        note = str(error)
    predicted = next((row["predicted"] for rows in results.values() for row in rows if "predicted" in row), None)
    data: dict[str, Any] = {
        "run": entry.name,
        "split": split,
        "example": place,
        "id": None if example is None else example.id,
        "text": None if example is None else example.passage.text,
        "query": None if example is None or example.query is None else example.query.text,
        "truth": None if example is None or example.label is None else entry.label(example.label),
        "predicted": None if predicted is None else entry.label(int(predicted)),
        "words": None if example is None else [*example.passage.forms],
        "results": results,
    }
    more = {
        "entry": entry,
        "note": note,
        "methods": methods_named(_methods(request), entry),
        "known_methods": offered(entry),
        "facts": _facts(site, entry, results),
        "stored": _heatmaps(example, results),
        "here": run_address(entry.name, "examples", place, split=split),
        "neighbours": [
            (side, run_address(entry.name, "examples", at, split=split))
            for side, at in (("previous", place - 1), ("next", place + 1))
            if at >= 0
        ],
        "playable": entry.playable,
        "playground": run_address(entry.name, "playground", text=_short(data["text"]), query=_short(data["query"])),
    }
    return data, more


def _short(text: str | None) -> str | None:
    return text if text is not None and len(text) <= 3000 else None


def _heatmaps(example: Example | None, results: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Weights of the words as they were stored, where the text is at hand."""
    found = None if example is None else _weights(results, len(example.passage))
    if example is None or found is None:
        return {}
    weights, row = found
    names = zip(weights.titles, (weights.own, weights.other), strict=True)
    return {title[0].upper() + title[1:]: prediction.paint(example, row[name]) for title, name in names}


def _facts(site: Site, entry: RunEntry, results: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each number of this text, and the share of the run's texts that are below it."""
    facts = []
    for name, rows in results.items():
        table, about = entry.tables[name], experiment_of(name)
        for column in _columns(site, entry, about):
            for row, below in zip(rows, site.results.below(table, column, rows, about.by), strict=True):
                group = row.get(about.by) if about.by is not None else None
                named = {} if group is None else {group_parameter(str(about.by)): group}
                facts.append(
                    {
                        "experiment": name,
                        "group": None if group is None else about.pages.group_title(str(group)),
                        "column": column,
                        "title": about.column(column).title,
                        "value": row[column],
                        "below": below,
                        "href": run_address(entry.name, name, **named, column=column),
                    }
                )
    return facts


def _columns(site: Site, entry: RunEntry, about: Experiment) -> list[str]:
    """The columns of its measures; of an experiment without measures, the first that can be drawn."""
    known = drawable(site, about, entry.tables[about.name])
    own = dict.fromkeys(measure.column for measure in about.measures if measure.column in known)
    return list(own) or known[:1]
