"""The edit `remove`: the words that a method ranks highest are taken out of every text (ROAR: Hooker et al. 2019).

`base` is the run whose model was explained. Words are replaced by the unknown word, so that places stay, or deleted.
At least one word of every text stays. With a base that is itself a run on edited texts this is the recursive form: what
it has left is ranked again, and `fraction` is of the words that its texts have (Madsen et al. 2022).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from heedful.config import Config, RunConfig
from heedful.data.edits.edit import Scores, join_words, split_words
from heedful.data.text.vocabulary import MARKERS, UNK
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Example

UNKNOWN = MARKERS[UNK]


class RemoveConfig(Config):
    base: RunConfig
    method: str
    fraction: float = Field(gt=0, lt=1)
    how: Literal["replace", "delete"] = "replace"


class Remove:
    config = RemoveConfig
    version = "1"

    def scored_by(self, options: RemoveConfig) -> tuple[RunConfig, str] | None:
        return options.base, options.method

    def apply(self, corpus: Corpus, options: RemoveConfig, scores: Scores) -> Corpus:
        if options.base.start is not None and options.how == "replace":
            raise Mistake("a checkpoint's tokenizer has its own unknown word: remove words with how=delete.")
        splits = {}
        for split in SPLITS:
            examples = corpus[split]
            if not examples:
                continue
            if split not in scores:
                raise Mistake(f"{corpus.name} with words removed by {options.method} exists only in its own run.")
            of = np.split(scores[split], np.cumsum([len(e.passage) for e in examples])[:-1])
            splits[split] = tuple(remove(e, s, options) for e, s in zip(examples, of, strict=True))
        told = f"{corpus.source}; {options.fraction:.0%} of the words removed by {options.method}"
        return replace(corpus, splits=splits, source=told)


def remove(example: Example, scores: NDArray[Any], options: RemoveConfig) -> Example:
    """Without the words of highest score; of equal ones the first in the text goes first. What was replaced before is
    no word any more: it goes last, and counts as none."""
    parts = split_words(example.passage)
    words = np.array([form != UNKNOWN for _, form in parts])
    n = int(words.sum())
    k = min(round(options.fraction * n), n - 1)
    order = np.lexsort((-scores, ~words))
    gone = set(order[: max(0, k)].tolist())
    if options.how == "replace":
        changed = [(UNKNOWN, UNKNOWN) if i in gone else part for i, part in enumerate(parts)]
        return replace(example, passage=join_words(changed))
    kept = [i for i in range(len(parts)) if i not in gone]
    new = {old: i for i, old in enumerate(kept)}
    evidence = None if example.evidence is None else tuple(new[i] for i in example.evidence if i in new)
    return replace(example, passage=join_words([parts[i] for i in kept]), evidence=evidence)


REMOVE = Remove()
