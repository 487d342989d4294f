"""The rows of `faithfulness`, computed again by a slow program of its own, from a model's weights and the papers.

    python checks/recompute_faithfulness.py CHECKPOINT [--data sst | --texts FILE] [--limit 50]

CHECKPOINT is a Hugging Face classifier of the BERT kind, read in double precision. The experiment is asked through
`heedful.run`; beside it, every edited text is made by hand and read alone by transformers, one after the other. Nothing
of the experiment is imported. Shared are the reading of the texts (pieces and words), and the scores of those methods
that have an oracle of their own (integrated gradients, lrp, random); attention, gradient x input and omission are
computed again. Best orders of short texts are found by trying all orders, those of longer ones by a plain beam search
and a recursion over all sets that were asked. Prints the largest difference of each column over all texts, methods and
operators, and ends with 1 if one is above 1e-5.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

import heedful

METHODS = ("attention", "gradient_x_input", "integrated_gradients", "lrp", "omission", "random")
OPERATORS = ("delete", "mask", "pad", "zero", "soft")
LOW_IS_GOOD = ("sufficiency", "flip_fraction")
SETTINGS: dict[str, Any] = {
    "bins": (0.01, 0.05, 0.1, 0.2, 0.5),
    "exact": 6,
    "beam": 1,
    "draws": 3,
    "soft_draws": 2,
    "points": 10,
}
Set = frozenset[int]


class OneText:
    """A text as the model reads it, and what it says of parts of it: one call for each."""

    def __init__(self, module: Any, made: Any, example: Any) -> None:
        self.module = module
        tokens = made.encode([example]).batch([0]).passage
        self.ids = tokens.ids[0]
        index = tokens.word_index[0].tolist()
        numbers = sorted({word for word in index if word >= 0})
        self.word = [numbers.index(word) if word >= 0 else -1 for word in index]
        self.n = len(numbers)
        self.mask_id = tokens.reserved.mask
        self.predicted = int(self.logits(self.embedded(self.ids)).argmax())

    def embedded(self, ids: Tensor) -> Tensor:
        x: Tensor = self.module.get_input_embeddings()(ids)
        return x

    def logits(self, x: Tensor, attended: Tensor | None = None) -> Tensor:
        given = torch.ones(len(x), dtype=torch.long) if attended is None else attended
        out: Tensor = self.module(inputs_embeds=x[None], attention_mask=given[None]).logits[0]
        return out

    def without(self, gone: Set, operator: str) -> np.ndarray:
        """Probabilities when these words are removed."""
        is_gone = torch.tensor([word in gone for word in self.word])
        with torch.no_grad():
            if operator == "delete":
                z = self.logits(self.embedded(self.ids[~is_gone]))
            elif operator == "mask":
                z = self.logits(self.embedded(torch.where(is_gone, self.mask_id, self.ids)))
            elif operator == "zero":
                z = self.logits(self.embedded(self.ids) * (~is_gone)[:, None])
            else:
                z = self.logits(self.embedded(self.ids), (~is_gone).long())
        p = np.exp((z - z.max()).numpy())
        return np.asarray(p / p.sum())

    def by_word(self, values: Sequence[float]) -> np.ndarray:
        found = np.zeros(self.n)
        for word, value in zip(self.word, values, strict=True):
            if word >= 0:
                found[word] += value
        return found

    def by_piece(self, values: Sequence[float]) -> np.ndarray:
        """Scores of the pieces that belong to words, as scores of words."""
        found = np.zeros(self.n)
        for word, value in zip([word for word in self.word if word >= 0], values, strict=True):
            found[word] += value
        return found

    def scores(self, method: str) -> np.ndarray:
        if method == "attention":
            with torch.no_grad():
                x = self.embedded(self.ids)
                ones = torch.ones(1, len(x), dtype=torch.long)
                weights = self.module(inputs_embeds=x[None], attention_mask=ones, output_attentions=True).attentions
            return self.by_word(weights[-1][0].mean(0)[0].tolist())  # the last layer, heads in the mean, from [CLS]
        if method == "gradient_x_input":
            x = self.embedded(self.ids).detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.logits(x)[self.predicted], x)
            return self.by_word((slope * x).sum(-1).tolist())
        with torch.no_grad():
            whole = self.logits(self.embedded(self.ids))[self.predicted]
            drops = []
            for i in range(self.n):
                rest = [t for t, word in enumerate(self.word) if word != i]
                drops.append(float(whole - self.logits(self.embedded(self.ids[rest]))[self.predicted]))
        return np.array(drops)


def sizes_of(n: int) -> tuple[list[int], list[int]]:
    """Sizes of the bins, and of the points of curves."""
    bins = [max(1, math.ceil(share * n - 1e-9)) for share in SETTINGS["bins"]]
    points = SETTINGS["points"]
    if n <= points:
        return bins, list(range(1, n + 1))
    half = [n * i // points for i in range(points // 2 + 1)]
    return bins, sorted((set(half) | {n - size for size in half}) - {0})


def metrics(f: Callable[[Set], np.ndarray], order: Sequence[int], label: int) -> dict[str, float]:
    """The formulas, along one order of the words; f(removed words) are probabilities."""
    n = len(order)
    bins, grid = sizes_of(n)
    everything = frozenset(range(n))
    whole, nothing = f(frozenset())[label], f(everything)[label]
    top = {k: frozenset(order[:k]) for k in {*bins, *grid}}
    flip = 1.0
    for k in sorted(top):
        if f(top[k]).argmax() != f(frozenset()).argmax():
            flip = k / n
            break
    return {
        "comprehensiveness": float(np.mean([whole - f(top[k])[label] for k in bins])),
        "sufficiency": float(np.mean([whole - f(everything - top[k])[label] for k in bins])),
        "deletion": float(np.mean([whole - f(top[k])[label] for k in grid])),
        "insertion": float(np.mean([f(everything - top[k])[label] - nothing for k in grid])),
        "flip_fraction": flip,
    }


def search(f: Callable[[Set], np.ndarray], n: int, label: int, keeps: bool, alone: np.ndarray) -> None:
    """Beam search: `f` remembers what it was asked."""
    bins, grid = sizes_of(n)
    sizes = sorted({*bins, *grid})
    everything = frozenset(range(n))
    ranked = list(range(n)) if n <= SETTINGS["points"] else sorted(range(n), key=lambda i: -alone[i])
    beam: list[tuple[float, Set]] = [(0.0, frozenset())]
    before = 0
    for size in sizes[:-1]:
        more, children = size - before, []
        for gathered, chosen in beam:
            left = [word for word in ranked if word not in chosen]
            for start in [*range(0, len(left) - more, more), len(left) - more]:
                child = chosen | frozenset(left[start : start + more])
                value = f(everything - child)[label] if keeps else -f(child)[label]
                children.append((gathered + value, child))
        children.sort(key=lambda one: -round(one[0], 9))
        beam = []
        for gathered, child in children:
            if all(child != other for _, other in beam) and len(beam) < SETTINGS["beam"]:
                beam.append((gathered, child))
        before = size


def best_of_chains(known: dict[Set, np.ndarray], n: int, label: int) -> tuple[dict[str, float], dict[str, float]]:
    """The best and the lowest value of each metric over all orders that can be made of the sets that were asked."""
    bins, grid = sizes_of(n)
    everything = frozenset(range(n))
    whole, nothing = known[frozenset()][label], known[everything][label]

    def chain(sizes: list[int], kept: bool, value: Callable[[float], float]) -> float:
        levels = sorted(set(sizes))
        sets = {size: [s for s in known if len(s) == (n - size if kept else size)] for size in levels}

        @cache
        def best(level: int, inside: Set) -> float:
            if level == len(levels):
                return 0.0
            found = -math.inf
            for one in sets[levels[level]]:
                chosen = everything - one if kept else one
                if inside <= chosen:
                    share = sizes.count(levels[level]) / len(sizes)
                    found = max(found, share * value(known[one][label]) + best(level + 1, chosen))
            return found

        return best(0, frozenset())

    flips = [len(s) / n for s, p in known.items() if p.argmax() != known[frozenset()].argmax()]
    best = {
        "comprehensiveness": chain(bins, False, lambda p: whole - p),
        "sufficiency": -chain(bins, True, lambda p: p - whole),
        "deletion": chain(grid, False, lambda p: whole - p),
        "insertion": chain(grid, True, lambda p: p - nothing),
        "flip_fraction": min(flips, default=1.0),
    }
    lowest = {
        "deletion": -chain(grid, False, lambda p: p - whole),
        "insertion": -chain(grid, True, lambda p: nothing - p),
    }
    return best, lowest


def floors(
    f: Any, known: dict[Set, np.ndarray], draws: Sequence[Sequence[int]], label: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Means over random orders, and their standard errors: over all orders of a short text; else over the draws, and
    where all sets of one size are known, their mean in the place of what was drawn."""
    n = len(draws[0])
    everything = frozenset(range(n))
    if n <= SETTINGS["exact"]:
        every = [metrics(f, order, label) for order in permutations(range(n))]
        return {name: float(np.mean([one[name] for one in every])) for name in every[0]}, dict.fromkeys(every[0], 0.0)
    by_size: dict[int, list[float]] = {}
    for s, p in known.items():
        by_size.setdefault(len(s), []).append(p[label])
    means = {size: float(np.mean(p)) for size, p in by_size.items() if len(p) == math.comb(n, size)}
    bins, grid = sizes_of(n)
    whole, nothing = f(frozenset())[label], f(everything)[label]
    found: list[dict[str, float]] = []
    for order in draws:

        def at(k: int, order: Sequence[int] = order) -> float:
            return means[k] if k in means else f(frozenset(order[:k]))[label]

        def only(k: int, order: Sequence[int] = order) -> float:
            return means[n - k] if n - k in means else f(everything - frozenset(order[:k]))[label]

        found.append(
            {
                "comprehensiveness": float(np.mean([whole - at(k) for k in bins])),
                "sufficiency": float(np.mean([whole - only(k) for k in bins])),
                "deletion": float(np.mean([whole - at(k) for k in grid])),
                "insertion": float(np.mean([only(k) - nothing for k in grid])),
                "flip_fraction": metrics(f, order, label)["flip_fraction"],
            }
        )
    columns = {name: np.array([one[name] for one in found]) for name in found[0]}
    return (
        {name: float(values.mean()) for name, values in columns.items()},
        {name: float(values.std(ddof=1) / np.sqrt(len(values))) for name, values in columns.items()},
    )


