"""Does an explanation of a language model find the word that decides? Reciprocal rank on minimal pairs of BLiMP.

    HEEDFUL_DATA=... python checks/deciding_word.py MODEL [--pairs 96] [--seed 0] [-o FILE.md]

After each text comes `good`, not `bad`, and the data say which word decides that (Yin & Neubig 2022). A method ranks
the words of the text by how much they speak for `good`: with contrast it explains why this and not that, without it
why this and not anything else. The rank of the deciding word (the best, where there are several) is compared with a
random order, whose expected reciprocal rank is known exactly for each text. Intervals are over texts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.measure.statistics import mean_interval

METHODS = ("gradient", "gradient_x_input", "lrp", "omission", "occlusion", "attention", "random")


def expected(n: int, k: int) -> float:
    """Of 1 / rank of the best of k words in a random order of n."""
    # P(best rank > r) = C(n - r, k) / C(n, k)
    above = 1.0
    total = 0.0
    for rank in range(1, n - k + 2):
        following = above * (n - rank + 1 - k) / (n - rank + 1)
        total += (above - following) / rank
        above = following
    return total


def reciprocal(scores: NDArray[np.float64], evidence: Sequence[int]) -> float:
    """1 / rank of the best evidence; words with the same score share the places."""
    best = max(scores[i] for i in evidence)
    higher = int((scores > best).sum())
    same = int((scores == best).sum())
    return float(np.mean([1 / (higher + i + 1) for i in range(same)]))


def pairs(n: int, seed: int) -> list[dict[str, Any]]:
    """Spread over the phenomena, drawn with a seed."""
    folder = os.environ.get("HEEDFUL_DATA")
    if folder is None or not (file := Path(folder) / "blimp_evidence" / "test.jsonl.gz").is_file():
        sys.exit("the corpus blimp_evidence is not here: set HEEDFUL_DATA to the folder that holds it.")
    by_phenomenon: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            by_phenomenon[row["phenomenon"]].append(row)
    rng = np.random.default_rng(seed)
    each = -(-n // len(by_phenomenon))
    drawn = [some[i] for some in by_phenomenon.values() for i in rng.permutation(len(some))[:each]]
    return drawn[:n]


def main(argv: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("model")
    options.add_argument("--pairs", type=int, default=96)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args(argv)

    import heedful
    from heedful.data.prompts import SAID
    from heedful.explainers.run import explain
    from heedful.models.language.model import LanguageModel

    rows = pairs(given.pairs, given.seed)
    model = heedful.load(given.model)
    if not isinstance(model, LanguageModel):
        sys.exit(f"{given.model} is not a language model.")
    ranks: dict[tuple[str, bool], list[float]] = defaultdict(list)
    chance: list[float] = []
    seconds: dict[str, float] = defaultdict(float)
    left_out = right = 0
    for done, row in enumerate(rows, 1):
        prompt = model.prompt(row["text"])
        good, bad = (model.tokens_of(prompt, row[name]) for name in ("good", "bad"))
        starts = np.cumsum([0, *(len(word) + 1 for word in row["text"].split(" "))])
        wanted = {(int(starts[i]), int(starts[i + 1]) - 1) for i in row["evidence"]}
        evidence = [i for i, (a, b) in enumerate(prompt.offsets.tolist()) if any(a >= x and b <= y for x, y in wanted)]
        if not evidence:
            left_out += 1
            continue
        chance.append(expected(len(prompt), len(evidence)))
        for contrast in (True, False):
            (example, *_) = model.steps(prompt, good, bad if contrast else None)
            for method in METHODS:
                began = time.process_time()
                (found,) = explain(model, [example], [method], SAID).by_word()
                seconds[method] += time.process_time() - began
                ranks[method, contrast].append(
                    reciprocal(np.asarray(found.attribution(method).scores["passage"]), evidence)
                )
            if contrast:
                right += bool(found.probabilities[1] > 0.5)
        print(f"{done} of {len(rows)} pairs", file=sys.stderr, end="\r")
    n = len(chance)
    lines = [
        f"{model.name}, {n} pairs of {len({row['phenomenon'] for row in rows})} phenomena (seed {given.seed}), "
        f"{left_out} left out because no word of the text is the evidence; it prefers the right word in "
        f"{right / n:.0%}.",
        "",
        "| method | with contrast | without | CPU ms a question |",
        "|---|---|---|---|",
    ]
    for method in METHODS:
        cells = []
        for contrast in (True, False):
            values = np.array(ranks[method, contrast])
            low, high = mean_interval(values)
            cells.append(f"{values.mean():.3f} ({low:.3f} to {high:.3f})")
        lines.append(f"| {method} | {cells[0]} | {cells[1]} | {500 * seconds[method] / n:,.0f} |")
    lines.append(f"| a random order, expected | {np.mean(chance):.3f} | {np.mean(chance):.3f} | |")
    text = "\n".join(lines)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
