"""The numbers of erasure, flips and importance sets of a finished run, computed again by a slow program of its own.

    python checks/recompute_erasure.py RUNS/amazon5-bigru-additive-s0-... [--limit N]

For flat and hierarchical models with a biGRU, a CNN or no encoder, and additive attention. Nothing is shared with
what it checks but the reading of the texts: spaCy's own sentencizer, a GRU written out step by step in double
precision, one sentence at a time, one output layer call for each set of items that is removed, gradients by
differences, and for short texts the smallest flipping set by trying all sets. Prints each mean beside the stored
one, and ends with 1 if any differs by more than 1e-4.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import spacy
import torch
from spacy.tokens import Doc
from torch import Tensor

from recompute import read_asked

START, END, UNK, DRAWS, SHORT = 2, 3, 1, 5, 12
Weights = dict[str, Tensor]


def gru(w: Weights, name: str, x: Tensor) -> Tensor:
    """h (length, units) of x (length, dim)."""
    w_ih, w_hh, b_ih, b_hh = (w[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, states = x.new_zeros(w_hh.shape[1]), []
    for one in x:
        (r_x, z_x, n_x), (r_h, z_h, n_h) = (w_ih @ one + b_ih).chunk(3), (w_hh @ h + b_hh).chunk(3)
        z = (z_x + z_h).sigmoid()
        h = (1 - z) * (n_x + (r_x + r_h).sigmoid() * n_h).tanh() + z * h
        states.append(h)
    return torch.stack(states)


def encode(w: Weights, name: str, x: Tensor) -> Tensor:
    """States of the rows of x, by what the weights say the encoder is."""
    if f"{name}.forwards.weight_ih_l0" in w:
        return torch.cat([gru(w, f"{name}.forwards", x), gru(w, f"{name}.backwards", x.flip(0)).flip(0)], -1)
    if f"{name}.convolutions.0.weight" in w:
        parts: list[Tensor] = []
        for i in itertools.count():
            if f"{name}.convolutions.{i}.weight" not in w:
                return torch.cat(parts, -1).relu()
            kernel, bias = w[f"{name}.convolutions.{i}.weight"], w[f"{name}.convolutions.{i}.bias"]
            half = kernel.shape[-1] // 2
            padded = torch.cat([x.new_zeros(half, x.shape[1]), x, x.new_zeros(half, x.shape[1])])
            windows = [padded[t : t + kernel.shape[-1]].T for t in range(len(x))]
            parts.append(torch.stack([(kernel * window).sum((1, 2)) + bias for window in windows]))
    return x


def attend(w: Weights, name: str, h: Tensor) -> Tensor:
    inner = torch.tanh(h @ w[f"{name}.W1.weight"].T + w[f"{name}.W1.bias"])
    return (inner @ w[f"{name}.v.weight"].T).squeeze(-1).softmax(-1)


def items(w: Weights, ids: list[int], forms: tuple[str, ...], hierarchical: bool, nlp: Any) -> tuple[Tensor, Tensor]:
    """States and weights of what the model attends to last: words, or sentences."""
    if not hierarchical:
        h = encode(w, "encoder", w["embedding.weight"][[START, *ids, END]])[1:-1]
        return h, attend(w, "attention", h)
    doc = nlp.get_pipe("sentencizer")(Doc(nlp.vocab, words=list(forms)))
    vectors = []
    for sentence in doc.sents:
        h = encode(w, "encoder", w["embedding.weight"][ids[sentence.start : sentence.end]])
        vectors.append(attend(w, "attention", h) @ h)
    h = encode(w, "sentence_encoder", torch.stack(vectors))
    return h, attend(w, "sentence_attention", h)


def distribution(w: Weights, context: Tensor) -> np.ndarray:
    z = (w["decoder.theta.weight"] @ context + w["decoder.theta.bias"]).numpy()
    z = np.array([0.0, z[0]]) if len(z) == 1 else z
    p = np.exp(z - z.max())
    return np.asarray(p / p.sum())


def js(p: np.ndarray, q: np.ndarray) -> float:
    total = 0.0
    for x, y in zip(p, q, strict=True):
        total += sum(a / 2 * np.log(2 * a / (x + y)) for a in (x, y) if a > 0)
    return total


def first_flip(output: Callable[[set[int]], np.ndarray | None], order: list[int], decided: int) -> float:
    for k in range(1, len(order) + 1):
        q = output(set(order[:k]))
        if q is not None and q.argmax() != decided:
            return float(k)
    return float("nan")


def one_text(w: Weights, h: Tensor, alpha: Tensor, rngs: dict[str, np.random.Generator]) -> dict[str, float]:
    n = len(alpha)
    if n < 2:
        return {}
    memory: dict[frozenset[int], np.ndarray | None] = {}

    def output(gone: set[int]) -> np.ndarray | None:
        key = frozenset(gone)
        if key not in memory:
            rest = alpha.clone()
            rest[list(gone)] = 0.0
            memory[key] = distribution(w, rest @ h / rest.sum()) if rest.sum() > 0 else None
        return memory[key]

    p = output(set())
    assert p is not None
    decided = int(p.argmax())
    top = next(t for t in range(n) if alpha[t] >= alpha.max() * (1 - 1e-6))  # the first of equals
    found: dict[str, float] = {}
    for name in ("erasure", "flips"):
        r = [t for t in range(n) if t != top][int(rngs[name].integers(n - 1))]
        q_top, q_r = output({top}), output({r})
        if q_top is None or q_r is None:
            continue
        found |= {
            f"{name} delta_js": js(p, q_top) - js(p, q_r),
            f"{name} delta_alpha": float(alpha[top] - alpha[r]),
            f"{name} flip_top": float(q_top.argmax() != decided),
            f"{name} flip_random": float(q_r.argmax() != decided),
        }
    slopes = []
    for t in range(n):
        ends = [distribution(w, alpha @ h + step * h[t])[decided] for step in (-1e-6, 1e-6)]
        slopes.append((ends[1] - ends[0]) / 2e-6)
    slope, a = np.array(slopes), alpha.numpy()
    draws = rngs["importance_sets"].random((DRAWS, n))
    scores = {"attention": a, "attention_gradient": slope, "attention_x_gradient": a * slope}
    scores |= {f"random {draw + 1}": draws[draw] for draw in range(DRAWS)}
    for name, score in scores.items():
        order = sorted(range(n), key=lambda t: -score[t])
        found[f"removed {name}"] = first_flip(output, order, decided)
    if n <= SHORT:
        sizes = (
            len(gone)
            for k in range(1, n)
            for gone in itertools.combinations(range(n), k)
            if flips(output, gone, decided)
        )
        found["smallest"] = float(next(sizes, float("nan")))
    return found


def flips(output: Callable[[set[int]], np.ndarray | None], gone: tuple[int, ...], decided: int) -> bool:
    q = output(set(gone))
    return q is not None and int(q.argmax()) != decided


def main() -> None:
    run, config, w, index, texts = read_asked(__doc__)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    names = ("erasure", "flips", "importance_sets")
    seeds = {name: int(np.random.default_rng([config["seed"], *name.encode()]).integers(2**63)) for name in names}
    found = []
    for place, example in enumerate(texts):
        forms = example.passage.forms
        ids = [i if (i := index.get(form, UNK)) > END else UNK for form in forms]
        h, alpha = items(w, ids, forms, config["model"].get("hierarchical", False), nlp)
        found.append(one_text(w, h, alpha, {n: np.random.default_rng([seed, place]) for n, seed in seeds.items()}))
    stored = stored_numbers(run / "results", len(texts))
    print(f"{'':36}{'texts':>7}{'stored':>10}{'again':>10}{'difference':>12}{'of one text':>13}")
    worst = 0.0
    for name in dict.fromkeys(key for one in found for key in one):
        again = np.array([one.get(name, np.nan) for one in found])
        theirs = stored[name]
        known = np.array([name in one for one in found])  # the smallest set of long texts was not tried
        undefined = int((np.isnan(again) != np.isnan(theirs))[known].sum())
        both = ~np.isnan(again) & ~np.isnan(theirs)
        gap = np.abs(theirs[both] - again[both])
        difference = float(theirs[both].mean() - again[both].mean()) if both.any() else 0.0
        means = [float(values[both].mean()) if both.any() else float("nan") for values in (theirs, again)]
        print(
            f"{name:36}{int(both.sum()):7}{means[0]:10.5f}{means[1]:10.5f}{difference:12.1e}{gap.max(initial=0):13.1e}"
            + (f"  {undefined} defined in one only" if undefined else "")
        )
        worst = max(worst, abs(difference), float(undefined))
    sys.exit(worst > 1e-4)


def stored_numbers(results: Path, n: int) -> dict[str, np.ndarray]:
    """The columns under the names above, by place."""
    numbers: dict[str, np.ndarray] = {}

    def column(table: Any, of: str) -> np.ndarray:
        values: np.ndarray = table.set_index("example")[of].reindex(range(n)).to_numpy(dtype=float)
        return values

    for name in ("erasure", "flips"):
        table = pq.read_table(results / f"{name}.parquet").to_pandas()
        numbers |= {f"{name} {of}": column(table, of) for of in ("delta_js", "delta_alpha", "flip_top", "flip_random")}
    table = pq.read_table(results / "importance_sets.parquet").to_pandas()
    for ranking, rows in table.groupby("ranking"):
        numbers[f"removed {ranking}"] = column(rows, "removed")
    numbers["smallest"] = column(table[table.ranking == "attention"], "smallest_high")
    return numbers


if __name__ == "__main__":
    main()
