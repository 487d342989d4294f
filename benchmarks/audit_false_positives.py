"""How often does an audit call random scores better than random? `python benchmarks/audit_false_positives.py`.

A small model is trained on planted texts. Each of 200 audits has its own texts, its own random scores (the explainer
`random`) and its own random orders to compare with, and is asked whether they are better than random, beside
gradient x input. Promised: at most 5 of 100 (two-sided tests, false discoveries controlled over all statements).
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
from heedful.auditing.series import series_of
from heedful.auditing.standings import Explained, rank
from heedful.data.planted import generate
from heedful.experiments import find
from heedful.measure.statistics import proportion

METHODS = ("random", "gradient_x_input")
OPTIONS = {"operators": ["delete"], "beam": 1, "draws": 5, "points": 5}  # the cheapest that has everything


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--audits", type=int, default=200)
    given.add_argument("--texts", type=int, default=30)
    given.add_argument("--folder", type=Path, help="where the model is kept")
    asked = given.parse_args()
    measures = find("faithfulness").method_measures
    known = {"random": Explained("control"), "gradient_x_input": Explained("saliency")}
    answers: dict[str, Counter[str]] = {name: Counter() for name in METHODS}
    alone = 0
    with tempfile.TemporaryDirectory() as temporary:
        model = heedful.load(planted_run("single", "average", 0, asked.folder or Path(temporary)))
        texts = [one.text for one in generate("single", asked.audits * asked.texts, seed=99)]
        for seed in range(asked.audits):
            some = texts[seed * asked.texts : (seed + 1) * asked.texts]
            told: dict[str, Any] = {"methods": METHODS, "options": {"random": {"seed": seed}}, **OPTIONS}
            table = heedful.run("faithfulness", replace(model, seed=seed), some, **told).table
            standings = rank(series_of("faithfulness", measures, table), known)
            for one in standings.order:
                answers[one.method][one.answer] += 1
            control = standings.of("random")
            alone += control is not None and control.share.p <= 0.05 and control.share.mean > 0
            if (seed + 1) % 20 == 0:
                print(f"{seed + 1} audits: {dict(answers['random'])}", flush=True)
    n = sum(answers["random"].values())
    found = proportion(answers["random"]["better"], n)
    print(
        f"{n} audits of {asked.texts} texts: random scores are called better in {found.value:.1%} "
        f"(95% CI {found.low:.1%} to {found.high:.1%}), no better in {answers['random']['no better'] / n:.0%}, "
        f"undecided in {answers['random']['cannot tell'] / n:.0%}; by an uncorrected test (p <= .05) better in "
        f"{alone / n:.1%}"
    )
    print(f"gradient x input is called better in {answers['gradient_x_input']['better'] / n:.0%}")


if __name__ == "__main__":
    main()