def soft(text: OneText, scores: np.ndarray, seed: int, keep: bool, draws: int) -> float:
    """Zhao & Aletras 2023: the mean over draws of max(0, p(x) - p(x'))."""
    span = scores.max() - scores.min()
    a = (scores - scores.min()) / span if span > 0 else np.full(len(scores), 0.5)
    q = a if keep else 1 - a
    x = text.embedded(text.ids).detach()
    places = [t for t, word in enumerate(text.word) if word >= 0]
    uniform = np.random.default_rng(seed).random((draws, len(places), x.shape[1]), dtype=np.float32)
    whole = text.without(frozenset(), "delete")[text.predicted]
    drops = []
    for draw in range(draws):
        changed = x.clone()
        for number, t in enumerate(places):
            changed[t] = x[t] * torch.from_numpy(uniform[draw, number] < q[text.word[t]])
        with torch.no_grad():
            z = text.logits(changed).numpy()
        p = np.exp(z - z.max())
        drops.append(max(0.0, whole - (p / p.sum())[text.predicted]))
    return float(np.mean(drops))


def one_operator(
    text: OneText, operator: str, scores: dict[str, np.ndarray], draws: Sequence[Sequence[int]]
) -> dict[str, dict[str, float]]:
    """By method the columns of a row."""
    known: dict[Set, np.ndarray] = {}

    def f(gone: Set) -> np.ndarray:
        if gone not in known:
            known[gone] = text.without(gone, operator)
        return known[gone]

    n, label = text.n, text.predicted
    orders = {name: sorted(range(n), key=lambda i: -values[i]) for name, values in scores.items()}
    alone = np.array([f(frozenset())[label] - f(frozenset({i}))[label] for i in range(n)])
    found = {name: metrics(f, order, label) for name, order in orders.items()}
    for order in draws:
        metrics(f, order, label)
    if n <= SETTINGS["exact"]:
        for k in range(n + 1):
            for gone in combinations(range(n), k):
                f(frozenset(gone))
        every = [metrics(f, order, label) for order in permutations(range(n))]
        best = {name: (min if name in LOW_IS_GOOD else max)(one[name] for one in every) for name in every[0]}
        lowest = {name: min(one[name] for one in every) for name in ("deletion", "insertion")}
    else:
        for keeps in (False, True):
            search(f, n, label, keeps, alone)
        best, lowest = best_of_chains(known, n, label)
    floor, error = floors(f, known, draws, label)
    for name, line in found.items():
        for metric in list(best):
            room = best[metric] - floor[metric]
            some = (-room if metric in LOW_IS_GOOD else room) > 1e-6
            line |= {
                f"{metric}_floor": floor[metric],
                f"{metric}_floor_error": error[metric],
                f"{metric}_best": best[metric],
                f"{metric}_normalised": (line[metric] - floor[metric]) / room if some else math.nan,
            }
        for metric in lowest:
            room = best[metric] - lowest[metric]
            line[f"naopc_{metric}"] = (line[metric] - lowest[metric]) / room if room > 1e-6 else math.nan
        several = n > 1 and len(set(scores[name])) > 1 and len(set(alone)) > 1
        line["tau"] = float(kendalltau(scores[name], alone).statistic) if several else math.nan
    return found


