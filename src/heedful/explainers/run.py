"""Explain many texts by many methods: the road from a model and examples to an `Explanation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from heedful.check_columns import check_columns
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.collect import Call, Collector
from heedful.explainers.explainer import Explainer
from heedful.explanation import Explanation
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Example

EXPLAIN_BUDGET = 2**13  # tokens of a batch: gradients keep every step's tensors


def explain(
    model: Model,
    examples: Sequence[Example],
    methods: Sequence[str],
    target: str | int | None = None,
    on_done: Callable[[int], None] = lambda texts: None,
    states: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Explanation:
    """`target` is the label that is explained, by name or number; None: the predicted one of each text.

    An option goes to each of the methods that take it; one that none takes is a mistake. `states` is what those
    that learn have learnt, by name.
    """
    chosen = [find(name).with_state((states or {}).get(name)) for name in methods]
    for explainer in chosen:
        explainer.check(model.network.can, model.name)
    check_options(chosen, options)
    wanted = None if target is None else model.label_index(target)
    calls = [Call(explainer, options_of(explainer, options)) for explainer in chosen]
    collector = Collector(examples, calls, model.text)
    budget = token_budget(model.network, EXPLAIN_BUDGET)
    for indices, batch in model.encode(examples).batches(64, token_budget=budget):
        with torch.inference_mode():
            p = model.network(batch).probabilities  # (batch, labels)
        targets = p.argmax(-1) if wanted is None else p.new_full((len(batch),), wanted, dtype=torch.long)
        scores = [explainer.run(model.network, batch, targets, **given) for explainer, given in calls]
        collector.add(indices, batch, p, targets, scores)
        on_done(len(indices))
    return Explanation.of_columns(check_columns(collector.columns(model.labels)), model.name)


def options_of(explainer: Explainer, options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in explainer.options}


def check_options(explainers: Sequence[Explainer], options: Mapping[str, Any]) -> None:
    known = sorted(set().union(*(e.options for e in explainers)))
    for name in options:
        if name not in known:
            names = ", ".join(e.name for e in explainers)
            raise Mistake(
                f"none of {names} takes the option {name!r}. They take: {', '.join(known) or 'none'}."
            )
