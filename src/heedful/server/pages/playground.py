"""`/runs/<run>/playground`: type a text, move its attention, change its words, and see the prediction move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.records import Example
from heedful.server.answer import answer, as_json, wants_json
from heedful.server.guard import LONGEST_TEXT, MOST_WORDS, checked_text
from heedful.server.live import prediction
from heedful.server.live.inference import LoadedModel, methods_named, offered
from heedful.server.live.self_attention import heads_of
from heedful.server.pages.instance import instance
from heedful.server.site import Site
from heedful.server.stored.library import Missing, RunEntry

FURTHEST = 10**9  # place of a text
Look = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


async def see(site: Site, request: Request, name: str) -> Response:
    """The page comes at once, and its script asks; with `live=1`, and as JSON, the answer is part of it."""
    asked = dict(request.query_params)
    if wants_json(request) or asked.get("live") == "1":
        return await site.models.long.ask(request, lambda: ask(site, request, name, asked))
    return await run_in_threadpool(_page, site, request, name, asked)


def ask(site: Site, request: Request, name: str, asked: dict[str, Any]) -> Response:
    """`asked`: text, query, methods, target, and an edit {position, word} whose effect is to be seen."""
    return _page(site, request, name, asked, _look)


def _page(site: Site, request: Request, name: str, asked: dict[str, Any], look: Look | None = None) -> Response:
    entry = site.library.find(name)
    text = checked_text(asked.get("text") or "", "text")
    query = checked_text(asked.get("query") or "", "query")
    has_query = entry.info.get("task") != "classification"
    data: dict[str, Any] = {"run": entry.name, "task": entry.info.get("task"), "text": text, "query": query or None}
    view = None
    names = asked.get("methods") or []
    names = names.split(",") if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(m, str) for m in names):
        raise Mistake("methods are to be a list of names.")
    methods = methods_named(given := [m for m in names if m], entry)
    recommended = entry.recommended()
    complete = bool(text.strip() and (query.strip() or not has_query))
    if look is not None and complete:
        model = site.models.get(entry)
        told, view = look(model, entry.name, given, text, query, asked)
        data |= told
        view = dict(view, recommended=_name(recommended))
        methods = tuple(a["method"] for a in told["attributions"])
    else:
        site.models.expect(entry)
    return answer(
        request,
        "playground.html",
        data,
        entry=entry,
        view=view,
        recommended=recommended,
        has_query=has_query,
        limits=(LONGEST_TEXT, MOST_WORDS),
        methods=methods,
        given=given,
        known_methods=offered(entry),
        waiting=complete and view is None,
    )


def _name(recommended: tuple[str, str] | None) -> str:
    return "" if recommended is None else recommended[0]


def _look(
    model: LoadedModel, run: str, methods: list[str], text: str, query: str, asked: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what the model says, as JSON values; what only the page needs)."""
    target = asked.get("target") or None
    example, before = _example(model, text, query, asked)
    named = model.methods(methods, example)
    said_before = None if before is None else _before(model, before)
    data, explained = prediction.look(model, example, named, None if target is None else str(target))
    data["before"] = said_before
    source = {"text": data["text"], "query": data["query"]}
    more = {"other": None, "source": source, "editable": True, "before": data["before"]}
    return data, prediction.draw(model, example, data, explained) | more | {"heads": heads_of(model, run, source)}


def _example(model: LoadedModel, text: str, query: str, asked: dict[str, Any]) -> tuple[Example, Example | None]:
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
    return {"text": example.passage.text, "probabilities": p.tolist(), "predicted": model.model.labels[int(p.argmax())]}


def subject(site: Site, name: str, asked: dict[str, Any]) -> tuple[RunEntry, Example]:
    """What a question is about: a text that was typed, or an instance by its place."""
    if "example" in asked:
        place, split = asked["example"], asked.get("split")
        if not isinstance(place, int) or isinstance(place, bool) or not (split is None or isinstance(split, str)):
            raise Mistake("an instance is named by {example: place, split: name}.")
        if not 0 <= place < FURTHEST:
            raise Missing(f"{str(place)[:40]} is not the place of a text: a whole number of at most nine digits is.")
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
