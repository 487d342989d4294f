"""Can the adversary of several labels be beaten? An attack on its answers and on its bounds, by other means.

    python checks/attack_adversary.py [--texts 40] [--starts 6] [--programs 20] [--runs FOLDER] [--models ...]
    python checks/attack_adversary.py --run RUN ...    models that are there already
    python checks/attack_adversary.py --states FILE    a list of PooledStates that torch.save wrote; prints JSON

Small models are trained on real corpora (HEEDFUL_DATA), and for texts of their test split the answer of
`search_adversary` is attacked by SLSQP (from random distributions, and from the answer itself), by Frank-Wolfe (linear
programs with the cost and the outputs linearised), and by random sparse distributions drawn to where the constraint
binds. Printed: the share of texts where an attack is farther by more than .005, bounds that an attack exceeds (there
must be none), the share proved within .01, and bound minus answer. With PYTHONPATH at the sources of another version
the same attack is made on that version.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from torch import Tensor

import heedful
from heedful.data.corpora.load import load as load_corpus
from heedful.experiments.adversarial.exact import Adversary, phi
from heedful.experiments.adversarial.search import PROGRAMS, search_adversary
from heedful.experiments.adversarial.verdict import epsilon_of
from heedful.experiments.edited_attention.observe import observer, tvd
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.measure.distance import jsd
from heedful.store.run import Run

Floats = NDArray[np.float64]
MODELS = ("babi1/bilstm", "babi1/cnn", "babi1/average", "agnews4/cnn", "amazon5/cnn")
EPOCHS = {"babi1": 6}


class Target:
    """One text under attack: cost = ln 2 - JSD, TVD and its derivative, all in float64."""

    def __init__(self, seen: PooledStates, row: int, epsilon: float) -> None:
        self.seen, self.epsilon = seen[row : row + 1], epsilon
        self.n = int(self.seen.n_words[0])
        self.own: Floats = self.seen.alpha[0, : self.n].numpy()
        self.states = self.seen.projected[0, : self.n]  # (words, features)
        self.y = self.seen.y[0]

    def outputs(self, p: Tensor) -> Tensor:
        return self.seen.readout((p @ self.states).view(1, 1, -1))[0, 0]

    def room(self, p: Floats) -> float:
        """epsilon - TVD: not negative where p is feasible."""
        return self.epsilon - float(tvd(self.outputs(torch.from_numpy(p)), self.y))

    def room_slope(self, p: Floats) -> Floats:
        given = torch.from_numpy(p).requires_grad_(True)
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(tvd(self.outputs(given), self.y), given)
        return np.asarray(-slope.numpy())

    def distance(self, p: Floats) -> float:
        """JSD where p is feasible, else 0."""
        p = np.maximum(p, 0) / np.maximum(p, 0).sum()
        return float(jsd(p, self.own)) if self.room(p) >= 0 else 0.0

    def drawn_in(self, p: Floats) -> Floats:
        """From p towards the model's own attention, the first that bisection finds feasible."""
        inside, outside = 0.0, 1.0
        if self.room(p) >= 0:
            return p
        for _ in range(25):
            middle = (inside + outside) / 2
            feasible = self.room(self.own + middle * (p - self.own)) >= 0
            inside, outside = (middle, outside) if feasible else (inside, middle)
        return self.own + inside * (p - self.own)