def again(module: Any, made: Any, example: Any, place: int, seed: int) -> dict[str, dict[str, float]]:
    """All rows of one text, by "method/operator"."""
    text = OneText(module, made, example)
    rng = np.random.default_rng([seed, place])
    draws = np.argsort(rng.random((SETTINGS["draws"], text.n)), axis=1).tolist()
    soft_seed = int(rng.integers(2**63))
    shared = [name for name in METHODS if name in ("integrated_gradients", "lrp", "random")]
    explained = heedful.explain(made, [example], methods=shared)[0]
    told = {one.method: text.by_piece(one.scores["passage"].tolist()) for one in explained.attributions}
    scores = {name: told[name] if name in shared else text.scores(name) for name in METHODS}
    rows: dict[str, dict[str, float]] = {}
    for operator in OPERATORS[:-1]:
        for name, line in one_operator(text, operator, scores, draws).items():
            rows[f"{name}/{operator}"] = line
    for name, values in scores.items():
        moved = values[draws[0]]
        line = {
            "comprehensiveness": soft(text, values, soft_seed, False, SETTINGS["soft_draws"]),
            "sufficiency": soft(text, values, soft_seed, True, SETTINGS["soft_draws"]),
            "comprehensiveness_floor": soft(text, moved, soft_seed, False, SETTINGS["soft_draws"]),
            "sufficiency_floor": soft(text, moved, soft_seed, True, SETTINGS["soft_draws"]),
        }
        rows[f"{name}/soft"] = line
    zero = max(
        0.0,
        text.without(frozenset(), "zero")[text.predicted]
        - text.without(frozenset(range(text.n)), "zero")[text.predicted],
    )
    for name in scores:
        line = rows[f"{name}/soft"]
        line["soft_nc"] = line["comprehensiveness"] / zero if zero > 1e-6 else math.nan
        line["soft_ns"] = (zero - line["sufficiency"]) / zero if zero > 1e-6 else math.nan
    return rows


