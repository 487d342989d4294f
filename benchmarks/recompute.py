"""The numbers of a finished run, computed again from its weights by a slow program of its own.

    python benchmarks/recompute.py RUNS/sst-bilstm-additive-s0-... [--limit N]

For a BiLSTM with additive attention and two labels. Nothing is shared with what it checks but the reading of the
texts: an LSTM written out step by step in double precision, every word deleted in turn, autograd, scipy's tau, one
decoder call for each permutation, and the adversary by trying all vertices of the feasible set (JSD is convex, so
its maximum is at one: a single word, or two words that make the prediction move by exactly epsilon).
Prints each mean beside the stored one, and ends with 1 if any differs by more than 1e-4.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file
from scipy.stats import kendalltau

from heedful.data import corpora
from heedful.records import Example
from heedful.store.run import Run

EPSILON, PERMUTATIONS, START, END, UNK = 0.01, 100, 2, 3, 1


def lstm(w: dict[str, torch.Tensor], side: str, x: torch.Tensor) -> torch.Tensor:
    """h (texts, length, units) of x (texts, length, dim): i, f, g, o gates in torch's order."""
    w_ih, w_hh, b_ih, b_hh = (
        w[f"encoder.{side}.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = x.new_zeros(len(x), w_hh.shape[1])
    states = []
    for t in range(x.shape[1]):
        i, f, g, o = (x[:, t] @ w_ih.T + b_ih + h @ w_hh.T + b_hh).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return torch.stack(states, 1)


def encode(w: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return torch.cat([lstm(w, "forwards", x), lstm(w, "backwards", x.flip(1)).flip(1)], -1)


def attend(w: dict[str, torch.Tensor], h: torch.Tensor) -> torch.Tensor:
    """Over the real words: the markers at both ends get nothing."""
    inner = torch.tanh(h[:, 1:-1] @ w["attention.W1.weight"].T + w["attention.W1.bias"])
    return (inner @ w["attention.v.weight"].T).squeeze(-1).softmax(-1)


def predict(w: dict[str, torch.Tensor], h: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """P(label 1)."""
    context = (alpha.unsqueeze(-1) * h[:, 1:-1]).sum(1)
    return (context @ w["decoder.theta.weight"].T + w["decoder.theta.bias"]).squeeze(-1).sigmoid()


def jsd(p: np.ndarray, q: np.ndarray) -> float:
    def kl(a: np.ndarray, b: np.ndarray) -> float:
        return float(sum(x * np.log(x / y) for x, y in zip(a, b, strict=True) if x > 0))

    m = (p + q) / 2
    return kl(p, m) / 2 + kl(q, m) / 2


def epsilon_max_jsd(alpha: np.ndarray, s: np.ndarray, bias: float, y: float) -> float:
    """The greatest JSD(alpha, a) of a with |sigmoid(s . a + bias) - y| <= epsilon, over all vertices."""
    low, high = (
        np.log(p / (1 - p)) - bias if 0 < p < 1 else np.inf * (1 if p >= 1 else -1)
        for p in (y - EPSILON, y + EPSILON)
    )
    n, best = len(s), 0.0
    for i in range(n):
        if low <= s[i] <= high:
            best = max(best, jsd(alpha, np.eye(n)[i]))
    for i, j in itertools.combinations(range(n), 2):
        for edge in (low, high):
            if np.isfinite(edge) and min(s[i], s[j]) < edge < max(s[i], s[j]):
                share = (edge - s[j]) / (s[i] - s[j])
                best = max(best, jsd(alpha, share * np.eye(n)[i] + (1 - share) * np.eye(n)[j]))
    return best


def one_text(w: dict[str, torch.Tensor], ids: list[int], rng: np.random.Generator) -> dict[str, Any]:
    tokens = torch.tensor([[START, *ids, END]])
    x = w["embedding.weight"][tokens].clone().requires_grad_(True)
    h = encode(w, x)
    alpha = attend(w, h).detach()
    y = predict(w, h, alpha)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    y = y.detach()
    g = (gradient * x).sum(-1).abs()[0, 1:-1].detach().numpy()
    with torch.no_grad():
        n = len(ids)
        if n > 1:
            without = torch.stack([torch.cat([tokens[0, : t + 1], tokens[0, t + 2 :]]) for t in range(n)])
            different, which = np.unique(without, axis=0, return_inverse=True)  # equal texts have one answer
            states = encode(w, w["embedding.weight"][torch.from_numpy(different)])
            loo = (predict(w, states, attend(w, states)) - y).abs().numpy()[which]
        else:
            loo = np.zeros(1)
        a, h = alpha[0].numpy(), h.detach()
        copies = rng.permuted(np.broadcast_to(a, (PERMUTATIONS, n)), axis=1)
        moved = [float(predict(w, h, torch.from_numpy(row[None]).to(h))) for row in copies]
        s = (h[0, 1:-1] @ w["decoder.theta.weight"][0]).numpy()
    taus = {"tau_g": (a, g), "tau_loo": (a, loo), "ceiling": (g, loo)}
    return {name: tuple(kendalltau(*pair)) for name, pair in taus.items()} | {
        "median": float(np.median(np.abs(np.array(moved) - float(y)))),
        "jsd": epsilon_max_jsd(a, s, float(w["decoder.theta.bias"]), float(y)),
    }


class Asked(NamedTuple):
    """The run that the command line names: its folder, settings, weights, vocabulary and test texts."""

    run: Path
    config: dict[str, Any]
    w: dict[str, torch.Tensor]
    words: dict[str, int]
    texts: Sequence[Example]


def read_asked(description: str | None) -> Asked:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("run", type=Path)
    parser.add_argument("--limit", type=int, help="only the first so many texts")
    given = parser.parse_args()
    config = json.loads((given.run / "config.json").read_text())["config"]
    w = {name: tensor.double() for name, tensor in load_file(given.run / "model.safetensors").items()}
    index = {word: i for i, word in enumerate(json.loads((given.run / "vocabulary.json").read_text()))}
    texts = corpora.load(config["dataset"], options=Run(given.run).config.data)["test"][: given.limit]
    return Asked(given.run, config, w, index, texts)


def main() -> None:
    run, config, w, index, texts = read_asked(__doc__)
    # Chance, as docs/experiments.md states it: a seed from (run's seed, experiment), then one generator for each text.
    seed = int(np.random.default_rng([config["seed"], *b"permutation"]).integers(2**63))
    found = []
    for place, example in enumerate(texts):
        ids = [i if (i := index.get(form, UNK)) > END else UNK for form in example.passage.forms]
        found.append(one_text(w, ids, np.random.default_rng([seed, place])))
        if sys.stderr.isatty():
            print(f"\r{place + 1} of {len(texts)}", end="", file=sys.stderr)
    worst = 0.0
    rows = {
        name: pq.read_table(
            run / "results" / f"{name}.parquet", filters=[("example", "<", len(texts))]
        ).to_pandas()
        for name in ("correlation", "permutation", "adversarial")
    }
    pairs = {
        "tau_g": "attention/gradient_x_input",
        "tau_loo": "attention/omission",
        "ceiling": "gradient_x_input/omission",
    }
    print(f"{'':22}{'stored':>10}{'again':>10}{'difference':>12}{'of one text':>13}")
    for what, pair in pairs.items():
        table = rows["correlation"]
        stored = table[table.pair == pair].sort_values("example")
        tau = np.array([one[what] for one in found])  # (texts, 2): tau, p
        kept = ~np.isnan(tau[:, 0])
        worst = max(worst, line(what, stored.tau.to_numpy()[kept], tau[kept, 0]))
        significant = (stored.p.to_numpy()[kept] <= 0.05).astype(float)
        worst = max(worst, line(f"{what} significant", significant, (tau[kept, 1] <= 0.05).astype(float)))
    for what, name in (("median", "permutation"), ("jsd", "adversarial")):
        stored = rows[name].sort_values("example")[what].to_numpy()
        worst = max(worst, line(f"{name} {what}", stored, np.array([one[what] for one in found])))
    sys.exit(worst > 1e-4)


def line(what: str, stored: np.ndarray, again: np.ndarray) -> float:
    """Print both means, their difference, and the greatest difference of one text."""
    difference = float(stored.mean() - again.mean())
    print(
        f"{what:22}{stored.mean():10.5f}{again.mean():10.5f}{difference:12.1e}{np.abs(stored - again).max():13.1e}"
    )
    return abs(difference)


if __name__ == "__main__":
    main()
