"""The rows of a batch of texts: everything that any method wants to know is asked together, then measured by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from heedful.experiments.faithfulness.orders import (
    METRICS,
    Beam,
    Curves,
    Limits,
    Text,
    all_sets,
    falling,
    levels_of,
    limits_of,
    metrics_of,
    naopc,
    normalised,
    prefixes,
    sampled,
)
from heedful.experiments.faithfulness.removals import Removals, between_0_and_1, output_of, soft_drops, words_of
from heedful.experiments.faithfulness.scores import SOFT, ScoringMethod, Spoken, Supported, scores_of
from heedful.experiments.framework.experiment import Chunk, Floats, Ints
from heedful.explainers import EXPLAINERS
from heedful.explainers.perturbation.perturb import evaluating
from heedful.measure.columns import Bools
from heedful.measure.rank import kendall
from heedful.models.link import IDENTITY
from heedful.models.network import Network, Output
from heedful.records import Batch

if TYPE_CHECKING:
    from heedful.experiments.faithfulness.faithfulness import FaithfulnessConfig

NAN, ATTENTION, RANDOM = float("nan"), "attention", "random"
AREAS = ("deletion", "insertion")
NUMBERS = (
    *METRICS,
    "tau",
    *(f"{name}_{form}" for name in METRICS for form in ("normalised", "floor", "floor_error", "best")),
    *(f"naopc_{name}" for name in AREAS),
    "soft_nc",
    "soft_ns",
)
CURVES = tuple(f"{part}{name}_curve" for part in ("", "random_") for name in AREAS)


def rows_of_batch(
    model: Network,
    examples: Ints,
    batch: Batch,
    config: FaithfulnessConfig,
    found: Supported,
    rngs: Sequence[Generator],
) -> Iterator[Chunk]:
    """One chunk for each operator and method."""
    with evaluating(model), torch.no_grad():
        output = model(batch)
    target = output.predicted if config.target is None else torch.full_like(output.predicted, config.target)
    words = words_of(batch.passage)
    n_words = np.array([word.max(initial=-1) + 1 for word in words], dtype=np.int64)
    spoken = {name: scores_of(method, model, batch, output, target, words) for name, method in found.methods.items()}
    draws = [np.argsort(rng.random((config.draws, n)), axis=1) for rng, n in zip(rngs, n_words, strict=True)]
    seeds = [int(rng.integers(2**63)) for rng in rngs]
    more = [np.argsort(rng.random((config.control_draws - 1, n)), axis=1) for rng, n in zip(rngs, n_words, strict=True)]
    common: Chunk = {
        "example": np.asarray(examples, dtype=np.int64),
        "predicted": output.predicted.cpu().numpy(),
        "max_attention": max_attention(model, batch, output, target, words, spoken, config),
        "n_words": n_words,
        "target": target.cpu().numpy(),
        "output": output_of(model.link, output.logits, target).cpu().numpy(),
    }
    scale = "predicted number" if model.link is IDENTITY else "probability of the explained label"
    told = {"scale": [scale] * len(batch), "left_out": ["; ".join(found.left_out)] * len(batch)}
    for operator in found.operators:
        if operator == SOFT:
            by_method = soft_lines(model, batch, config, words, output, target, spoken, draws, seeds)
        else:
            by_method = lines(model, batch, config, words, output, target, spoken, draws, more, operator)
        for name, each in by_method.items():
            yield (
                common
                | told
                | {
                    "method": [name] * len(batch),
                    "operator": [operator] * len(batch),
                    "method_operator": [f"{name}/{operator}"] * len(batch),
                    "explainer_forwards": spoken[name].forward,
                    "explainer_backwards": spoken[name].backward,
                    **_columns(each),
                }
            )


def _columns(each: Sequence[dict[str, Any]]) -> Chunk:
    """Lines of texts as columns; what a line does not have is undefined."""
    chunk: Chunk = {name: np.array([line.get(name, NAN) for line in each]) for name in NUMBERS}
    chunk |= {name: [line.get(name, np.zeros(0)) for line in each] for name in CURVES}
    for name in ("forwards", "wanted", "wanted_limits"):
        chunk[name] = np.array([line.get(name, 0) for line in each], dtype=np.int64)
    chunk["exact"] = np.array([line.get("exact", False) for line in each], dtype=np.bool_)
    return chunk


def lines(
    model: Network,
    batch: Batch,
    config: FaithfulnessConfig,
    words: Sequence[Ints],
    output: Output,
    target: Tensor,
    spoken: dict[str, Spoken],
    draws: Sequence[Ints],
    more: Sequence[Ints],
    operator: str,
) -> dict[str, list[dict[str, Any]]]:
    """Under one way of removing words: by method a line for each text. `more` are further orders of the control."""
    removals = Removals(model, batch, words, output.logits, target, operator)
    levels = [levels_of(int(max(1, word.max(initial=-1) + 1)), config.bins, config.points) for word in words]
    orders: list[dict[str, Ints]] = [{} for _ in words]
    for name, said in spoken.items():
        for row, scores in enumerate(said.scores):
            if scores is not None and len(scores):
                own = falling(scores)[None]
                orders[row][name] = np.concatenate([own, more[row]]) if name == RANDOM else own
    wanted: list[Bools] = []
    for row, word in enumerate(words):
        n = int(word.max(initial=-1) + 1)
        along = np.concatenate([*orders[row].values(), draws[row]])
        sets = np.concatenate(list(prefixes(along, levels[row].sizes)))  # (orders * levels, n)
        ends = np.array([[False] * n, [True] * n])
        every = all_sets(n) if n <= config.exact else np.zeros((0, n), dtype=np.bool_)
        wanted.append(np.concatenate([ends, sets, ~sets, np.eye(n, dtype=np.bool_), every]) if n else ends[:0])
    removals.ask(wanted)
    tried = search(removals, levels, config) if config.beam else [0] * len(words)
    by_method: dict[str, list[dict[str, Any]]] = {name: [] for name in spoken}
    alone: list[Floats] = []  # f(x) - f(x without word i)
    for row, known in enumerate(removals.known):
        n = levels[row].n if len(known.sets) else 0
        if n == 0:
            alone.append(np.zeros(0))
            for each in by_method.values():
                each.append({})
            continue
        sets, f, flips = known.arrays()
        text = Text(levels[row], known.f[0], known.f[1], model.link is not IDENTITY)
        drawn = curves(removals, row, draws[row], levels[row].sizes)
        limits = limits_of(text, sets, f, flips, drawn)
        alone.append(text.whole - removals.said(row, np.eye(n, dtype=np.bool_)).f)
        chance = sampled(text, drawn.without.mean(0), drawn.only.mean(0))
        shared = {
            "forwards": known.forwards,
            "wanted": 2 * len(levels[row].sizes) + n,
            "wanted_limits": 2 * draws[row].shape[0] * len(levels[row].sizes) + (2**n if limits.exact else tried[row]),
            "exact": limits.exact,
        }
        for name, each in by_method.items():
            own_orders = orders[row].get(name)
            line: dict[str, Any] = dict(shared)
            if own_orders is not None:
                line["wanted"] = 2 * len(levels[row].sizes) * len(own_orders) + n
                line |= measured(text, curves(removals, row, own_orders, levels[row].sizes), limits)
                line |= dict(zip(CURVES[2:], chance, strict=True))
            each.append(line)
    for name, each in by_method.items():
        for line, tau in zip(each, taus(spoken[name].scores, alone), strict=True):
            line["tau"] = tau
    return by_method


def curves(removals: Removals, row: int, orders: Ints, sizes: Ints) -> Curves:
    """Of sets that have been asked."""
    sets = prefixes(orders, sizes)  # (m, levels, n)
    without = removals.said(row, sets)
    return Curves(without.f, removals.said(row, ~sets).f, without.flips)


def measured(text: Text, along: Curves, limits: Limits) -> dict[str, Any]:
    """All numbers of one order; of several, which the control has, their means."""
    line: dict[str, Any] = {}
    for name, values in metrics_of(text, along).items():
        value = float(values.mean())
        line |= {
            name: value,
            f"{name}_normalised": normalised(text, name, value, limits),
            f"{name}_floor": limits.floor[name],
            f"{name}_floor_error": limits.error[name],
            f"{name}_best": limits.best[name],
        }
    line |= {f"naopc_{name}": naopc(text, name, line[name], limits) for name in AREAS}
    return line | dict(zip(CURVES[:2], sampled(text, along.without.mean(0), along.only.mean(0)), strict=True))


def search(removals: Removals, levels: Sequence[Any], config: FaithfulnessConfig) -> list[int]:
    """Beam search in every text whose sets are not all known: words removed so that f falls most, and words kept so
    that it rises most. One step of all texts is asked together. How many sets each text was asked about: (texts,)."""
    long = [row for row, known in enumerate(removals.known) if len(known.sets) and levels[row].n > config.exact]
    tried = [0] * len(removals.known)
    beams = {(row, keeps): Beam.start(levels[row].n) for row in long for keeps in (False, True)}
    ranked = {}
    for row in long:
        n = levels[row].n
        drop = -removals.said(row, np.eye(n, dtype=np.bool_)).f
        ranked[row] = np.arange(n) if n <= config.points and config.widest is None else falling(drop)
    for step in range(max((len(levels[row].sizes) for row in long), default=0) - 1):
        children = {}
        for (row, keeps), beam in beams.items():
            sizes = levels[row].sizes
            if step < len(sizes) - 1:
                more = int(sizes[step] - (sizes[step - 1] if step else 0))
                children[row, keeps] = beam.children(more, ranked[row], config.widest)
        asked: list[list[Bools]] = [[] for _ in removals.known]
        for (row, keeps), (sets, _) in children.items():
            asked[row].append(~sets if keeps else sets)
            tried[row] += len(sets)
        removals.ask([np.concatenate(some) if some else np.zeros((0, 0), np.bool_) for some in asked])
        for (row, keeps), (sets, parents) in children.items():
            f = removals.said(row, ~sets if keeps else sets).f
            beams[row, keeps] = beams[row, keeps].keep(sets, parents, f if keeps else -f, config.beam)
    return tried


def taus(scores: Sequence[Floats | None], alone: Sequence[Floats]) -> Floats:
    """Of each text, nan where a method says nothing of it."""
    width = max((len(each) for each in alone), default=0)
    first, second = np.zeros((2, len(alone), max(1, width)))
    mask = np.zeros(first.shape, dtype=np.bool_)
    for row, (one, other) in enumerate(zip(scores, alone, strict=True)):
        if one is not None:
            first[row, : len(other)], second[row, : len(other)], mask[row, : len(other)] = one, other, True
    return kendall(first, second, mask).tau


def soft_lines(
    model: Network,
    batch: Batch,
    config: FaithfulnessConfig,
    words: Sequence[Ints],
    output: Output,
    target: Tensor,
    spoken: dict[str, Spoken],
    draws: Sequence[Ints],
    seeds: Sequence[int],
) -> dict[str, list[dict[str, Any]]]:
    """Soft comprehensiveness and sufficiency, their floors, and their normalised forms as published."""
    whole = output_of(model.link, output.logits, target)  # (batch,)

    forwards = np.zeros(len(batch), dtype=np.int64)

    def drops(q: Sequence[Floats | None], n_draws: int = config.soft_draws) -> Floats:
        forwards[[one is not None for one in q]] += n_draws
        return soft_drops(model, batch, words, whole, target, q, seeds, n_draws)

    with evaluating(model):
        nothing = drops([np.zeros(int(word.max()) + 1) if word.max(initial=-1) >= 0 else None for word in words], 1)
        found: dict[str, list[dict[str, Any]]] = {}
        for name, said in spoken.items():
            kept = [None if a is None or not len(a) else between_0_and_1(a) for a in said.scores]
            moved = [None if a is None else a[order[0]] for a, order in zip(kept, draws, strict=True)]
            values = {
                "sufficiency": drops(kept),
                "comprehensiveness": drops([None if a is None else 1 - a for a in kept]),
                "sufficiency_floor": drops(moved),
                "comprehensiveness_floor": drops([None if a is None else 1 - a for a in moved]),
            }
            published = model.link is not IDENTITY
            found[name] = [
                {key: float(value[row]) for key, value in values.items()}
                | (soft_normalised(values, row, float(nothing[row])) if published else {})
                | {"wanted": 0 if kept[row] is None else 4 * config.soft_draws}
                | {"wanted_limits": int(words[row].max(initial=-1) >= 0)}  # f(0), for all methods
                for row in range(len(batch))
            ]
    for each in found.values():
        for line, n in zip(each, forwards.tolist(), strict=True):
            line["forwards"] = n
    return found


def soft_normalised(values: dict[str, Floats], row: int, nothing: float) -> dict[str, float]:
    """soft NC and soft NS: with 1 - S_0 = max(0, f(x) - f(0)), undefined where the words make no difference."""
    if not nothing > 1e-6:
        return {}
    return {
        "soft_nc": float(values["comprehensiveness"][row]) / nothing,
        "soft_ns": (nothing - float(values["sufficiency"][row])) / nothing,
    }


def max_attention(
    model: Network,
    batch: Batch,
    output: Output,
    target: Tensor,
    words: Sequence[Ints],
    spoken: dict[str, Spoken],
    config: FaithfulnessConfig,
) -> Floats:
    """The largest weight of a word, nan where the model has none: (batch,)."""
    if "attends" not in model.can:
        return np.full(len(batch), NAN)
    if ATTENTION in spoken and ATTENTION not in config.options:
        found = spoken[ATTENTION].scores
    else:
        method = ScoringMethod(EXPLAINERS[ATTENTION], {})
        found = scores_of(method, model, batch, output, target, words).scores
    return np.array([NAN if weights is None or not len(weights) else weights.max() for weights in found])
