"""How well a bag of words does on each rule of the planted corpus: `python checks/planted_bow.py`.

Logistic regression on word counts, trained on 4,000 texts, tested on 2,000 others. The table of
docs/planted.md is what this prints.
"""

from __future__ import annotations

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from heedful.data.generated.planted import RULES, SIDE_OF, Planted, Rule, generate

TRAIN, TEST, SEED = 4000, 2000, 0


def accuracy(rule: Rule, ngrams: int, *, cues: bool = True, train: int = TRAIN, test: int = TEST) -> float:
    """Test accuracy with counts of n-grams up to `ngrams`; without `cues` all that decides is cut out."""
    planted = list(generate(rule, train + test, SEED))
    texts = [one.text.split() if cues else without_cues(one) for one in planted]
    labels = [one.label for one in planted]
    counts = CountVectorizer(analyzer=lambda words: grams(words, ngrams))
    model = make_pipeline(counts, LogisticRegression(max_iter=1000))
    model.fit(texts[:train], labels[:train])
    return float(model.score(texts[train:], labels[train:]))


def without_cues(one: Planted) -> list[str]:
    words = enumerate(one.text.split())
    return [word for i, word in words if i not in one.evidence and word not in SIDE_OF]


def grams(words: list[str], longest: int) -> list[str]:
    return [" ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)]


def table() -> str:
    """Accuracy for each rule, as a Markdown table."""
    lines = ["| rule | words | words and pairs | words, cues removed |", "|---|---|---|---|"]
    for rule in RULES:
        row = (accuracy(rule, 1), accuracy(rule, 2), accuracy(rule, 1, cues=False))
        lines.append(f"| {rule} | {' | '.join(f'{value:.3f}' for value in row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
