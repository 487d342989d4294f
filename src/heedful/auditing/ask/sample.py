"""A few texts explained by each method of an audit: what a method costs, and whether it keeps its own promises."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.auditing.outcome.standings import MethodCheck, MethodCost, MethodFacts
from heedful.engine.running.processors import stopped_after
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.explainers.declared import heads_of, sizes_of
from heedful.explainers.explainer import Explainer, Size
from heedful.explainers.run import explain
from heedful.explanation.explanation import Explanation
from heedful.measure.rank import spearman
from heedful.models.model import Model
from heedful.records import Example

FIRST, TEXTS = 3, 12  # texts of the first look, and of all
AGREES = 0.8  # Spearman's rho of two draws of a method that samples: below, its order is half chance


def explain_sample(
    model: Model, examples: Sequence[Example], methods: Sequence[str], seconds: float, progress: Progress
) -> tuple[dict[str, MethodFacts], Explanation]:
    """Each method on the same texts, as many as fit into the time; and the first of them explained by all.

    A method that is not done when twice its part of the time is over, or all of it, has the cost that it declares, and
    no checks.
    """
    each, end = seconds / max(1, len(methods)), time.perf_counter() + seconds
    texts = [example for example in examples if len(example.passage)][:TEXTS]
    found = known_of(methods, model, texts)
    shown: list[Explanation] = []
    with progress.bar("what each method costs and keeps", total=len(methods)) as bar:
        for name in methods:
            explainer = EXPLAINERS.find(name)
            try:
                left = min(2 * each, end - time.perf_counter())
                with stopped_after(left, "it takes longer than the time that was left for it."):
                    known, explained = _look(model, texts, explainer, each)
            except Mistake as mistake:  # a text too long for attention, a library that is not installed
                bar.note(f"{name}: {mistake}")
            else:
                found[name] = replace(found[name], checks=known[0], cost=known[1], unchecked=False)
                shown.append(explained)
            bar.advance(1)
    return found, _together(shown, model.name)


def _look(
    model: Model, texts: Sequence[Example], explainer: Explainer, seconds: float
) -> tuple[tuple[tuple[MethodCheck, ...], MethodCost], Explanation]:
    explain(model, texts[:1], [explainer.name])  # the first call is slow, whatever it does
    began = time.perf_counter()
    first = explain(model, texts[:FIRST], [explainer.name])
    took = time.perf_counter() - began
    each, explained = took / len(first), first
    if len(texts) > FIRST and each * len(texts) <= seconds:
        began = time.perf_counter()
        explained = explain(model, texts, [explainer.name])
        each = (time.perf_counter() - began) / len(texts)
    attributions = [one.attribution(explainer.name) for one in explained]
    cost = MethodCost(
        int(np.median([one.cost.forward for one in attributions])),
        int(np.median([one.cost.backward for one in attributions])),
        each,
    )
    checks = [*_axiom([one.check for one in attributions if one.check is not None])]
    if _samples(explainer):
        checks.append(_sampling(first, explain(model, texts[:FIRST], [explainer.name], seed=1)))
    return (tuple(checks), cost), first


def _axiom(checks: Sequence[Any]) -> list[MethodCheck]:
    if not checks:
        return []
    kept = sum(check.ok for check in checks)
    return [
        MethodCheck(
            checks[0].name, kept == len(checks), f"{checks[0].name} within bounds in {kept} of {len(checks)} texts"
        )
    ]


def _sampling(first: Explanation, second: Explanation) -> MethodCheck:
    """Two draws of the same method on the same texts: is the order of the words the same?"""
    rhos = []
    for one, other in zip(first, second, strict=True):
        a, b = (np.abs(e.attributions[0].scores["passage"])[None] for e in (one, other))
        rhos.append(float(spearman(a, b, np.ones_like(a, dtype=np.bool_))[0]))
    rho = float(np.nanmean(rhos)) if not np.isnan(rhos).all() else float("nan")
    return MethodCheck("sampling error", rho >= AGREES, f"two draws agree at ρ = {rho:.2f}")


def _together(shown: Sequence[Explanation], name: str) -> Explanation:
    """The texts once, with the attributions of every method, word by word."""
    if not shown:
        return Explanation((), name)
    by_word = [one.by_word() for one in shown]
    return Explanation(
        tuple(
            replace(texts[0], attributions=tuple(a for text in texts for a in text.attributions))
            for texts in zip(*by_word, strict=True)
        ),
        name,
    )


def known_of(methods: Sequence[str], model: Model, texts: Sequence[Example]) -> dict[str, MethodFacts]:
    """What is known of each method before any text is explained: what it is, and what it declares to cost."""
    explainers = [EXPLAINERS.find(name) for name in methods]
    batches = [batch for _, batch in model.encode(texts).batches(1)] if texts else []
    heads = 1
    if batches and any("self_attends" in one.needs for one in explainers):
        heads = heads_of(model.network, min(batches, key=lambda batch: batch.passage.ids.shape[1]))
    sizes = [size for batch in batches for size in sizes_of(model.network, batch, heads)]
    return {
        one.name: MethodFacts(
            one.kind, one.removal, cost=_declared(one, sizes), unchecked=one.axiom is not None or _samples(one)
        )
        for one in explainers
    }


def _declared(explainer: Explainer, sizes: Sequence[Size]) -> MethodCost | None:
    if explainer.passes is None or not sizes:
        return None
    passes = [explainer.passes(size) for size in sizes]
    forward, backward = (int(np.median(one)) for one in zip(*((p.forward, p.backward) for p in passes), strict=True))
    return MethodCost(forward, backward, float("nan"))


def _samples(explainer: Explainer) -> bool:
    return "seed" in explainer.options and explainer.kind != "control"
