"""The rows of planted, rationales and pointing of a run, computed again by a slow program of its own.

    python checks/recompute_evidence.py RUN [--experiment planted|rationales|pointing] [--limit 50]

Shared with what it checks: the reading of the texts, the model, and the methods' scores, asked for one text at a time.
Everything else is written out: ranks by counting, thresholds by trying each, spans as sets of places, deleted words as
texts without them, hybrid documents as lists of words cut by spaCy's own sentencizer, chance from the documented
generators. Prints the largest difference of each column, and ends with 1 if one is above 1e-5.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import spacy
from spacy.tokens import Doc

import heedful
from heedful.data.corpora.load import load
from heedful.records import Example, Words
from heedful.store.run import Run

TOLERANCE = 1e-5
Row = dict[str, Any]


def words_of(forms: Sequence[str]) -> Words:
    ends = np.cumsum([len(form) + 1 for form in forms]) - 1
    offsets = np.stack([ends - [len(form) for form in forms], ends], axis=1).astype(np.int32)
    return Words(" ".join(forms), tuple(forms), offsets)


def measures(scores: list[float], marked: list[bool], ties: list[float]) -> Row:
    """Of one text, by definitions: pairs are counted, thresholds tried, spans are sets."""
    n, m = len(scores), sum(marked)
    names = ("hit", "precision", "best_f1", "iou_f1", "auprc", "rank", "auc", "chance")
    if not m:
        return dict.fromkeys(names)

    def chosen_probability(k: int, i: int) -> float:
        """That word i is among the first k when words of equal score are shuffled."""
        above = sum(s > scores[i] for s in scores)
        equal = sum(s == scores[i] for s in scores)
        return min(1.0, max(0.0, (k - above) / equal))

    def precision(k: int) -> float:
        return sum(chosen_probability(k, i) for i in range(n) if marked[i]) / k

    points = []
    for threshold in sorted(set(scores), reverse=True):
        taken = [s >= threshold for s in scores]
        found = sum(a and b for a, b in zip(taken, marked, strict=True))
        points.append((found / sum(taken), found / m))
    auprc = sum((r - before) * p for (p, r), before in zip(points, [0.0, *(r for _, r in points)], strict=False))
    ranks = [1 + sum(s > scores[i] for s in scores) + (scores.count(scores[i]) - 1) / 2 for i in range(n) if marked[i]]
    rest = [s for s, mark in zip(scores, marked, strict=True) if not mark]
    wins = [(s > r) + 0.5 * (s == r) for s, mark in zip(scores, marked, strict=True) if mark for r in rest]
    order = sorted(range(n), key=lambda i: (-scores[i], -ties[i]))
    return {
        "hit": precision(1),
        "precision": precision(m),
        "best_f1": max(2 * p * r / (p + r) if p + r else 0.0 for p, r in points),
        "iou_f1": span_f1({*order[:m]}, {i for i in range(n) if marked[i]}),
        "auprc": auprc,
        "rank": sum(ranks) / m,
        "auc": sum(wins) / len(wins) if wins else None,
        "chance": m / n,
    }


def span_f1(chosen: set[int], marked: set[int]) -> float:
    def spans(places: set[int]) -> list[set[int]]:
        made: list[set[int]] = []
        for i in sorted(places):
            if made and i - 1 in made[-1]:
                made[-1].add(i)
            else:
                made.append({i})
        return made

    ours, theirs = spans(chosen), spans(marked)
    found = sum(any(len(a & b) / len(a | b) >= 0.5 for b in theirs) for a in ours)
    p, r = found / len(ours), found / len(theirs)
    return 2 * p * r / (p + r) if found else 0.0


class Recomputed:
    """The rows of one experiment, text by text."""

    def __init__(self, run: Run, experiment: str, options: Row, split: str) -> None:
        self.model = heedful.load(run.path)
        corpus = load(run.config.dataset, options=run.config.data)
        self.examples: tuple[Example, ...] = corpus[split]  # type: ignore[index]
        self.options, self.experiment = options, experiment
        self.seed = int(np.random.default_rng([run.config.seed, *experiment.encode()]).integers(2**63))
        self.sentencizer = spacy.blank("en")
        self.sentencizer.add_pipe("sentencizer")

    def probabilities(self, forms: Sequence[str]) -> np.ndarray:
        example = Example("x", words_of(forms))
        _, batch = next(self.model.batches([example]))
        return self.model.network(batch).probabilities[0].detach().double().numpy()

    def scores(self, example: Example, method: str, ties: list[float]) -> list[float]:
        n = len(example.passage)
        known = {"random": ties, "uniform": [1.0] * n, "first_words": [-float(i) for i in range(n)]}
        if method in known:
            return known[method]
        found = heedful.explain(self.model, [example], methods=[method])[0].attributions[0].scores["passage"]
        largest = max(abs(float(s)) for s in found) or 1.0
        scores = [float(abs(s) if self.options["absolute"] else s) for s in found]
        groups: dict[int, float] = {}  # words whose scores follow closely on each other are equal
        before, group = max(scores), 0
        for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
            group += before - scores[i] > 1e-5 * largest
            before, groups[i] = scores[i], -float(group)
        return [groups[i] for i in range(len(scores))]

    def row(self, place: int, places: list[int], method: str) -> Row:
        rng = np.random.default_rng([self.seed, place])
        example = self.examples[place]
        if self.experiment == "pointing":
            example, marked = self.document(place, places, rng)
        else:
            marked = [i in (example.evidence or ()) for i in range(len(example.passage))]
        extra: Row = {}
        if self.experiment == "planted":
            extra = self.effects(example, marked, rng)
        ties = rng.random(len(marked)).tolist()
        return measures(self.scores(example, method, ties), marked, ties) | extra

    def effects(self, example: Example, marked: list[bool], rng: np.random.Generator) -> Row:
        forms, m = example.passage.forms, sum(marked)
        rest = np.flatnonzero(~np.array(marked))
        others = set(rng.permutation(rest)[:m].tolist())
        before = self.probabilities(forms)
        changes = []
        for gone in ({i for i, mark in enumerate(marked) if mark}, others):
            left = [form for i, form in enumerate(forms) if i not in gone]
            far = gone and left
            changes.append(0.5 * float(np.abs(self.probabilities(left) - before).sum()) if far else None)
        return {"effect": changes[0], "effect_random": changes[1], "correct": float(before.argmax() == example.label)}

    def document(self, place: int, places: list[int], rng: np.random.Generator) -> tuple[Example, list[bool]]:
        of = places.index(place)
        others = rng.permutation([i for i in range(len(places)) if i != of])[: self.options["sentences"] - 1]
        forms: list[str] = []
        labels: list[int | None] = []
        for i in rng.permutation([of, *others.tolist()]).tolist():
            text = self.examples[places[i]]
            spacy_doc = self.sentencizer(Doc(self.sentencizer.vocab, words=list(text.passage.forms)))
            sentences = [[token.text for token in sentence] for sentence in spacy_doc.sents]
            sentence = sentences[int(rng.integers(len(sentences)))]
            forms += sentence
            labels += [text.label] * len(sentence)
        predicted = int(self.probabilities(forms).argmax())
        marked = [label == predicted for label in labels]
        return replace(self.examples[place], passage=words_of(forms)), [m and not all(marked) for m in marked]


def main(run: Path, experiment: str, limit: int) -> int:
    table = pq.read_table(run / "results" / f"{experiment}.parquet")
    asked = json.loads(table.schema.metadata[b"heedful"])
    if asked["options"].get("plant"):
        sys.exit("these rows are of a planted copy: give a corpus with evidence of its own.")
    again = Recomputed(Run(run), experiment, asked["options"], asked.get("split", "test"))
    rows = table.to_pylist()
    places = sorted({row["example"] for row in rows})
    worst: dict[str, float] = {}
    some = set(places[:limit])
    for row in rows:
        if row["example"] not in some:
            continue
        for name, value in again.row(row["example"], places, row["method"]).items():
            stored = row[name]
            same = value is None and stored is None
            differs = 0.0 if same else float("inf") if value is None or stored is None else abs(value - stored)
            worst[name] = max(worst.get(name, 0.0), differs)
    print(f"{experiment}: {len(some)} texts, {len({row['method'] for row in rows})} methods and controls")
    for name, differs in worst.items():
        print(f"{name:14} largest difference {differs:.1e}")
    return int(max(worst.values()) > TOLERANCE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--experiment", default="planted", choices=("planted", "rationales", "pointing"))
    parser.add_argument("--limit", type=int, default=50)
    given = parser.parse_args()
    sys.exit(main(given.run, given.experiment, given.limit))
