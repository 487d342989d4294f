"""How often does an audit that is looked at after every text err? `python checks/audit_sequences.py [--audits 200]`.

Small models are trained on planted texts, and one experiment of each gives, for some hundreds of texts and for every
explainer, what the explainer gains and what there is to gain. These numbers are stored, and are the population: the
share of each explainer over all of them is its true share. Audits are then drawn from them, text by text with
replacement, and looked at after every text, as `auditing/ask/blocks.py` does: an explainer that is decided is asked no
further, and the audit ends when nothing is open or the texts are used up. So two hundred audits cost seconds.

Beside the explainers stand the control (the mean of several random orders) and `guess`, random scores that pass for an
explainer's; the true share of both is set to nothing, by taking from each text's gain the mean over all texts.

Printed: in how many audits the control and `guess` were ever called better than random, at any look; in how many the
recommendation was wrong (the explainer is more than the margin behind the best) although the audit said that another
one would be recommended with a probability of at most 5%, and in how many it was wrong at all; how often intervals
failed to hold the true share at any look, by explainer; and the same of intervals and tests that are made for one look.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import heedful
from audit_planted import planted_run
from heedful.auditing.outcome import sequences
from heedful.auditing.outcome.decided import still_open
from heedful.auditing.outcome.findings import MARGIN, WHOLE
from heedful.auditing.outcome.recommend import choose
from heedful.auditing.outcome.repeats import repeats
from heedful.auditing.outcome.series import Series, series_of
from heedful.auditing.outcome.standings import MethodFacts, rank, share_of
from heedful.experiments import find
from heedful.measure.statistics import mean_interval, proportion
from heedful.registry import EXPLAINERS

METHODS = ("random", "guess", "attention", "gradient", "gradient_x_input", "lrp", "integrated_gradients", "omission")
NOTHING = ("random", "guess")
MODELS = (("single", "average"), ("majority", "cnn"))
OPTIONS: dict[str, Any] = {**find("faithfulness").audit.within_budget, "operators": ["delete"]}
MOST = 120  # texts of an audit
STEP = 4  # texts between two times at which it is seen what is decided; intervals are looked at after every text


def stored(folder: Path, texts: int) -> list[list[Series]]:
    """What each model's explainers gain, for so many texts."""
    EXPLAINERS.places = {**EXPLAINERS.places, "guess": replace(EXPLAINERS.find("random"), name="guess")}
    found = []
    for rule, encoder in MODELS:
        path = folder / f"{rule}-{encoder}.parquet"
        run = planted_run(rule, encoder, 0, folder)  # type: ignore[arg-type]
        seeds = {"random": {"seed": 1}, "guess": {"seed": 2}}
        told: dict[str, Any] = {"methods": METHODS, "options": seeds, "limit": texts, **OPTIONS}
        table = heedful.run("faithfulness", run, **told).table
        measures = tuple(one for one in find("faithfulness").audit.measures if one.ranks)
        found.append([without_gain(one) for one in series_of("faithfulness", measures, table)])
        print(f"{path.stem}: {texts} texts; true shares {told_of(truth_of(found[-1]))}", flush=True)
    return found


def without_gain(one: Series) -> Series:
    """Of those that know nothing, what they gain by chance over these texts is taken from each."""
    return replace(one, chance=one.chance + np.nanmean(one.value - one.chance)) if one.method in NOTHING else one


def truth_of(series: list[Series]) -> dict[str, float]:
    return {name: float(np.nanmean(share_of([one for one in series if one.method == name])[0])) for name in METHODS}


