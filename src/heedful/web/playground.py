"""`/runs/<run>/playground`: type a text, move its attention, change its words, and see the prediction move."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.records import Example
from heedful.web import prediction
from heedful.web.answer import answer, as_json
from heedful.web.guard import LONGEST_TEXT, MOST_WORDS, checked_text
from heedful.web.inference import KNOWN, LoadedModel, methods_named
from heedful.web.instance_page import instance
from heedful.web.library import Entry
from heedful.web.site import Site


def playground(site: Site, request: Request, name: str, asked: dict[str, Any]) -> Response:
    """`asked`: text, query, methods, target, and an edit {position, word} whose effect is to be seen."""
    entry = site.library.find(name)
    text = checked_text(asked.get("text") or "", "text")
    query = checked_text(asked.get("query") or "", "query")
    has_query = entry.info.get("task") != "classification"
    data: dict[str, Any] = {
        "run": entry.name,
        "task": entry.info.get("task"),
        "text": text,
        "query": query or None,
    }
    view = None
    names = asked.get("methods") or []
    names = names.split(",") if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(m, str) for m in names):
        raise Mistake("methods are to be a list of names.")
    methods, target = methods_named(given := [m for m in names if m]), asked.get("target") or None
    if text.strip() and (query.strip() or not has_query):
        model = site.models.get(entry)
        methods = model.methods(given)
        example, before = _example(model, text, query, asked)
        looked, explained = prediction.look(model, example, methods, None if target is None else str(target))
        data |= looked
        data["before"] = None if before is None else _before(model, before)
        view = {
            "drawn": prediction.heatmaps(explained),
            "text": prediction.paint(example, looked["attention"]),
            "sliders": prediction.sliders(example, looked["attention"]),
            "legend": prediction.legend(),
            "other": None,
            "source": {"text": looked["text"], "query": looked["query"]},
            "editable": True,
            "before": data["before"],
        }
    else:
        site.models.expect(entry)
    return answer(
        request,
        "playground.html",
        data,
        entry=entry,
        view=view,
        has_query=has_query,
        limits=(LONGEST_TEXT, MOST_WORDS),
        methods=methods,
        known_methods=KNOWN,
    )


def _example(
    model: LoadedModel, text: str, query: str, asked: dict[str, Any]
) -> tuple[Example, Example | None]:
    """The text to look at, and the one before the edit, where there was one."""
    example = model.example(text, query)
    edit, before = asked.get("edit"), asked.get("before")
    if edit is not None:
        if not isinstance(edit, dict):
            raise Mistake("an edit is to be {position, word}.")
        return model.edited(example, edit.get("position"), edit.get("word")), example
    return example, model.example(before, query) if isinstance(before, str) and before.strip() else None


def _before(model: LoadedModel, example: Example) -> dict[str, Any]:
    p = model.predict(example)
    return {
        "text": example.passage.text,
        "probabilities": p.tolist(),
        "predicted": model.model.labels[int(p.argmax())],
    }


def subject(site: Site, name: str, asked: dict[str, Any]) -> tuple[Entry, Example]:
    """What a question is about: a text that was typed, or an instance by its place."""
    if "example" in asked:
        place, split = asked["example"], asked.get("split")
        if (
            not isinstance(place, int)
            or isinstance(place, bool)
            or not (split is None or isinstance(split, str))
        ):
            raise Mistake("an instance is named by {example: place, split: name}.")
        entry, _, example = instance(site, name, place, split)
        return entry, example
    entry = site.library.find(name)
    return entry, site.models.get(entry).example(asked.get("text"), asked.get("query"))


def decode(site: Site, name: str, asked: dict[str, Any]) -> Response:
    """The prediction under given attention weights."""
    entry, example = subject(site, name, asked)
    return as_json(site.models.get(entry).decode(example, asked.get("weights")))


def adversary(site: Site, name: str, asked: dict[str, Any]) -> Response:
    """The attention that changes most and the prediction least."""
    entry, example = subject(site, name, asked)
    return as_json(site.models.get(entry).adversary(example, asked.get("epsilon")))
