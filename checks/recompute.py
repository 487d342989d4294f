"""The numbers of a finished run, computed again from its weights by a slow program of its own.

    python checks/recompute.py RUNS/sst-bilstm-additive-s0-... [--limit N]

For a BiLSTM with additive attention: two labels, or a question about the text. Nothing is shared with what it checks
but the reading of the texts: an LSTM written out step by step in double precision, every word deleted in turn,
autograd, scipy's tau, one decoder call for each permutation. The adversary of two labels by trying all vertices of the
feasible set (JSD is convex, so its maximum is at one: a single word, or two words that make the prediction move by
exactly epsilon); that of a question has no closed form: what was found is decoded again, and must be as different and
as near as was said. Prints each mean beside the stored one and the greatest difference of a row, and ends with 1 if a
tau differs (by more than 1e-12, where equal fractions are rounded otherwise) or anything else by more than 1e-6.
"""

from __future__ import annotations

import argparse
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

from heedful.data.corpora import load as corpora
from heedful.records import Example
from heedful.store.run import Run

EPSILON, PERMUTATIONS, START, END, UNK = 0.01, 100, 2, 3, 1
PAIRS = {
    "tau_g": "attention/gradient_x_input",
    "tau_loo": "attention/omission",
    "gradient/loo": "gradient_x_input/omission",
}


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


def attend(w: dict[str, torch.Tensor], h: torch.Tensor, query: torch.Tensor | None) -> torch.Tensor:
    """Over the real words: the markers at both ends get nothing."""
    inner = h[:, 1:-1] @ w["attention.W1.weight"].T + w["attention.W1.bias"]
    if query is not None:
        inner = inner + query @ w["attention.W2.weight"].T
    return (torch.tanh(inner) @ w["attention.v.weight"].T).squeeze(-1).softmax(-1)


def predict(
    w: dict[str, torch.Tensor], h: torch.Tensor, alpha: torch.Tensor, query: torch.Tensor | None
) -> torch.Tensor:
    """Probabilities of all labels, (texts, labels)."""
    context = (alpha.unsqueeze(-1) * h[:, 1:-1]).sum(1)
    if query is None:
        p = (context @ w["decoder.theta.weight"].T + w["decoder.theta.bias"]).sigmoid()
        return torch.cat([1 - p, p], -1)
    inner = context @ w["decoder.Wp.weight"].T + w["decoder.Wp.bias"] + query @ w["decoder.Wq.weight"].T
    return (inner.tanh() @ w["decoder.W2.weight"].T + w["decoder.W2.bias"]).softmax(-1)


def ask(w: dict[str, torch.Tensor], ids: list[int]) -> torch.Tensor:
    """The question's last state of each direction, (1, hidden)."""
    x = w["embedding.weight"][torch.tensor([[START, *ids, END]]) + w["separate"].long()]
    query = {name.removeprefix("query_"): value for name, value in w.items() if name.startswith("query_")}
    forwards, backwards = encode(query, x).chunk(2, -1)
    return torch.cat([forwards[:, -1], backwards[:, 0]], -1)


def tvd(p: torch.Tensor, q: torch.Tensor) -> np.ndarray:
    """.5 sum |p - q| of each text."""
    return np.asarray((p - q).abs().sum(-1).detach().numpy() / 2)


