"""Where the bars of the verdicts come from: what do models get whose attention is known to be right, or irrelevant?

    python checks/bars_from_planted.py [--seeds 3] [--texts 200] [--encoder average ...] [--runs FOLDER]

The label of a `planted` text is decided by words that are known. *Right*: a model whose additive
attention was trained towards the deciding words (objective `supervised`), and whose most attended word is one of them
in at least 95% of the texts (others are left out, and counted). *Irrelevant*: a model
that was trained with uniform attention, and is then given weights at random: nothing in it was learned from them.
Those whose accuracy is then below 90% are left out, and counted: they no longer predict.
For each verdict the number that it grades is printed for both, beside its bars. A bar that can be
justified lies between the two. "irrelevant" answers only what the weights do; erasure and flips also depend on how
much of the decision a single word carries.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import heedful
from heedful.data.corpora.load import load_split
from heedful.engine.running.progress import Progress
from heedful.experiments import Result, find
from heedful.experiments.framework.verdict import Verdict
from heedful.models.attentive.attention import Additive
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.model import Model
from heedful.records import Example

CORPUS = "planted-single"
ENCODERS = ("average", "cnn", "bilstm")
ASKED = ("correlation", "permutation", "adversarial", "erasure", "flips", "importance_sets")
EPOCHS = 8
RIGHT = 0.95  # of the texts: the most attended word decides
PREDICTS = 0.9  # accuracy
SHARP = 0.5  # standard deviation of the random scores: with 2 the models no longer predict


def trained(encoder: str, attention: str, seed: int, runs: Path) -> Model:
    run = heedful.train(
        CORPUS,
        encoder=encoder,
        attention=attention,
        objective="cross_entropy" if attention == "uniform" else "supervised",
        seed=seed,
        runs=runs,
        epochs=EPOCHS,
        progress=Progress(quiet=True),
    )
    return heedful.load(run)


def with_random_attention(model: Model, examples: Sequence[Example], seed: int) -> Model:
    """The same network, its uniform attention replaced by an additive one that nobody has trained."""
    network = model.network
    assert isinstance(network, AttentiveClassifier)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        attention = Additive(network.decoder.first.in_features, has_query=False)
        _, batch = next(iter(model.batches(examples)))
        phi = attention.phi(network(batch).h, None)[batch.passage.mask]
        attention.v.weight.mul_(SHARP / phi.std())
    network.attention = attention.eval()
    return model


def numbers(model: Model, examples: Sequence[Example]) -> dict[str, Verdict]:
    """The verdict of each question."""
    found = {}
    for name in ASKED:
        rows = heedful.run(name, model, examples)
        verdict = find(name).verdict(Result(name, rows.table, rows.summary, labels=model.labels))
        assert verdict is not None
        found[name] = verdict
    return found


def finds(model: Model, examples: Sequence[Example]) -> tuple[float, float]:
    """How often the most attended word is one of those that decide, and how often the label is right."""
    explained = heedful.explain(model, examples, methods=["attention"])
    best = [int(one.attribution("attention").scores["passage"].argmax()) for one in explained]
    hit = [place in (e.evidence or ()) for place, e in zip(best, examples, strict=True)]
    right = [
        e.label is not None and one.predicted == model.labels[e.label]
        for one, e in zip(explained, examples, strict=True)
    ]
    return float(np.mean(hit)), float(np.mean(right))


def line(name: str, right: list[Verdict], irrelevant: list[Verdict]) -> str:
    def told(found: list[Verdict]) -> str:
        values = [v.value for v in found if v.value is not None]
        return f"{min(values):.2f} to {max(values):.2f}" if values else "–"

    bars = " and ".join(f"{bar:g}" for bar in (right or irrelevant)[0].bars)
    return f"| {name} | {told(right)} | {told(irrelevant)} | {bars} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--encoder", action="append", choices=ENCODERS)
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(given.runs or Path(folder), given.encoder or ENCODERS, given.seeds, given.texts)


def report(runs: Path, encoders: Sequence[str], seeds: int, texts: int) -> None:
    examples = load_split(CORPUS, "test", texts).examples
    right: list[dict[str, Verdict]] = []
    irrelevant: list[dict[str, Verdict]] = []
    left_out: list[str] = []
    for encoder in encoders:
        for seed in range(seeds):
            model = trained(encoder, "additive", seed, runs)
            share, accuracy = finds(model, examples)
            if share >= RIGHT:
                right.append(numbers(model, examples))
            else:
                left_out.append(f"{encoder} {seed} ({share:.0%})")
            other = with_random_attention(trained(encoder, "uniform", seed, runs), examples, seed)
            chance, still = finds(other, examples)
            if still >= PREDICTS:
                irrelevant.append(numbers(other, examples))
            else:
                left_out.append(f"{encoder} {seed} with random weights (accuracy {still:.2f})")
            print(
                f"{encoder}, seed {seed}: attention finds the deciding word in {share:.0%} (accuracy {accuracy:.2f}); "
                f"random attention in {chance:.0%} (accuracy {still:.2f})",
                flush=True,
            )
    print(f"\n{len(right)} right models, {len(irrelevant)} irrelevant; left out: {', '.join(left_out) or 'none'}\n")
    print("| verdict's number | attention is right | attention is irrelevant | bars |\n|---|---|---|---|")
    for name in ASKED if right or irrelevant else ():
        print(line(name, [one[name] for one in right], [one[name] for one in irrelevant]))


if __name__ == "__main__":
    main()
