"""The edit `anonymise`: every word of the evidence becomes one and the same word (Pruthi et al. 2020: a control)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heedful.config import Config, RunConfig
from heedful.data.edits.edit import Scores
from heedful.records import Corpus, Example, Words

ANONYMOUS = "anon"


class Anonymise:
    config = Config
    version = "1"

    def scored_by(self, options: Config) -> tuple[RunConfig, str] | None:
        return None

    def apply(self, corpus: Corpus, options: Config, scores: Scores) -> Corpus:
        splits = {split: tuple(map(anonymise, examples)) for split, examples in corpus.splits.items()}
        return replace(corpus, splits=splits, source=f"{corpus.source}; the words of the evidence are anonymous")


def anonymise(example: Example) -> Example:
    """In the text, too; what stands between the words stays."""
    passage, hidden = example.passage, set(example.evidence or ())
    if not hidden:
        return example
    text, offsets, at = "", [], 0
    for i, (start, end) in enumerate(passage.offsets.tolist()):
        text += passage.text[at:start]
        begin, at = len(text), end
        text += ANONYMOUS if i in hidden else passage.text[start:end]
        offsets.append((begin, len(text)))
    text += passage.text[at:]
    forms = tuple(ANONYMOUS if i in hidden else one for i, one in enumerate(passage.forms))
    return replace(example, passage=Words(text, forms, np.array(offsets, np.int32).reshape(-1, 2)))


ANONYMISE = Anonymise()
