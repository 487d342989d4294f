"""Does an audit put explainers in the right order? `python checks/audit_planted.py [--seeds N] [--texts N]`.

Models are trained on planted texts, where the words that decide are known. For each model the audit orders the
explainers by faithfulness alone, which knows nothing of the planted words, and the true order is that of their
precision: how many of the k strongest words are the k planted ones (experiment `planted`, texts that are predicted
rightly). Printed: Spearman's rank correlation of the two for each model, and its mean beside what orders at random get.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command does: threads that wait do not spin

import numpy as np

import heedful
from heedful.auditing.outcome.series import series_of
from heedful.auditing.outcome.standings import MethodFacts, Standings, rank
from heedful.data.generated.planted import Rule, generate
from heedful.engine.running.progress import Progress
from heedful.experiments import find
from heedful.experiments.ground_truth.planted import rightly_predicted
from heedful.measure.columns import column, rows_of
from heedful.measure.rank import spearman
from heedful.registry import EXPLAINERS
from heedful.store.run import Run

METHODS = (
    *("attention", "gradient", "gradient_x_input", "integrated_gradients", "lrp"),
    *("occlusion", "omission", "mask", "random"),
)
MODELS: tuple[tuple[Rule, str], ...] = (
    *(("single", "average"), ("single", "cnn"), ("single", "bilstm")),
    *(("majority", "average"), ("majority", "cnn")),
)
TRAIN, TEST = 1200, 300  # texts
SIZES: dict[str, Any] = {"embedding_dim": 32, "hidden_dim": 32, "epochs": 8, "learning_rate": 0.005}
OPTIONS: dict[str, Any] = {"operators": ["delete", "mask"], "draws": 5, "points": 10, "beam": 1}
LEARNT = 0.75  # accuracy: below, the model does not know the rule, and the planted words are not its reasons
DRAWS = 1000


def planted_run(rule: Rule, encoder: str, seed: int, folder: Path) -> Run:
    """A model of planted texts; the words that decide are their evidence."""
    made = list(generate(rule, TRAIN + TEST, seed=seed))
    rows = [json.dumps({"text": one.text, "label": one.label, "evidence": list(one.evidence)}) + "\n" for one in made]
    folder.mkdir(parents=True, exist_ok=True)
    train, test = (folder / f"{rule}-{seed}{part}.jsonl" for part in ("", "-test"))
    train.write_text("".join(rows[:TRAIN]), encoding="utf-8")
    test.write_text("".join(rows[TRAIN:]), encoding="utf-8")
    data = {"evidence_column": "evidence", "test_file": str(test), "tokenizer": "whitespace"}
    quiet = Progress(quiet=True)
    return heedful.train(
        str(train), encoder=encoder, seed=seed, data=data, runs=folder / "runs", progress=quiet, **SIZES
    )


def audited(run: Run, texts: int) -> Standings:
    """The standings as `heedful audit` makes them, from so many texts."""
    table = heedful.run("faithfulness", run, limit=texts, methods=METHODS, **OPTIONS).table
    known = {name: MethodFacts(EXPLAINERS.find(name).kind) for name in METHODS}
    return rank(series_of("faithfulness", find("faithfulness").audit.measures, table), known)


def precision(run: Run) -> dict[str, float]:
    """By explainer, over the texts that are predicted rightly."""
    rows = rightly_predicted(heedful.run("planted", run, methods=METHODS[:-1]).table)
    return {name: float(np.nanmean(column(rows_of(rows, "method", name), "precision"))) for name in METHODS[:-1]}


def correlation(first: list[float], second: list[float]) -> float:
    a, b = np.array([first]), np.array([second])
    return float(spearman(a, b, np.ones_like(a, dtype=np.bool_))[0])


def by_chance(models: list[list[float]]) -> tuple[float, float]:
    """Of the mean correlation over the models, if the explainers were ordered at random: mean, and the 95% quantile."""
    rng = np.random.default_rng(0)
    means = [
        np.mean([correlation([*rng.permutation(len(true)).astype(float)], true) for true in models])
        for _ in range(DRAWS)
    ]
    return float(np.mean(means)), float(np.quantile(means, 0.95))


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--seeds", type=int, default=2)
    given.add_argument("--texts", type=int, default=40)
    given.add_argument("--folder", type=Path, help="where models are kept")
    asked = given.parse_args()
    found, true = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        for rule, encoder in MODELS:
            for seed in range(asked.seeds):
                run = planted_run(rule, encoder, seed, folder)
                accuracy = run.summary("performance")["accuracy"]
                if accuracy < LEARNT:
                    print(f"{rule} {encoder} seed {seed}: accuracy {accuracy:.2f}, the rule is not learnt", flush=True)
                    continue
                standings, precise = audited(run, asked.texts), precision(run)
                ranked = [one for one in standings.order if one.method in precise]
                shares, truth = [one.share.mean for one in ranked], [precise[one.method] for one in ranked]
                found.append(correlation(shares, truth))
                true.append(truth)
                told = [f"{one.method} {one.share.mean:.2f}/{precise[one.method]:.2f}" for one in ranked]
                control = standings.of("random")
                print(
                    f"{rule} {encoder} seed {seed}: accuracy {accuracy:.2f}, rank correlation {found[-1]:.2f}; random "
                    f"is {'not asked' if control is None else control.answer}; share/precision: {', '.join(told)}",
                    flush=True,
                )
    mean, high = by_chance(true)
    print(
        f"mean rank correlation over {len(found)} models: {np.mean(found):.2f} (lowest {min(found):.2f}); "
        f"orders at random: {mean:.2f}, in 95 of 100 below {high:.2f}"
    )


if __name__ == "__main__":
    main()