def slsqp(target: Target, start: Floats) -> Floats:
    """Sequential least squares on the whole simplex."""
    own, tiny = target.own, 1e-9

    def slope(p: Floats) -> Floats:
        p = np.maximum(p, 0)
        return np.asarray(0.5 * np.log((own + p + tiny) / (p + tiny)))

    def cost(p: Floats) -> float:
        return float(phi(own, np.maximum(p, 0)).sum())

    settings: dict[str, Any] = {
        "jac": slope,
        "bounds": [(0.0, 1.0)] * target.n,
        "constraints": [
            {"type": "ineq", "fun": lambda p: target.room(p) - 1e-9, "jac": target.room_slope},
            {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        ],
        "method": "SLSQP",
        "options": {"maxiter": 60},
    }
    solved = minimize(cost, start, **settings)
    return np.asarray(solved.x)


def frank_wolfe(target: Target, width: float, steps: int = 8) -> Floats:
    """Linear programs with cost and outputs linearised; `width` is the weight whose chord is the first slope."""
    own, n = target.own, target.n
    p, slope = own.copy(), phi(own, width) / width
    for _ in range(steps):
        jacobian = torch.func.jacrev(target.outputs)(torch.from_numpy(p)).numpy()  # (labels, n)
        labels = len(jacobian)
        off = (target.outputs(torch.from_numpy(p)) - target.y).numpy() - jacobian @ p
        eye = np.eye(labels)  # |off + jacobian p'| <= r, sum r <= 2 epsilon
        rows = np.block([[jacobian, -eye], [-jacobian, -eye], [np.zeros((1, n)), np.ones((1, labels))]])
        right = np.concatenate([-off, off, [2 * target.epsilon]])
        sums = np.concatenate([np.ones(n), np.zeros(labels)])[None]
        solved = linprog(np.append(slope, np.zeros(labels)), A_ub=rows, b_ub=right, A_eq=sums, b_eq=[1.0])
        if solved.x is None:
            break
        aim = np.maximum(solved.x[:n], 0)
        tried = [p + step * (aim / aim.sum() - p) for step in (1.0, 0.99, 0.9, 0.5, 0.1)]
        best = max([p, *tried, target.drawn_in(tried[0])], key=target.distance)
        if target.distance(best) <= target.distance(p) + 1e-9:
            break
        p = best
        slope = np.where(p > 1e-3, 0.5 * np.log((own + p) / np.maximum(p, 1e-3)), phi(own, width) / width)
    return p


def attack(target: Target, answer: Floats, starts: int, rng: np.random.Generator) -> float:
    """The greatest JSD of a feasible distribution that any attack finds."""
    sparse = [target.drawn_in(p) for p in rng.dirichlet(np.full(target.n, 0.2), 20 * starts)]
    nearest = sorted(sparse, key=target.distance)[-starts:]
    found = sparse + [slsqp(target, p) for p in (answer, *nearest[: starts // 2])]
    found += [slsqp(target, p) for p in rng.dirichlet(np.full(target.n, 0.3), starts - starts // 2)]
    found += [frank_wolfe(target, width) for width in (1.0, 0.5, 0.2)]
    return max(target.distance(p) for p in found)


def observed(run: Path, texts: int) -> Iterator[PooledStates]:
    """Texts of the test split, evenly spread."""
    model, config = heedful.load(run), Run(run).config
    folders = [Path(folder) for folder in os.environ.get("HEEDFUL_DATA", "").split(os.pathsep) if folder]
    examples = load_corpus(config.dataset, options=config.data, data_dirs=folders)["test"]
    places = np.arange(texts) * len(examples) // texts
    observe = observer(model.network)
    for indices, batch in model.encode([examples[i] for i in places]).batches(256, token_budget=2**13):
        seen = observe(places[indices], batch)
        assert isinstance(seen, PooledStates)
        yield seen


def attack_texts(seen: PooledStates, found: Adversary, epsilon: float, starts: int, seed: int) -> list[float]:
    """The greatest JSD that an attack on the answer for each of these texts finds."""
    attacks = []
    for row, n in enumerate(seen.n_words):
        rng = np.random.default_rng([seed, int(seen.examples[row])])
        attacks.append(attack(Target(seen, row, epsilon), found.alpha[row, :n], starts, rng))
    return attacks


def attack_states(file: Path, epsilon: float, starts: int, programs: int) -> dict[str, list[float]]:
    """Of each text of the file: the answer, its bound, and the best attack."""
    answers: dict[str, list[float]] = {"answer": [], "bound": [], "attack": []}
    for seed, seen in enumerate(torch.load(file, weights_only=False)):
        found = search_adversary(seen, epsilon, programs=programs)
        answers["answer"] += found.jsd.tolist()
        answers["bound"] += found.bound.tolist()
        answers["attack"] += attack_texts(seen, found, epsilon, starts, seed)
    return answers


def attack_model(name: str, run: Path, texts: int, starts: int, programs: int) -> int:
    """Prints what the attack on one model found; the number of bounds that do not hold."""
    answers, bounds, seconds = [], [], 0.0
    attacks: list[float] = []
    for seen in observed(run, texts):
        epsilon = epsilon_of(None, seen.has_query)
        began = process_time()
        found = search_adversary(seen, epsilon, programs=programs)
        seconds += process_time() - began
        answers.append(found.jsd)
        bounds.append(found.bound)
        attacks += attack_texts(seen, found, epsilon, starts, 0)
    answer, bound, best = np.concatenate(answers), np.concatenate(bounds), np.array(attacks)
    gap, violated = bound - answer, int((best > bound + 1e-9).sum())
    print(
        f"{name}: {len(answer)} texts, {1000 * seconds / len(answer):.0f} ms a text; mean JSD {answer.mean():.4f}, "
        f"of the attack {best.mean():.4f}; beaten by more than .005: {(best > answer + 0.005).mean():.1%} "
        f"(at most {max(0.0, (best - answer).max()):.4f}); bounds violated: {violated}; proved within .01: "
        f"{(gap <= 0.01 + 1e-9).mean():.1%}; bound - answer: median {np.median(gap):.4f}, "
        f"90th percentile {np.quantile(gap, 0.9):.4f}",
        flush=True,
    )
    return violated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="linear programs of a proof")
    parser.add_argument("--runs", type=Path, help="where the models are kept, or are already")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="CORPUS/ENCODER")
    parser.add_argument("--run", type=Path, nargs="+", help="attack these, and train nothing")
    parser.add_argument("--states", type=Path, help="attack what is in this file, and print numbers only")
    parser.add_argument("--epsilon", type=float, default=0.01, help="of --states")
    given = parser.parse_args()
    if given.states:
        print(json.dumps(attack_states(given.states, given.epsilon, given.starts, given.programs)))
        return
    violated, asked = 0, (given.texts, given.starts, given.programs)
    if given.run:
        violated = sum(attack_model(run.name, run, *asked) for run in given.run)
        raise SystemExit(1 if violated else 0)
    with TemporaryDirectory() as temporary:
        for name in given.models:
            corpus, encoder = name.split("/")
            epochs = EPOCHS.get(corpus, 2)
            sizes: dict[str, Any] = {"embedding_dim": 64, "hidden_dim": 64, "epochs": epochs}
            run = heedful.train(corpus, encoder=encoder, runs=given.runs or temporary, **sizes)
            violated += attack_model(name, run.path, *asked)
    raise SystemExit(1 if violated else 0)


if __name__ == "__main__":
    main()
