"""`/runs/<run>`: what was trained, its score, and the shape of every result. `/compare`: two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, experiment_of
from heedful.figures.figure import Figure
from heedful.measure.columns import Floats, Ints
from heedful.server.answer import answer, number, page, run_address, wants_json
from heedful.server.pages.overview import SCORES, sparkline
from heedful.server.site import Site, choice
from heedful.server.stored.library import RunEntry
from heedful.server.stored.measures import MeasureOf, measures
from heedful.server.stored.results import total
from heedful.server.stored.verdicts import verdict_json

POINTS = 500
MANY = 24  # measures: more stand folded on a run's page


def run_page(site: Site, request: Request, name: str) -> Response:
    entry = site.library.find(name)
    known = measures()
    shown = [_of_run(site, entry, key, measure) for key, measure in known.items()]
    data = {
        "run": entry.name,
        "dataset": entry.dataset,
        "task": entry.info.get("task"),
        "labels": list(entry.labels),
        "config": entry.info["config"],
        "data": entry.info.get("data", {}),
        "vectors": entry.info.get("vectors"),
        "versions": entry.info.get("versions", {}),
        "performance": entry.performance,
        "judged": site.verdicts.page(entry, site.library.entries().values()),
        "audit": entry.run.audit(),
        "measures": [m for m in shown if m is not None],
        "experiments": list(entry.tables),
        "summaries": entry.summaries,
    }
    drawn = {m["experiment"] for m in data["measures"]}
    return answer(
        request,
        "run.html",
        data,
        entry=entry,
        drawings={m["measure"]: _drawing(m) for m in data["measures"]},
        addresses={m["measure"]: known[m["measure"]].address(entry.name) for m in data["measures"]},
        readings={m["measure"]: known[m["measure"]].column.reading for m in data["measures"]},
        others={name: experiment_of(name).question for name in entry.tables if name not in drawn},
        all_experiments=list(EXPERIMENTS),
        scores=SCORES,
        playable=entry.playable,
        many=MANY,
        comparable=len(site.library.entries()) > 1,
    )


def compare_page(site: Site, request: Request) -> Response:
    """Two runs side by side; where both have rows for the same texts, text against text."""
    names = [request.query_params.get(side, "") for side in ("a", "b")]
    entries = site.library.entries()
    if not all(names):
        if len(entries) < 2:
            if wants_json(request):
                raise Mistake("a comparison needs two runs, and there are fewer here.")
            return page("compare.html", {"a": None, "runs": list(entries)})
        others = [name for name in entries if name not in names]
        names = [given or others.pop(0) for given in names]
    a, b = (site.library.find(name) for name in names)
    known = measures()
    sides = [
        {m["measure"]: m for key, measure in known.items() if (m := _of_run(site, e, key, measure))} for e in (a, b)
    ]
    common = [key for key in known if key in sides[0] and key in sides[1]]
    measure_name = choice(request, "measure", list(known), (common or list(known))[0])
    measure = known[measure_name]
    split = site.split(a, measure.experiment.name)
    places, x, y = _same_texts(site, a, b, measure, split)
    data = {
        "a": _about(a),
        "b": _about(b),
        "verdicts": _verdicts(site, a, b),
        "measures": {key: {"a": sides[0].get(key), "b": sides[1].get(key)} for key in known},
        "measure": measure_name,
        "matched": len(places),
        "pearson": _pearson(x, y),
    }
    return answer(
        request,
        "compare.html",
        data,
        entries=list(entries),
        drawings=[{key: _drawing(m) for key, m in side.items()} for side in sides],
        measures=known,
        scores=SCORES,
        figure=_scatter(site, (a, b), measure, places, x, y) if len(places) else None,
        text=run_address(a.name, "examples", "PLACE", split=split),
        playable={side: e.playable and bool(e.tables) for side, e in (("a", a), ("b", b))},
    )


def _verdicts(site: Site, a: RunEntry, b: RunEntry) -> list[dict[str, Any]]:
    """By question, what each of the two is told; None where it was not asked."""
    sides = [site.verdicts.of(entry) for entry in (a, b)]
    names = [name for name in EXPERIMENTS if name in sides[0] or name in sides[1]]
    return [
        {
            "question": EXPERIMENTS[name].question,
            **{key: verdict_json(side[name]) if name in side else None for key, side in zip("ab", sides, strict=True)},
        }
        for name in names
    ]


def _about(entry: RunEntry) -> dict[str, Any]:
    told = ("dataset", "encoder", "attention", "seed", "performance")
    return {"run": entry.name, **{name: getattr(entry, name) for name in told}}


def _of_run(site: Site, entry: RunEntry, key: str, measure: MeasureOf) -> dict[str, Any] | None:
    files = list(measure.files([entry]).values())
    if not files:
        return None
    span = measure.range(site.results, files)
    bins = total(measure.counts(site.results, files, span)[files[0]])
    if not bins:
        return None
    return {
        "measure": key,
        "title": measure.title,
        "experiment": measure.experiment.name,
        "group": measure.measure.group,
        "column": measure.measure.column,
        **{name: measure.number(entry, name) for name in ("mean", "low", "high", "sig_frac")},
        **{sign: measure.number(entry, f"significant.{sign}") for sign in ("positive", "negative")},
        "range": span,
        "counts": bins,
    }


def _drawing(shown: dict[str, Any]) -> Any:
    said = f"{shown['title']}: mean {number(shown['mean'])} over {sum(shown['counts'])} texts"
    low, high = shown["range"]
    return sparkline(shown["counts"], low, high, shown["mean"], said)


def _same_texts(site: Site, a: RunEntry, b: RunEntry, measure: MeasureOf, split: str) -> tuple[Ints, Floats, Floats]:
    """(places, A's values, B's values) of the same texts: only where both were made from the same data."""
    name, nothing = measure.experiment.name, np.zeros(0)
    same = a.info.get("data", {}).get("fingerprint") == b.info.get("data", {}).get("fingerprint")
    if not same or not all(name in e.tables for e in (a, b)) or site.split(b, name) != split:
        return np.zeros(0, dtype=np.int64), nothing, nothing
    x, y = (site.results.frame(e.tables[name], measure.measure.column, measure.group) for e in (a, b))
    common, in_x, in_y = np.intersect1d(x.example, y.example, return_indices=True)
    defined = np.flatnonzero(~np.isnan(x.value[in_x]) & ~np.isnan(y.value[in_y]))
    kept = defined[:: max(1, -(-len(defined) // POINTS))]
    return common[kept], x.value[in_x[kept]], y.value[in_y[kept]]


def _scatter(
    site: Site, runs: tuple[RunEntry, RunEntry], measure: MeasureOf, places: Ints, x: Floats, y: Floats
) -> Figure:
    """Text against text, each point a text."""
    from heedful.figures.drawing import TOGETHER, against, dots

    span = measure.range(site.results, list(measure.files(runs).values()))
    everywhere = np.arange(len(places))
    rows = dots(places, x, y, everywhere, np.zeros_like(everywhere), [TOGETHER])
    said = f"{measure.title} of the same texts under both models: each point is a text."
    titles = (f"A: {measure.short}", f"B: {measure.short}")
    return Figure("compare", measure.title, said, said, against(rows, [TOGETHER], titles, span, said))


def _pearson(x: Floats, y: Floats) -> float | None:
    if len(x) < 3:
        return None
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else None
