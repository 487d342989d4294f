"""Removal interactions: is losing two words another matter than losing each?

    I_ij = f(x) - f(x without i) - f(x without j) + f(x without both)

The mixed second difference of leave-one-out, which is ArchDetect's in the context of the text itself (Tsang et al.
2020). A plus: the two need each other ("not", "good"). A minus: one of them is enough. f(x) - f(x without both) is what
each does alone, less I_ij. The diagonal and the scores of words are leave-one-out.

A BiLSTM, an LSTM, a CNN or an average of ours is asked once for each word: the text without it, from which every later
word is deleted through the structure of the encoder (perturbation/one_word.py).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.interactions.words import Asking, Floats, Missing, Together, WordGame, each_text, without
from heedful.explainers.perturbation.one_word import delete_two_words, has_structure
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch


def removal_interactions(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    operator: Missing = "delete",
    token: int | None = None,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """I_ij of every two words, of passage and query together, and leave-one-out of each."""
    asking = Asking(model, batch, target, of, operator, token, internal_batch_size)
    asked = explained_parts(model, batch, parts, of)
    alone = "query" not in asked or batch.query is None

    def find(game: WordGame, row: int) -> Together:
        if alone and operator == "delete" and has_structure(model) and game.text.passage.word_index is None:
            logits = delete_two_words(model, game.text, internal_batch_size)
            game.passes += len(logits)
            n = len(logits)
            f = model.link.score(logits.double(), game.target.expand(n), of).cpu().numpy()
            return second_differences(f, game.n_words)
        return second_differences(game(without(game.n_words)), game.n_words)

    with torch.no_grad():
        return each_text(asking, parts, find)


def second_differences(f: Floats, n: int) -> Together:
    """From f of the texts of `without(n)`."""
    i, j = np.triu_indices(n, 1)
    single = f[0] - f[1 : 1 + n]
    pairs = np.diag(single)
    pairs[i, j] = f[0] - f[1 + i] - f[1 + j] + f[1 + n :]
    return Together(single, pairs)
