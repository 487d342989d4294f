"""Does an explanation of a language model find the word that decides? Minimal pairs of three corpora, one model.

    make smollm2
    HEEDFUL_DATA=... python checks/language_study.py ask FOLDER ROWS.jsonl [--pairs 300] [--minutes 30]
    python checks/language_study.py show ROWS.jsonl          (writes docs/results/language-models.{json,svg,md})

After each text comes one word, not another, and the data say which word of the text decides that (Yin & Neubig 2022).
With contrast a method explains why this and not that; without, why this and not anything else. It ranks the words of
the text by how much they speak for the right one. `ask` goes on where it was; the corpora take turns, so it can be
stopped at any time. `show` is language_study_page.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CORPORA = ("blimp_evidence", "agreement_linzen", "agreement_gulordava")
METHODS = ("gradient", "gradient_x_input", "lrp", "lrp:rule=attnlrp", "attention", "omission", "random")
TOGETHER = 6  # texts
LONGEST = 40  # words of a text


def expected(n: int, k: int) -> float:
    """Of 1 / rank of the best of k words in a random order of n."""
    above, total = 1.0, 0.0  # P(best rank > r) = C(n - r, k) / C(n, k)
    for rank in range(1, n - k + 2):
        following = above * (n - rank + 1 - k) / (n - rank + 1)
        total += (above - following) / rank
        above = following
    return total


def reciprocal(scores: NDArray[np.float64], evidence: Sequence[int]) -> float:
    """1 / rank of the best evidence; words with the same score share the places."""
    best = max(scores[i] for i in evidence)
    higher, same = int((scores > best).sum()), int((scores == best).sum())
    return float(np.mean([1 / (higher + i + 1) for i in range(same)]))


def pairs(corpus: str, n: int, seed: int) -> list[Any]:
    """Examples with evidence, drawn with a seed."""
    from heedful.config import DataOptions
    from heedful.data.corpora.load import load_split

    found = load_split(corpus, "test", options=DataOptions(task="generation")).examples
    usable = [e for e in found if e.evidence and len(e.passage) <= LONGEST]
    return [usable[i] for i in np.random.default_rng(seed).permutation(len(usable))[:n]]


def questions(model: Any, examples: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Each text as a contrast, and as the same token against everything else."""
    from heedful.data.prompts import ELSE
    from heedful.models.language.decisions import decision

    for example in examples:
        contrast = decision(model, example)
        assert contrast.asked is not None
        names = (ELSE, contrast.asked.names[1])
        plain = replace(contrast, id=f"{contrast.id} plain", asked=replace(contrast.asked, that=None, names=names))
        yield contrast, plain


def ask(model: Any, corpus: str, examples: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """A row for each text."""
    from heedful.data.prompts import SAID
    from heedful.explainers.run import explain

    asked = list(questions(model, examples))
    every = [one for both in asked for one in both]
    found, seconds = {}, {}
    for method in METHODS:
        began = time.process_time()
        found[method] = list(explain(model, every, [method], SAID).by_word())
        seconds[method] = (time.process_time() - began) / len(every)
    for i, (contrast, _) in enumerate(asked):
        row: dict[str, Any] = {"corpus": corpus, "id": contrast.id, "seconds": seconds}
        evidence = list(contrast.evidence or ())
        row["right"] = bool(found["random"][2 * i].probabilities[1] > 0.5)
        row["words"] = len(contrast.passage)
        row["chance"] = expected(len(contrast.passage), len(evidence)) if evidence else None
        for j, kind in enumerate(("contrast", "plain")):
            drops = scores_of(found["omission"][2 * i + j])
            for method in METHODS:
                scores = scores_of(found[method][2 * i + j])
                most = drops.max()
                row[f"{method} {kind}"] = {
                    "rank": reciprocal(scores, evidence) if evidence else None,
                    "drop": float(drops[int(scores.argmax())] / most) if most > 0 else None,
                }
        yield row


def scores_of(explained: Any) -> NDArray[np.float64]:
    (attribution,) = explained.attributions
    return np.asarray(attribution.scores["passage"], dtype=np.float64)


def collect(folder: str, rows: Path, n: int, minutes: float, seed: int) -> None:
    import heedful

    began = time.process_time()
    model = heedful.load(folder)
    done = {json.loads(line)["id"] for line in rows.read_text().splitlines()} if rows.exists() else set()
    drawn = {corpus: pairs(corpus, n, seed) for corpus in CORPORA}
    with rows.open("a", encoding="utf-8") as file:
        for start in range(0, n, TOGETHER):
            for corpus in CORPORA:
                some = [e for e in drawn[corpus][start : start + TOGETHER] if e.id not in done]
                if not some:
                    continue
                for row in ask(model, corpus, some):
                    file.write(json.dumps(row) + "\n")
                file.flush()
                used = (time.process_time() - began) / 60
                print(f"{start + TOGETHER} texts of each, {used:.1f} CPU minutes", file=sys.stderr)
                if used > minutes:
                    return


def main() -> None:
    options = argparse.ArgumentParser(description="The deciding word, found by explanations of a language model.")
    commands = options.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("ask")
    asking.add_argument("model")
    asking.add_argument("rows", type=Path)
    asking.add_argument("--pairs", type=int, default=300)
    asking.add_argument("--minutes", type=float, default=30)
    asking.add_argument("--seed", type=int, default=0)
    showing = commands.add_parser("show")
    showing.add_argument("rows", type=Path)
    given = options.parse_args()
    if given.command == "ask":
        collect(given.model, given.rows, given.pairs, given.minutes, given.seed)
        return
    from language_study_page import write

    write([json.loads(line) for line in given.rows.read_text(encoding="utf-8").splitlines()])


if __name__ == "__main__":
    main()
