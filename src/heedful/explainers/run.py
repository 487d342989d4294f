"""Explain many texts by many methods: the road from a model and examples to an `Explanation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.attribution import Attribution, Check, Cost, Explained, Part
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.explainer import Axiom, Explainer, Scores
from heedful.explanation import Explanation
from heedful.models.model import Model
from heedful.records import Batch, Example

EXPLAIN_BUDGET = 2**13  # tokens of a batch: gradients keep every step's tensors


def explain(
    model: Model,
    examples: Sequence[Example],
    methods: Sequence[str],
    target: str | int | None = None,
    on_done: Callable[[int], None] = lambda texts: None,
    **options: Any,
) -> Explanation:
    """`target` is the label that is explained, by name or number; None: the predicted one of each text.

    An option goes to each of the methods that take it; one that none takes is a mistake.
    """
    chosen = [find(name) for name in methods]
    for explainer in chosen:
        explainer.check(model.network.can, model.name)
    check_options(chosen, options)
    wanted = None if target is None else model.label_index(target)
    made: dict[int, Explained] = {}
    for indices, batch in model.encode(examples).batches(64, token_budget=EXPLAIN_BUDGET):
        with torch.inference_mode():
            p = model.network(batch).probabilities  # (batch, labels)
        targets = p.argmax(-1) if wanted is None else p.new_full((len(batch),), wanted, dtype=torch.long)
        scores = [
            (e, given := options_of(e, options), e.run(model.network, batch, targets, **given))
            for e in chosen
        ]
        for row, index in enumerate(indices.tolist()):
            example = examples[index]
            made[index] = Explained(
                id=example.id,
                passage=example.passage,
                query=example.query,
                labels=model.labels,
                probabilities=p[row].double().cpu().numpy(),
                truth=None if example.label is None else model.labels[example.label],
                attributions=tuple(
                    attribution(explainer, given, found, batch, row, model.labels[int(targets[row])])
                    for explainer, given, found in scores
                ),
            )
        on_done(len(indices))
    return Explanation(tuple(made[i] for i in range(len(examples))), run=model.name)


def attribution(
    explainer: Explainer, options: Mapping[str, Any], scores: Scores, batch: Batch, row: int, target: str
) -> Attribution:
    """One row of a batch's scores, at the positions of its real words."""
    values: dict[Part, np.ndarray[Any, Any]] = {"passage": at_words(scores.passage, batch.passage.mask, row)}
    if scores.query is not None and batch.query is not None:
        values["query"] = at_words(scores.query, batch.query.mask, row)
    check = None
    if explainer.axiom and scores.gap is not None and scores.scale is not None:
        check = check_axiom(explainer.axiom, float(scores.gap[row]), float(scores.scale[row]))
    return Attribution(
        method=explainer.name,
        kind=explainer.kind,
        signed=explainer.signed and not options.get("absolute"),
        target=target,
        scores=values,
        removal=explainer.removal,
        check=check,
        cost=Cost(-(-scores.forward_passes // len(batch)), -(-scores.backward_passes // len(batch))),
        options={name: value for name, value in options.items() if not isinstance(value, Tensor)},
    )


def at_words(scores: Tensor, mask: Tensor, row: int) -> np.ndarray[Any, Any]:
    return scores[row][mask[row]].double().cpu().numpy()


def check_axiom(axiom: Axiom, gap: float, scale: float) -> Check:
    """A gap is small against what was to be explained, or against what a float can hold of it."""
    relative = abs(gap) / scale if scale else None
    ok = abs(gap) <= max(axiom.limit * scale, 1e-5)
    sentence = None if ok or relative is None else axiom.sentence.format(missed=share(relative))
    return Check(axiom.name, value=gap, ok=ok, relative=relative, sentence=sentence)


def share(relative: float) -> str:
    """In percent; more than everything is everything."""
    return f"{relative:.0%}" if relative < 1 else "all"


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
