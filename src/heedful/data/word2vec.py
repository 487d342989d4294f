"""Word vectors trained on the task's own training texts: word2vec (Mikolov et al. 2013), by gensim.

Serrano & Smith 2019: 200 dimensions, 30 passes over the training texts, everything else gensim's default (CBOW,
window 5). `--vectors word2vec` asks for it; the vectors have the size of the model's embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedful.data.vectors import Vectors
from heedful.data.vocabulary import MARKERS, PAD, Vocabulary
from heedful.errors import Mistake
from heedful.records import Words

NAME, VERSION = "word2vec", "1"  # the version changes whenever the same texts would give other vectors
PASSES = 30


def train_word2vec(texts: Sequence[Words], vocabulary: Vocabulary, dim: int, seed: int) -> Vectors:
    """Words that the vocabulary does not have are one word, the unknown one; padding is zeros.

    One thread, so that the same seed gives the same vectors.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise Mistake(
            "--vectors word2vec needs the package 'gensim': pip install 'heedful[word2vec]'."
        ) from None
    sentences = [[str(i) for i in vocabulary.ids(text)] for text in texts]
    model = Word2Vec(sentences, vector_size=dim, epochs=PASSES, min_count=1, workers=1, seed=seed + 1)
    rng = np.random.default_rng([seed, 0])
    scale = float(model.wv.vectors.std())
    matrix = (scale * rng.standard_normal((len(vocabulary), dim))).astype(
        np.float32
    )  # markers are in no text
    matrix[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    matrix[PAD] = 0.0
    found = np.zeros(len(vocabulary), dtype=np.bool_)
    found[len(MARKERS) :] = True
    return Vectors(Path(NAME), matrix, found, types=1.0, tokens=1.0)
