"""`/runs/<run>/attention`: every head of every layer on one text, what each is worth, and what changing it does."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments.attention.head_changes import Changes, Operation
from heedful.experiments.attention.heads import DONE, HEADS, worth_of_heads
from heedful.explanation.drawing import LEVELS, visible
from heedful.server.answer import answer, run_address
from heedful.server.live.self_attention import (
    MOST_PIECES,
    Heads,
    Window,
    can_be_changed,
    cost_of_measuring,
    cut_to,
    find_windows,
    look_into_heads,
    measure_heads,
    read_changes,
)
from heedful.server.pages.playground import subject
from heedful.server.site import Site
from heedful.server.stored.library import RunEntry

EXPERIMENT = HEADS.name
LONGEST_PIECE = 24
Worth = dict[str, Any]


def asked_by(request: Request) -> dict[str, Any]:
    """What stands in an address, as the body of a POST would have it."""
    query = request.query_params
    asked: dict[str, Any] = {name: query[name] for name in query}
    place = asked.get("example")
    if place is not None:
        asked["example"] = int(place) if place.isascii() and place.isdecimal() and len(place) < 10 else place
    return asked | {name: query.getlist(name) for name in DONE if name in query}


async def ask_heads(site: Site, request: Request, name: str, asked: dict[str, Any]) -> Response:
    """Measuring every head takes long; all else is two passes."""
    lane = site.models.long if str(asked.get("measure") or "") == "1" else site.models.quick
    return await lane.ask(request, lambda: heads_page(site, request, name, asked))


def heads_page(site: Site, request: Request, name: str, asked: dict[str, Any]) -> Response:
    """`asked`: a text or an instance (as for decode), layer, head, uniform and off (lists), measure, window."""
    entry, example = subject(site, name, asked)
    model = site.models.get(entry)
    windows = find_windows(model, example)
    window = windows[_number(asked, "window", len(windows))]
    part = cut_to(model, example, window)
    own = look_into_heads(model, part, {})
    layers, heads = own.weights.shape[:2]
    changes: dict[tuple[int, int], Any] = {}
    for operation in DONE:
        changes |= read_changes(_list(asked, operation), operation, layers, heads)
    editable = can_be_changed(model)
    if changes and not editable:
        raise Mistake(f"{model.model.name} cannot be asked under other attention weights.")
    found = look_into_heads(model, part, changes)
    measured = measure_heads(model, part, own) if str(asked.get("measure") or "") == "1" else None
    stored = _stored(site, entry, asked) if window.of == 1 else []
    worth = _worth(entry, stored if measured is None else measured)
    layer, head = worth_most(worth) if asked.get("layer") is asked.get("head") is None else (None, None)
    if layer is None or head is None or layer >= layers or head >= heads:
        layer, head = _number(asked, "layer", layers), _number(asked, "head", heads)
    source = {name: asked[name] for name in ("text", "query", "example", "split") if asked.get(name) is not None}
    data = {
        "run": entry.name,
        "text": part.passage.text,
        "query": None if part.query is None else part.query.text,
        "window": {"number": window.number, "of": window.of, "first": window.first, "last": window.last},
        "layers": layers,
        "heads": heads,
        "layer": layer,
        "head": head,
        "pieces": [{"text": p.text, "word": p.word, "part": p.part} for p in found.pieces],
        "begin": found.begin,
        "n_pieces": found.n_pieces,
        "weights": np.round(found.weights[layer, head].astype(np.float64), 5).tolist(),
        "every_head": b64encode(_bytes(found)).decode(),  # (layers, heads, pieces, pieces), 255 sqrt(weight)
        "changes": [{"layer": a, "head": b, "operation": done} for (a, b), done in sorted(changes.items())],
        "editable": editable,
        "labels": list(model.model.labels),
        "before": found.before,
        "after": found.after,
        "predicted_before": model.model.labels[int(found.before.argmax())],
        "predicted": model.model.labels[int(found.after.argmax())],
        "change": found.distance,
        "worth": worth,
        "measured": measured is not None,
        "source": source,
    }
    view = _view(entry, data, found, changes, windows)
    return answer(request, "attention.html", data, entry=entry, view=view)


def _bytes(found: Heads) -> bytes:
    """Square roots, so that small weights can still be told apart in a byte each."""
    roots: bytes = np.round(255 * np.sqrt(found.weights.clip(0, 1))).astype(np.uint8).tobytes()
    return roots


def _number(asked: dict[str, Any], name: str, most: int) -> int:
    given = str(asked.get(name) or 0)
    if not (given.isascii() and given.isdecimal() and len(given) < 6 and int(given) < most):
        raise Mistake(f"{name}={given[:40]}: it can be 0 to {most - 1} here.")
    return int(given)


def _list(asked: dict[str, Any], name: str) -> list[str]:
    given = asked.get(name) or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given) or len(given) > 4096:
        raise Mistake(f"{name} is to be a list of heads like 2.5, or of layers like 2.")
    return given


def _stored(site: Site, entry: RunEntry, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What the experiment found for this very text, where it was run on it."""
    place, split = asked.get("example"), asked.get("split")
    if EXPERIMENT not in entry.tables or place is None or split not in (None, site.split(entry, EXPERIMENT)):
        return []
    return site.results.rows(entry.tables[EXPERIMENT], int(place))


