"""Explain many texts by many methods: the road from a model and examples to an `Explanation`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from heedful.data.text.batching import Encoded, Ints, cut
from heedful.data.text.units import Units
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.collect import Call, Collector
from heedful.explainers.explainer import Explainer
from heedful.explainers.methods import Method, options_for, parse_methods
from heedful.explainers.perturbation.perturb import is_out_of_memory
from heedful.explanation.checks import check_columns
from heedful.explanation.explanation import Explanation
from heedful.models.language.families import cut_families, key, shares
from heedful.models.language.own import check_own
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Example

EXPLAIN_BUDGET = 2**13  # tokens of a batch: gradients keep every step's tensors
BATCH = 64  # texts


def explain(
    model: Model,
    examples: Sequence[Example],
    methods: Iterable[Method],
    target: str | int | None = None,
    on_done: Callable[[int], None] = lambda texts: None,
    states: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Explanation:
    """`target` is the label that is explained, by name or number; None: the predicted one of each text.

    Methods have options of their own; an option in `options` goes to each of the methods that take it, and one that
    none takes is a mistake. `states` is what those that learn have learnt, by name.

    A batch for which memory runs out is halved, and so are later ones as large; a single text that does not fit is an
    error.
    """
    calls = calls_of(model, methods, states or {}, options)
    wanted = None if target is None else model.label_index(target)
    collector, texts = Collector(examples, calls, model.text), min(BATCH, model.batch_size or BATCH)
    budget = token_budget(model.network, EXPLAIN_BUDGET)
    for group in of_like_parts(examples):
        encoded = model.encode([examples[i] for i in group.tolist()])
        waiting = deque(_cut(model, encoded, texts, budget))
        room = np.inf  # tokens, padding included, that have not been too many yet
        while waiting:
            indices = waiting.popleft()
            tokens = len(indices) * int(encoded.lengths[indices].max())
            if tokens > room and len(indices) > 1:
                waiting.extendleft(np.array_split(indices, 2)[::-1])
                continue
            try:
                batch = encoded.batch(indices)
                with torch.inference_mode():
                    output = model.network(batch)
                    p = output.probabilities  # (batch, labels)
                if not torch.isfinite(p).all():
                    raise Mistake(f"{model.name} answers a text with numbers that are not finite.")
                if "generates" in model.network.can:
                    check_own(model, batch, output.logits)
                targets = p.argmax(-1) if wanted is None else p.new_full((len(batch),), wanted, dtype=torch.long)
                scores = []
                for call in calls:  # a comprehension would be one more frame between a person and the equation
                    scores.append(call.explainer.run(model.network, batch, targets, **call.options))  # noqa: PERF401
            except (MemoryError, RuntimeError) as error:
                if len(indices) == 1 or not is_out_of_memory(error):
                    raise
                room = tokens / 2
                waiting.appendleft(indices)
                continue
            collector.add(group[indices], batch, p, targets, scores)
            on_done(len(indices))
    columns = collector.columns(model.labels, model.network.link.answers)
    found = Explanation.of_columns(check_columns(columns), model.name)
    in_units = any(isinstance(example.passage, Units) for example in examples)
    return found.by_word() if in_units else found  # the words of a text in units are its units


def _cut(model: Model, encoded: Encoded, texts: int, budget: int) -> list[Ints]:
    """Texts of like length together; of a language model all steps of a continuation, which are read as one."""
    if encoded.asked is None or not shares(model.network):
        return cut(encoded.lengths, texts, token_budget=budget)
    parts = [encoded.passages] if encoded.queries is None else [encoded.passages, encoded.queries]
    keys = [key(*(part.of(i) for part in parts)) for i in range(len(encoded))]
    return cut_families(keys, encoded.lengths, texts, budget)


def of_like_parts(examples: Sequence[Example]) -> list[Ints]:
    """Examples of one part and of two, apart: a batch holds either, but of a model that generates."""
    alone = np.array([example.query is None and example.asked is None for example in examples], dtype=np.bool_)
    return [group for group in (np.flatnonzero(alone), np.flatnonzero(~alone)) if len(group)]


def calls_of(
    model: Model, methods: Iterable[Method], states: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]
) -> list[Call]:
    """What each method is called with, once it is known that the model can be asked."""
    chosen = [
        one._replace(explainer=one.explainer.with_state(states.get(one.explainer.name)))
        for one in parse_methods(methods)
    ]
    for one in chosen:
        one.explainer.check(model.network.can, model.name)
    return [
        Call(
            one.explainer,
            one.explainer.holding(given),
            model.unknown_trained is False and puts_unknown(one.explainer, given),
        )
        for one, given in zip(chosen, options_for(chosen, options), strict=True)
    ]


def puts_unknown(explainer: Explainer, options: Mapping[str, Any]) -> bool:
    """Whether a method puts the unknown word in the place of others, in a model that has no mask."""
    if options.get("token") is not None:
        return False
    bases = options.get("baselines")
    several = bases if isinstance(bases, tuple) else (bases,)
    return (
        explainer.replaces
        or options.get("operator") == "replace"
        or any(isinstance(base, str) and base == "unk" for base in several)
    )


def applies(name: str, model: Model, token: int | None = None, in_windows: bool = False) -> bool:
    """Whether a model can be asked for it as it stands: `token` is what words are replaced by, where that was said.
    Of a text that is read `in_windows` there is no one attention."""
    explainer = find(name)
    replaces = puts_unknown(explainer, {"token": token}) and model.text.reserved.replacement is None
    parted = in_windows and explainer.kind == "attention"
    return not replaces and not parted and explainer.fits(model.network)
