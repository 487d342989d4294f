"""Does an audit put explainers in the right order? `python benchmarks/audit_planted.py [--seeds N] [--texts N]`.

Models are trained on the planted corpora, where the words that decide are known. For each model the audit orders the
explainers by faithfulness alone, which knows nothing of the planted words, and the true order is that of their
precision: how many of the k strongest words are the k planted ones (experiment `planted`, texts that are predicted
rightly). Printed: Spearman's rank correlation of the two for each model, and its mean beside what orders at random get.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import heedful
from heedful.auditing.series import series_of
from heedful.auditing.standings import Explained, Standings, rank
from heedful.experiments import find
from heedful.experiments.planted import rightly_predicted
from heedful.measure.columns import column, rows_of
from heedful.measure.rank import spearman
from heedful.registry import EXPLAINERS
from heedful.store.run import Run

METHODS = (
    *("attention", "gradient", "gradient_x_input", "integrated_gradients", "lrp"),
    *("occlusion", "omission", "mask", "random"),
)
MODELS = (
    ("single", "bilstm"),
    ("single", "cnn"),
    ("majority", "bilstm"),
    ("majority", "average"),
    ("negation", "bilstm"),
)
SIZES = {"embedding_dim": 32, "hidden_dim": 32, "epochs": 6}
LEARNT = 0.8  # accuracy: below, the model does not know the rule, and the planted words are not its reasons
DRAWS = 10_000


def audited(run: Run, texts: int) -> Standings:
    """The standings as `heedful audit` makes them, from so many texts."""
    table = heedful.run("faithfulness", run, limit=texts, methods=METHODS).table
    known = {name: Explained(EXPLAINERS.find(name).kind) for name in METHODS}
    return rank(series_of("faithfulness", find("faithfulness").method_measures, table), known)


def precision(run: Run, texts: int) -> dict[str, float]:
    """By explainer, over the texts that are predicted rightly."""
    rows = rightly_predicted(heedful.run("planted", run, limit=texts, methods=METHODS[:-1]).table)
    return {
        name: float(np.nanmean(column(rows_of(rows, "method", name), "precision"))) for name in METHODS[:-1]
    }


def correlation(first: list[float], second: list[float]) -> float:
    a, b = np.array([first]), np.array([second])
    return float(spearman(a, b, np.ones_like(a, dtype=np.bool_))[0])


def by_chance(sizes: list[list[float]]) -> tuple[float, float]:
    """Of the mean correlation over the models, if the explainers were ordered at random: mean, and the 95% quantile."""
    rng = np.random.default_rng(0)
    means = [
        np.mean([correlation([*rng.permutation(len(true)).astype(float)], true) for true in sizes])
        for _ in range(DRAWS // 10)
    ]
    return float(np.mean(means)), float(np.quantile(means, 0.95))


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--seeds", type=int, default=2)
    given.add_argument("--texts", type=int, default=60)
    given.add_argument("--runs", type=Path)
    asked = given.parse_args()
    found, true = [], []
    with tempfile.TemporaryDirectory() as folder:
        runs = asked.runs or Path(folder)
        for rule, encoder in MODELS:
            for seed in range(asked.seeds):
                run = heedful.train(f"planted-{rule}", encoder=encoder, seed=seed, runs=runs, **SIZES)
                accuracy = run.summary("performance")["accuracy"]
                if accuracy < LEARNT:
                    print(
                        f"planted-{rule} {encoder} seed {seed}: accuracy {accuracy:.2f}, the rule is not learnt"
                    )
                    continue
                standings, precise = audited(run, asked.texts), precision(run, 4 * asked.texts)
                order = [one.method for one in standings.order if one.method in precise]
                shares = [one.share.mean for one in standings.order if one.method in precise]
                found.append(correlation(shares, [precise[name] for name in order]))
                true.append([precise[name] for name in order])
                told = ", ".join(
                    f"{name} {share:.2f}/{precise[name]:.2f}"
                    for name, share in zip(order, shares, strict=True)
                )
                control = standings.of("random")
                print(
                    f"planted-{rule} {encoder} seed {seed}: accuracy {accuracy:.2f}, rank correlation {found[-1]:.2f}; "
                    f"random is {control.answer if control else 'not asked'}; share/precision: {told}",
                    flush=True,
                )
    mean, high = by_chance(true)
    print(
        f"mean rank correlation over {len(found)} models: {np.mean(found):.2f} (lowest {min(found):.2f}); "
        f"orders at random: {mean:.2f}, in 95 of 100 below {high:.2f}"
    )


if __name__ == "__main__":
    main()
