"""How often does an audit call random scores better than random? `python checks/audit_false_positives.py`.

A small model is trained on planted texts. Each of 200 audits has its own texts, its own random scores and its own
random orders to compare with, and says of each explainer whether it is better than random:

    guess              random scores that pass for an explainer's: one order a text, as others have
    random             the control of every audit, the mean of several orders
    gradient_x_input   an explainer that knows something

Promised: `guess` is called better in at most 5 of 100 (false discoveries are controlled over all statements), and
`random` is called no better.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import heedful
from audit_planted import planted_run
from heedful.auditing.outcome.series import series_of
from heedful.auditing.outcome.standings import MethodFacts, rank
from heedful.data.generated.planted import generate
from heedful.experiments import find
from heedful.measure.statistics import proportion
from heedful.registry import EXPLAINERS

METHODS = ("random", "guess", "gradient_x_input")
OPTIONS: dict[str, Any] = {**find("faithfulness").audit.within_budget, "operators": ["delete"]}


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--audits", type=int, default=200)
    given.add_argument("--texts", type=int, default=30)
    given.add_argument("--folder", type=Path, help="where the model is kept")
    asked = given.parse_args()
    measures = find("faithfulness").audit.measures
    EXPLAINERS.places = {**EXPLAINERS.places, "guess": replace(EXPLAINERS.find("random"), name="guess")}
    known = {name: MethodFacts("control" if name == "random" else "saliency") for name in METHODS}
    answers: dict[str, Counter[str]] = {name: Counter() for name in METHODS}
    alone = 0
    with tempfile.TemporaryDirectory() as temporary:
        model = heedful.load(planted_run("single", "average", 0, asked.folder or Path(temporary)))
        texts = [one.text for one in generate("single", asked.audits * asked.texts, seed=99)]
        for seed in range(asked.audits):
            some = texts[seed * asked.texts : (seed + 1) * asked.texts]
            told: dict[str, Any] = {"methods": METHODS, "options": seeds_of(seed), **OPTIONS}
            table = heedful.run("faithfulness", replace(model, seed=seed), some, **told).table
            standings = rank(series_of("faithfulness", measures, table), known)
            for one in standings.order:
                answers[one.method][one.answer] += 1
            guess = standings.of("guess")
            alone += guess is not None and guess.share.p <= 0.05 and guess.share.mean > 0
            if (seed + 1) % 20 == 0:
                so_far = "; ".join(f"{name} {dict(answers[name])}" for name in METHODS[:2])
                print(f"{seed + 1} audits: {so_far}", flush=True)
    n = asked.audits
    print(f"{n} audits of {asked.texts} texts")
    for name, found in answers.items():
        better = proportion(found["better"], n)
        print(
            f"{name} is called better in {better.value:.1%} (95% CI {better.low:.1%} to {better.high:.1%}), no better "
            f"in {found['no better'] / n:.0%}, worse in {found['worse'] / n:.1%}, undecided in "
            f"{found['cannot tell'] / n:.0%}"
        )
    print(f"by an uncorrected test (p <= .05) guess is better in {alone / n:.1%}")


def seeds_of(seed: int) -> dict[str, dict[str, int]]:
    return {"random": {"seed": seed}, "guess": {"seed": 10_000 + seed}}


if __name__ == "__main__":
    main()
