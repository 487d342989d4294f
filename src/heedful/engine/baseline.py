"""What a bag of words gets on the same data: TF-IDF and logistic regression, beside every model that is trained.

Whoever explains a model should know whether a model without word order and attention does as well. Features are the
words that the classifier reads (passage and query apart), 1 + log tf times idf, normed; the strength of the penalty is
the one that does best on dev. Seconds, also on large corpora: more than `MOST` training texts are thinned out evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.data.assemble import spread_places
from heedful.measure.performance import performance
from heedful.records import Corpus, Example

NAME = "TF-IDF and logistic regression"
VERSION = "1"  # of what is written into a run's performance
PENALTIES = (1.0, 10.0, 100.0)  # C of scikit-learn: the less, the stronger
MOST = 20_000  # training texts
MOST_LABELS = 50  # a question of which any word may be the answer is no classification


def bag_of_words(corpus: Corpus, split: str) -> dict[str, Any] | None:
    """Its scores on a split, under the names of `performance`; None where there is nothing to compare with."""
    labels = {example.label for example in corpus["train"]}
    if corpus.task == "qa" or not 2 <= len(labels) <= MOST_LABELS or None in labels:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    places = spread_places(len(corpus["train"]), MOST)
    train = [corpus["train"][place] for place in places]
    if len({example.label for example in train}) < 2:
        return None
    vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)
    x = {"train": vectorizer.fit_transform(train)}
    x |= {name: vectorizer.transform(corpus[name]) for name in {"dev", split}}  # type: ignore[index]
    y = {name: np.array([e.label for e in some]) for name, some in [("train", train), ("dev", corpus["dev"])]}

    def fitted(C: float) -> Any:
        return LogisticRegression(C=C, max_iter=200, tol=1e-3).fit(x["train"], y["train"])

    models = [fitted(C) for C in PENALTIES]
    right = [float((model.predict(x["dev"]) == y["dev"]).mean()) for model in models]
    best = int(np.argmax(right))  # the strongest penalty of those that are as good
    p = np.zeros((x[split].shape[0], len(corpus.labels)))
    p[:, models[best].classes_] = models[best].predict_proba(x[split])
    scores = performance(np.array([e.label for e in corpus[split]]), p)  # type: ignore[index]
    told = {name: None if math.isnan(value) else value for name, value in scores.items()}
    return {"name": NAME, "version": VERSION, "train_texts": len(train), "C": PENALTIES[best], **told}


def words_of(example: Example) -> Sequence[str]:
    """A word of the query is another than the same word of the passage."""
    query = () if example.query is None else example.query.forms
    return [*example.passage.forms, *(f"query: {word}" for word in query)]
