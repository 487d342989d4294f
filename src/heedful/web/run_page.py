"""`/runs/<run>`: what was trained, its score, and the shape of every result. `/compare`: two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, find
from heedful.report.grades import MARKS
from heedful.web import charts
from heedful.web.answer import answer, number, run_address
from heedful.web.experiment_page import MOST_POINTS
from heedful.web.library import Entry
from heedful.web.measures import COLUMNS, MEASURES, Measure
from heedful.web.overview import BINS, SCORES, mean_of
from heedful.web.results import total
from heedful.web.site import Site, choice


def run_page(site: Site, request: Request, name: str) -> Response:
    entry = site.library.find(name)
    measured = [_measured(site, entry, key, measure) for key, measure in MEASURES.items()]
    data = {
        "run": entry.name,
        "dataset": entry.dataset,
        "task": entry.info.get("task"),
        "labels": entry.labels,
        "config": entry.info["config"],
        "data": entry.info.get("data", {}),
        "vectors": entry.info.get("vectors"),
        "versions": entry.info.get("versions", {}),
        "performance": entry.performance,
        "judged": site.judge.verdicts(entry),
        "measures": [m for m in measured if m is not None],
        "experiments": list(entry.tables),
        "summaries": entry.summaries,
    }
    drawings = {m["measure"]: _drawing(m) for m in data["measures"]}
    return answer(
        request,
        "run.html",
        data,
        entry=entry,
        drawings=drawings,
        questions={name: find(name).question for name in EXPERIMENTS},
        columns=COLUMNS,
        measures=MEASURES,
        scores=SCORES,
        marks=MARKS,
        playable=(entry.path / "model.safetensors").is_file(),
    )


def compare_page(site: Site, request: Request) -> Response:
    """Two runs side by side; where both have rows for the same texts, text against text."""
    names = [request.query_params.get(side, "") for side in ("a", "b")]
    entries = site.library.entries()
    if not all(names):
        if len(entries) < 2:
            raise Mistake("two runs are needed for a comparison, and there are fewer.")
        names = [given or other for given, other in zip(names, entries, strict=False)]
    a, b = (site.library.find(name) for name in names)
    sides = [
        {m["measure"]: m for key, measure in MEASURES.items() if (m := _measured(site, e, key, measure))}
        for e in (a, b)
    ]
    common = [key for key in MEASURES if key in sides[0] and key in sides[1]]
    measure_name = choice(request, "measure", list(MEASURES), common[0] if common else "tau_g")
    points = _matched(site, a, b, MEASURES[measure_name])
    data = {
        "a": _described(a),
        "b": _described(b),
        "measures": {key: {"a": sides[0].get(key), "b": sides[1].get(key)} for key in MEASURES},
        "measure": measure_name,
        "matched": len(points),
        "correlation": _pearson(points),
    }
    measure = MEASURES[measure_name]
    span = (measure.low, measure.high)
    titles = (f"{measure.title}: each point is a text", f"A: {measure.short}", f"B: {measure.short}")
    return answer(
        request,
        "compare.html",
        data,
        entries=list(entries),
        drawings=[{key: _drawing(m) for key, m in side.items()} for side in sides],
        measures=MEASURES,
        scores=SCORES,
        scatter=charts.scatter(points, span, span, titles) if points else None,
    )


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "run": entry.name,
        "dataset": entry.dataset,
        "encoder": entry.encoder,
        "attention": entry.attention,
        "seed": entry.seed,
        "performance": entry.performance,
    }


def _measured(site: Site, entry: Entry, key: str, measure: Measure) -> dict[str, Any] | None:
    if measure.experiment not in entry.tables:
        return None
    table = entry.tables[measure.experiment]
    counts = site.results.histograms([table], measure.column, measure.pair, measure.low, measure.high, BINS)
    bins = total(counts[table])
    if not bins:
        return None
    summary: Any = entry.summaries.get(measure.experiment, {})
    for step in (measure.pair, "overall", measure.column if measure.pair else None):
        if step is not None:
            summary = summary.get(step, {}) if isinstance(summary, dict) else {}
    return {
        "measure": key,
        "title": measure.title,
        "experiment": measure.experiment,
        "pair": measure.pair,
        "column": measure.column,
        "mean": mean_of(entry, measure),
        "low": summary.get("low"),
        "high": summary.get("high"),
        "sig_frac": summary.get("sig_frac"),
        "counts": bins,
    }


def _drawing(measured: dict[str, Any]) -> Any:
    measure = MEASURES[measured["measure"]]
    said = f"{measure.title}: mean {number(measured['mean'])} over {sum(measured['counts'])} texts"
    return charts.mini(measured["counts"], measure.low, measure.high, measured["mean"], said)


def _matched(site: Site, a: Entry, b: Entry, measure: Measure) -> list[charts.Point]:
    """The same text under both models: only where both were made from the same data."""
    same = a.info.get("data", {}).get("fingerprint") == b.info.get("data", {}).get("fingerprint")
    if not same or not all(measure.experiment in e.tables for e in (a, b)):
        return []
    split = site.split(a, measure.experiment)
    if split != site.split(b, measure.experiment):
        return []
    x, y = (site.results.frame(e.tables[measure.experiment], measure.column, measure.pair) for e in (a, b))
    common, in_x, in_y = np.intersect1d(x.example, y.example, return_indices=True)
    defined = np.flatnonzero(~np.isnan(x.value[in_x]) & ~np.isnan(y.value[in_y]))
    step = max(1, -(-len(defined) // MOST_POINTS))
    return [
        charts.Point(
            x=float(x.value[in_x[i]]),
            y=float(y.value[in_y[i]]),
            label=0,
            chosen=True,
            href=run_address(a.name, "examples", int(common[i]), split=split),
            title=f"text {int(common[i])}: A {x.value[in_x[i]]:.3f}, B {y.value[in_y[i]]:.3f}",
        )
        for i in defined[::step]
    ]


def _pearson(points: list[charts.Point]) -> float | None:
    if len(points) < 3:
        return None
    x, y = np.array([p.x for p in points]), np.array([p.y for p in points])
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else None