def told_of(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


def drawn(series: list[Series], texts: np.ndarray, asked: dict[str, int]) -> list[Series]:
    """The first texts of an audit; of a method that was decided, those that it was asked about."""
    made = []
    for one in series:
        n = min(len(texts), asked[one.method])
        value, chance, possible = (np.full(len(texts), np.nan) for _ in range(3))
        value[:n], chance[:n], possible[:n] = (v[texts[:n]] for v in (one.value, one.chance, one.possible))
        places = np.arange(len(texts))
        made.append(replace(one, examples=places, value=value, chance=chance, possible=possible))
    return made


def audit(series: list[Series], truth: dict[str, float], seed: int, known: dict[str, MethodFacts]) -> dict[str, Any]:
    """One audit, and what of it was wrong."""
    texts = np.random.default_rng(seed).integers(0, len(series[0].value), MOST)
    asked, better, standings = dict.fromkeys(METHODS, MOST), set[str](), None
    for n in range(sequences.LEAST, MOST + 1, STEP):
        standings = rank(drawn(series, texts[:n], asked), known, looked="faithfulness")
        better |= {one.method for one in standings.order if one.answer == "better"}
        open_now = still_open(standings)
        for name in METHODS:
            if name not in open_now:
                asked[name] = min(asked[name], n)
        if not [name for name in open_now if known[name].kind != "control"]:
            break
    assert standings is not None
    chosen, again = choose(standings), repeats(standings)
    best = max(truth[name] for name in METHODS if name not in NOTHING)
    wrong = chosen is not None and truth[chosen.method] < best - MARGIN
    sure = chosen is not None and again.get(chosen.method, 0.0) >= 0.95
    decided = sum(one.answer != "cannot tell" for one in standings.order)
    return {"better": better, "wrong": wrong, "sure": sure, "n": n, "decided": decided, "passes": sum(asked.values())}


def misses(series: list[Series], truth: dict[str, float], seed: int) -> tuple[set[str], set[str]]:
    """The methods of which an interval did not hold the true share at some number of texts: of sequences, and of
    intervals for one look."""
    texts = np.random.default_rng(seed).integers(0, len(series[0].value), MOST)
    whole = drawn(series, texts, dict.fromkeys(METHODS, MOST))
    left: tuple[set[str], set[str]] = set(), set()
    for name in METHODS:
        for n in range(sequences.LEAST, MOST + 1):
            own = [replace(one, **first(one, n)) for one in whole if one.method == name]
            spread = share_of(own)[2]
            assert spread is not None
            spread = spread[~np.isnan(spread)]
            whole_way = sequences.with_one_more(spread, WHOLE)
            for found, interval in zip(left, (sequences.sequence(whole_way), mean_interval(spread)), strict=True):
                if not interval[0] <= truth[name] <= interval[1]:
                    found.add(name)
    return left


def first(one: Series, n: int) -> dict[str, Any]:
    return {part: getattr(one, part)[:n] for part in ("examples", "value", "chance", "possible")}


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--audits", type=int, default=200)
    given.add_argument("--texts", type=int, default=400, help="that are stored of each model")
    given.add_argument("--folder", type=Path, help="where models are kept")
    asked = given.parse_args()
    known = {name: MethodFacts("control" if name == "random" else "saliency") for name in METHODS}
    with tempfile.TemporaryDirectory() as temporary:
        populations = stored(asked.folder or Path(temporary), asked.texts)
    truths = [truth_of(one) for one in populations]
    found = [audit(populations[i % 2], truths[i % 2], i, known) for i in range(asked.audits)]
    n = len(found)
    for name in NOTHING:
        print(f"{name}, ever called better than random: {share(sum(name in one['better'] for one in found), n)}")
    print(f"wrong recommendation, and it was called sure: {share(sum(o['wrong'] and o['sure'] for o in found), n)}")
    print(f"wrong recommendation at all: {share(sum(one['wrong'] for one in found), n)}")
    print(f"sure of the recommendation: {share(sum(one['sure'] for one in found), n)}")
    texts = [one["n"] for one in found]
    print(
        f"texts an audit: {np.mean(texts):.0f}; explainers times texts {np.mean([o['passes'] for o in found]):.0f} "
        f"instead of {len(METHODS) * np.mean(texts):.0f}; decided {np.mean([o['decided'] for o in found]):.1f} of "
        f"{len(METHODS)}"
    )
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for i in range(n):
        for counter, some in zip(counts, misses(populations[i % 2], truths[i % 2], 10_000 + i), strict=True):
            counter.update(some)
    for name in METHODS:
        print(
            f"{name}: at some look the sequence misses the truth in {share(counts[0][name], n)}; an interval for one "
            f"look in {counts[1][name] / n:.0%}"
        )
    several = n * len(METHODS)
    print(f"all: {share(counts[0].total(), several)}; intervals for one look {counts[1].total() / several:.0%}")


def share(count: int, n: int) -> str:
    found = proportion(count, n)
    return f"{found.value:.1%} (95% CI {found.low:.1%} to {found.high:.1%})"


if __name__ == "__main__":
    main()