def compare(module: Any, tokenizer: Any, texts: Sequence[str]) -> float:
    """Prints the largest difference of each column, and gives the largest of all."""
    module = module.double().eval()
    made: Any = heedful.wrap(module, tokenizer)
    examples = made.examples(texts)
    asked = heedful.run("faithfulness", made, examples, methods=METHODS, operators=OPERATORS, **SETTINGS)
    theirs = {(row["example"], row["method_operator"]): row for row in asked.table.to_pylist()}
    module.set_attn_implementation("eager")
    seed = int(np.random.default_rng([made.seed, *b"faithfulness"]).integers(2**63))
    gaps: dict[str, list[float]] = {}
    for place, example in enumerate(examples):
        for name, line in again(module, made, example, place, seed).items():
            for column, value in line.items():
                stored = theirs[place, name][column]
                stored = math.nan if stored is None else stored
                undefined = math.isnan(stored) != math.isnan(value)
                gap = math.inf if undefined else 0.0 if math.isnan(value) else abs(stored - value)
                gaps.setdefault(column, []).append(gap)
        if sys.stderr.isatty():
            print(f"\r{place + 1} of {len(examples)}", end="", file=sys.stderr)
    print(f"{'':32}{'values':>8}{'largest difference':>20}")
    for column, found in gaps.items():
        print(f"{column:32}{len(found):8}{max(found):20.1e}")
    return max(max(found) for found in gaps.values())


def main() -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from heedful.data.corpora.load import load

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--data", default="sst")
    parser.add_argument("--texts", type=Path, help="a file with a text in each line, instead of a corpus")
    parser.add_argument("--limit", type=int, default=50, help="only the first so many texts")
    given = parser.parse_args()
    module = AutoModelForSequenceClassification.from_pretrained(given.checkpoint, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(given.checkpoint, local_files_only=True)
    if given.texts:
        texts = given.texts.read_text(encoding="utf-8").splitlines()
    else:
        texts = [example.passage.text for example in load(given.data)["test"]]
    sys.exit(0 if compare(module, tokenizer, texts[: given.limit]) <= 1e-5 else 1)


if __name__ == "__main__":
    main()