def _worth(entry: RunEntry, here: list[dict[str, Any]]) -> list[Worth]:
    """For each head and operation the mean over the run's texts with its interval, and the change on this text."""
    on_this = {(row["layer"], row["head"], row["operation"]): row for row in here}
    in_all = worth_of_heads(entry.summaries.get(EXPERIMENT, {}))
    return [
        {
            "layer": layer,
            "head": head,
            "operation": operation,
            **{k: in_all.get((layer, head, operation), {}).get(k) for k in ("mean", "low", "high", "n")},
            "here": on_this.get((layer, head, operation), {}).get("tvd"),
            "flipped": on_this.get((layer, head, operation), {}).get("flipped"),
        }
        for layer, head, operation in sorted(on_this.keys() | in_all.keys())
    ]


def worth_most(worth: list[Worth]) -> tuple[int | None, int | None]:
    """The head whose change moves the output most: over the run's texts where they were asked about, else on this
    one. (None, None) where nothing was measured."""
    for known in ("mean", "here"):
        sizes = [(one[known], -one["layer"], -one["head"]) for one in worth if one[known] is not None]
        if sizes:
            _, layer, head = max(sizes)
            return -layer, -head
    return None, None


def _view(
    entry: RunEntry, data: dict[str, Any], found: Heads, changes: Changes, windows: list[Window]
) -> dict[str, Any]:
    """What only the page needs. Names of pieces are shown as signs and cut, whatever they hold."""
    names = [visible(piece.text, LONGEST_PIECE).replace("\n", "␊").replace("\t", "␉") for piece in found.pieces]
    weights = found.weights[data["layer"], data["head"]]
    passes, tokens = cost_of_measuring(found)
    by_head = {(w["layer"], w["head"], w["operation"]): w for w in data["worth"]}
    known = "mean" if any(w["mean"] is not None for w in data["worth"]) else "here"
    sizes = {
        (a, b): by_head[a, b, "uniform"][known]
        for a, b, done in by_head
        if done == "uniform" and by_head[a, b, done][known] is not None
    }
    top = max(sizes.values(), default=0.0) or 1.0
    return {
        "names": names,
        "special": [piece.word is None for piece in found.pieces],
        "levels": np.round(LEVELS * np.sqrt(weights.clip(0, 1))).astype(int).tolist(),
        "row": found.reads,
        "row_levels": np.round(LEVELS * np.sqrt(weights[found.reads].clip(0, 1))).astype(int).tolist(),
        "grid": [
            [_cell(a, b, changes, sizes.get((a, b)), top) for b in range(data["heads"])] for a in range(data["layers"])
        ],
        "known": known,
        "here_known": any(w["here"] is not None for w in data["worth"]),
        "size": "large" if len(names) <= 20 else "medium" if len(names) <= 34 else "small",
        "of_head": {done: by_head.get((data["layer"], data["head"], done)) for done in DONE},
        "done": DONE,
        "order": np.argsort(-found.before, kind="stable")[:6].tolist(),
        "passes": passes,
        "tokens": tokens,
        "most": MOST_PIECES,
        "cut": found.n_pieces - len(names),
        "windows": windows,
        "address": run_address(entry.name, "attention"),
        "here": lambda **more: run_address(entry.name, "attention", **(_state(data, changes) | more)),
        "with_change": lambda done, layer, head: run_address(
            entry.name, "attention", **_state(data, _changed(changes, done, layer, head, data["heads"]))
        ),
    }


def _cell(layer: int, head: int, changes: Changes, size: float | None, top: float) -> dict[str, Any]:
    done = changes.get((layer, head))
    said = f"layer {layer}, head {head}"
    said += f", {DONE[done]}" if done else ""
    said += "" if size is None else f", made uniform it changes the output by {size:.3f}"
    share = 0.0 if size is None else 100 * size / top
    return {"head": head, "said": said, "done": done, "share": share, "known": size is not None}


def _changed(changes: Changes, done: Operation | None, layer: int, head: int | None, heads: int) -> Changes:
    which = range(heads) if head is None else [head]
    rest = {place: how for place, how in changes.items() if place not in {(layer, one) for one in which}}
    return rest if done is None else rest | {(layer, one): done for one in which}


def _state(data: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """What stands in an address: a layer whose heads are all changed alike is named once."""
    lists: dict[str, list[str]] = {done: [] for done in DONE}
    for layer in range(data["layers"]):
        of_layer = [changes.get((layer, head)) for head in range(data["heads"])]
        for done in DONE:
            if all(one == done for one in of_layer):
                lists[done].append(str(layer))
            else:
                lists[done] += [f"{layer}.{head}" for head, one in enumerate(of_layer) if one == done]
    more = {"window": data["window"]["number"] or None, "measure": 1 if data["measured"] else None}
    return {**data["source"], "layer": data["layer"], "head": data["head"], **lists, **more}