def jsd(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Of p (words,) and each row of q (rows, words)."""

    def kl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(a > 0, a * np.log(np.where(a > 0, a / b, 1.0)), 0.0).sum(-1))

    q = np.atleast_2d(q)
    m = (p + q) / 2
    return np.asarray(kl(np.broadcast_to(p, q.shape), m) + kl(q, m)) / 2


def epsilon_max_jsd(alpha: np.ndarray, s: np.ndarray, bias: float, y: float) -> float:
    """The greatest JSD(alpha, a) of a with |sigmoid(s . a + bias) - y| <= epsilon, over all vertices."""
    low, high = (
        np.log(p / (1 - p)) - bias if 0 < p < 1 else np.inf * (1 if p >= 1 else -1) for p in (y - EPSILON, y + EPSILON)
    )
    n = len(s)
    vertices = [np.eye(n)[(low <= s) & (s <= high)]]
    for i in range(n):
        for edge in filter(np.isfinite, (low, high)):
            j = np.flatnonzero((np.arange(n) > i) & (np.minimum(s[i], s) < edge) & (edge < np.maximum(s[i], s)))
            share = (edge - s[j]) / (s[i] - s[j])
            rows = (1 - share)[:, None] * np.eye(n)[j]
            rows[:, i] = share
            vertices.append(rows)
    found = [float(jsd(alpha, rows).max()) for rows in vertices if len(rows)]
    return max(found, default=0.0)


def one_text(
    w: dict[str, torch.Tensor], ids: list[int], asked: list[int] | None, rng: np.random.Generator
) -> dict[str, Any]:
    tokens = torch.tensor([[START, *ids, END]])
    query = None if asked is None else ask(w, asked)
    x = w["embedding.weight"][tokens].clone().requires_grad_(True)
    h = encode(w, x)
    alpha = attend(w, h, query).detach()
    y = predict(w, h, alpha, query)
    (gradient,) = torch.autograd.grad(y[0, -1 if query is None else int(y.argmax())], x)
    y = y.detach()
    g = (gradient * x).sum(-1).abs()[0, 1:-1].detach().numpy()
    with torch.no_grad():
        n = len(ids)
        if n > 1:
            without = torch.stack([torch.cat([tokens[0, : t + 1], tokens[0, t + 2 :]]) for t in range(n)])
            different, which = np.unique(without, axis=0, return_inverse=True)  # equal texts have one answer
            states = encode(w, w["embedding.weight"][torch.from_numpy(different)])
            loo = tvd(predict(w, states, attend(w, states, query), query), y)[which]
        else:
            loo = np.zeros(1)
        a, h = alpha[0].numpy(), h.detach()
        copies = rng.permuted(np.broadcast_to(a, (PERMUTATIONS, n)), axis=1)
        moved = [float(tvd(predict(w, h, torch.from_numpy(row[None]).to(h), query), y)[0]) for row in copies]
    taus = {"tau_g": (a, g), "tau_loo": (a, loo), "gradient/loo": (g, loo)}
    return {name: tuple(kendalltau(*pair)) for name, pair in taus.items()} | {
        "median": float(np.median(moved)),
        "alpha": a,
        "h": h,
        "y": y,
        "query": query,
    }


def most_different(w: dict[str, torch.Tensor], found: dict[str, Any], stored: Any) -> tuple[float, float]:
    """(JSD, change of the output) of the adversary: by all vertices, or of the one that was stored."""
    alpha, h, y, query = (found[name] for name in ("alpha", "h", "y", "query"))
    given = np.array(stored.adversarial)
    with torch.no_grad():
        delta = float(tvd(predict(w, h, torch.from_numpy(given[None]), query), y)[0])
    if query is not None:
        return float(jsd(alpha, given)[0]), delta
    s = (h[0, 1:-1] @ w["decoder.theta.weight"][0]).numpy()
    return epsilon_max_jsd(alpha, s, float(w["decoder.theta.bias"]), float(y[0, -1])), delta


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
    own = Run(given.run).config.model.as_published.separate_embeddings  # then a question's ids come after the passage's
    w["separate"] = torch.tensor(float(len(index) if own else 0))
    texts = corpora.load(config["dataset"], options=Run(given.run).config.data)["test"][: given.limit]
    return Asked(given.run, config, w, index, texts)


def main() -> None:
    run, config, w, index, texts = read_asked(__doc__)
    # Chance, as docs/experiments/README.md states it: a seed from (run, experiment), then one generator for each text.
    seed = int(np.random.default_rng([config["seed"], *b"permutation"]).integers(2**63))
    rows = {
        name: pq.read_table(run / "results" / f"{name}.parquet", filters=[("example", "<", len(texts))]).to_pandas()
        for name in ("correlation", "permutation", "adversarial")
    }
    adversaries = {row.example: row for row in rows["adversarial"].itertuples()}
    found, differences = [], []
    for place, example in enumerate(texts):
        ids, asked = (
            None if words is None else [i if (i := index.get(form, UNK)) > END else UNK for form in words.forms]
            for words in (example.passage, example.query)
        )
        assert ids is not None
        one = one_text(w, ids, asked, np.random.default_rng([seed, place]))
        found.append({name: one[name] for name in (*PAIRS, "median")})
        if place in adversaries:
            differences.append((place, *most_different(w, one, adversaries[place])))
        if sys.stderr.isatty():
            print(f"\r{place + 1} of {len(texts)}", end="", file=sys.stderr)
    right = True
    print(f"{'':22}{'stored':>10}{'again':>10}{'difference':>12}{'of one row':>13}")
    for what, pair in PAIRS.items():
        table = rows["correlation"]
        stored = table[table.pair == pair].sort_values("example")
        tau = np.array([one[what] for one in found])  # (texts, 2): tau, p
        kept = ~np.isnan(tau[:, 0])
        right &= line(what, stored.tau.to_numpy()[kept], tau[kept, 0]) <= 1e-12
        right &= line(f"{what} p", stored.p.to_numpy()[kept], tau[kept, 1]) <= 1e-6
    stored = rows["permutation"].sort_values("example")["median"].to_numpy()
    right &= line("permutation median", stored, np.array([one["median"] for one in found])) <= 1e-6
    places, again, moved = (np.array(column) for column in zip(*differences, strict=True))
    stored = rows["adversarial"].set_index("example").loc[places]
    right &= line("adversarial jsd", stored["jsd"].to_numpy(), again) <= 1e-6
    right &= line("adversarial change", stored["delta_y"].to_numpy(), moved) <= 1e-6
    sys.exit(not right)


def line(what: str, stored: np.ndarray, again: np.ndarray) -> float:
    """Print both means, their difference, and the greatest difference of one row, which is returned."""
    difference, greatest = float(stored.mean() - again.mean()), float(np.abs(stored - again).max())
    print(f"{what:22}{stored.mean():10.5f}{again.mean():10.5f}{difference:12.1e}{greatest:13.1e}")
    return greatest


if __name__ == "__main__":
    main()
