"""The corpus that a run reads: as its files have it, or edited, where need be by scores that another run has.

An edit may be of texts that were edited before: those of the run that scored them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import EditConfig
from heedful.data.edits.edit import parse_edit
from heedful.engine.running.progress import ProgressBar
from heedful.engine.sources.data import load_plain_corpus
from heedful.engine.tasks.rows import TEXTS, TOKENS
from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word
from heedful.experiments.ground_truth.evidence import method_scorer, words_of
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Corpus, Example
from heedful.store.run import Run

Edited = Sequence[str]  # the run folder that has the scores of every word, the method, and their key


def edit_by_scores(plain: Corpus, edit: EditConfig | None, edited: Edited | None, runs: Path) -> Corpus:
    """`edited` is where the scores are that the edit needs; `runs` the folder of run folders."""
    if edit is None:
        return plain
    found, options = parse_edit(edit)
    if edited is None:
        return found.apply(plain, options, {})
    folder, method, key = edited
    base = Run(runs / folder)
    before = edit_by_scores(plain, base.config.data.edit, base.info.get("edited"), runs)
    return found.apply(before, options, base.fitted(words_scored_by(method), key))


def corpus_of(run: Run, data_dirs: Sequence[Path] = ()) -> Corpus:
    """What a run was trained on."""
    config = run.config
    plain = load_plain_corpus(config.dataset, config.data, data_dirs)
    return edit_by_scores(plain, config.data.edit, run.info.get("edited"), run.path.parent)


def words_scored_by(method: str) -> str:
    """What scores are called where what explainers learn is kept."""
    return f"words-{method}"


# The scores of every word of many texts by one method: what corpora are edited by.


def score_words(model: Model, examples: Sequence[Example], method: str, bar: ProgressBar) -> NDArray[np.float32]:
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
                raise Mistake(f"{method} says nothing of {examples[i].id}, which {model.name} reads in windows.")
            if batch.passage.word_index is None:
                found[i] = scores[row][real[row]].astype(np.float32)
            else:  # a tokenizer may leave nothing of a word: 0
                n = len(examples[i].passage)
                found[i] = np.pad(scores[row][:n], (0, max(0, n - scores.shape[1]))).astype(np.float32)
        bar.advance(len(indices))
    return np.concatenate([found[i] for i in range(len(examples))])
