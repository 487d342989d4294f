"""The scores of every word of many texts by one method: what corpora are edited by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.engine.progress import Bar
from heedful.engine.rows import TEXTS, TOKENS
from heedful.errors import Mistake
from heedful.experiments.correlation import by_word
from heedful.experiments.evidence_rows import method_scorer, words_of
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Example


def score_words(model: Model, examples: Sequence[Example], method: str, bar: Bar) -> NDArray[np.float32]:
    """For the label that is predicted, by size: (all words,), one text after the other."""
    scorer = method_scorer(model.network, method, {})
    found: dict[int, NDArray[np.float32]] = {}
    budget = token_budget(model.network, TOKENS)
    for indices, batch in model.encode(examples).batches(TEXTS, token_budget=budget):
        with torch.no_grad():
            output = model.network(batch)
        scores, real = np.abs(by_word(scorer(batch, output), batch.passage)), words_of(batch)
        for row, i in enumerate(indices.tolist()):
            if np.isnan(scores[row]).any():
                raise Mistake(
                    f"{method} says nothing of {examples[i].id}, which {model.name} reads in windows."
                )
            if batch.passage.word_index is None:
                found[i] = scores[row][real[row]].astype(np.float32)
            else:  # a tokenizer may leave nothing of a word: 0
                n = len(examples[i].passage)
                found[i] = np.pad(scores[row][:n], (0, max(0, n - scores.shape[1]))).astype(np.float32)
        bar.advance(len(indices))
    return np.concatenate([found[i] for i in range(len(examples))])
