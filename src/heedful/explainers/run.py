"""Explain many texts by many methods: the road from a model and examples to an `Explanation`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.data.text.batching import Encoded, Ints, cut
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.collect import Call, Collector
from heedful.explainers.explainer import Explainer, Scores
from heedful.explainers.perturbation.perturb import is_out_of_memory
from heedful.explanation.checks import check_columns
from heedful.explanation.explanation import Explanation
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Batch, Example

EXPLAIN_BUDGET = 2**13  # tokens of a batch: gradients keep every step's tensors
BATCH = 64  # texts
Answer = tuple[Batch, Tensor, Tensor, list[Scores]]  # (batch, labels) probabilities, (batch,) targets, by method


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
    given = [options_of(explainer, options) for explainer in chosen]
    calls = [
        Call(e, o, model.unknown_trained is False and puts_unknown(e, o)) for e, o in zip(chosen, given, strict=True)
    ]
    collector = Collector(examples, calls, model.text)

    def answer(batch: Batch) -> Answer:
        with torch.inference_mode():
            p = model.network(batch).probabilities  # (batch, labels)
        if not torch.isfinite(p).all():
            raise Mistake(f"{model.name} answers a text with numbers that are not finite.")
        targets = p.argmax(-1) if wanted is None else p.new_full((len(batch),), wanted, dtype=torch.long)
        return (
            batch,
            p,
            targets,
            [call.explainer.run(model.network, batch, targets, **call.options) for call in calls],
        )

    budget = token_budget(model.network, EXPLAIN_BUDGET)
    for group in of_like_parts(examples):
        encoded = model.encode([examples[i] for i in group.tolist()])
        for indices, found in in_memory(encoded, budget, answer):
            collector.add(group[indices], *found)
            on_done(len(indices))
    return Explanation.of_columns(
        check_columns(collector.columns(model.labels, model.network.link.answers)), model.name
    )


def of_like_parts(examples: Sequence[Example]) -> list[Ints]:
    """Examples of one part and of two, apart: a batch holds either. A model that generates begins with one."""
    alone = np.array([example.query is None for example in examples], dtype=np.bool_)
    return [group for group in (np.flatnonzero(alone), np.flatnonzero(~alone)) if len(group)]


def in_memory(encoded: Encoded, budget: int, answer: Callable[[Batch], Answer]) -> Iterator[tuple[Ints, Answer]]:
    """The answers about all texts, batch by batch. A batch for which memory runs out is halved, and so are later ones
    as large; a single text that does not fit is an error."""
    waiting = deque(cut(encoded.lengths, BATCH, token_budget=budget))
    room = np.inf  # tokens, padding included, that have not been too many yet
    while waiting:
        indices = waiting.popleft()
        tokens = len(indices) * int(encoded.lengths[indices].max())
        if tokens > room and len(indices) > 1:
            waiting.extendleft(np.array_split(indices, 2)[::-1])
            continue
        try:
            found = answer(encoded.batch(indices))
        except (MemoryError, RuntimeError) as error:
            if len(indices) == 1 or not is_out_of_memory(error):
                raise
            room = tokens / 2
            waiting.appendleft(indices)
            continue
        yield indices, found


def puts_unknown(explainer: Explainer, options: Mapping[str, Any]) -> bool:
    """Whether a method puts the unknown word in the place of others, in a model that has no mask."""
    if options.get("token") is not None:
        return False
    bases = options.get("baselines")
    asked = bases if isinstance(bases, tuple) else (bases,)
    return (
        explainer.name == "mask"
        or options.get("operator") == "replace"
        or any(isinstance(base, str) and base == "unk" for base in asked)
    )


def applies(name: str, model: Model, token: int | None = None, in_windows: bool = False) -> bool:
    """Whether a model can be asked for it as it stands: `token` is what words are replaced by, where that was said.
    Of a text that is read `in_windows` there is no one attention."""
    explainer = find(name)
    replaces = puts_unknown(explainer, {"token": token}) and model.text.reserved.replacement is None
    parted = in_windows and explainer.kind == "attention"
    return explainer.needs <= model.network.can and not replaces and not parted


def options_of(explainer: Explainer, options: Mapping[str, Any]) -> dict[str, Any]:
    return explainer.parse({name: value for name, value in options.items() if name in explainer.options})


def check_options(explainers: Sequence[Explainer], options: Mapping[str, Any]) -> None:
    known = sorted(set().union(*(e.options for e in explainers)))
    for name in options:
        if name not in known:
            names = ", ".join(e.name for e in explainers)
            raise Mistake(f"none of {names} takes the option {name!r}. They take: {', '.join(known) or 'none'}.")
