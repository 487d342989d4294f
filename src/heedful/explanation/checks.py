"""The rules of `Explained`, asked of whole columns.

`Explained` knows the sentence for whoever breaks a rule: the first example that breaks one here is made as a record,
which then says what is wrong.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from heedful.errors import Mistake
from heedful.explanation.columns import Columns, Flags, Ints
from heedful.explanation.record import Explained
from heedful.explanation.views import fields_of


def check_columns(columns: Columns) -> Columns:
    """The columns themselves, if every example would pass the checks of `Explained`, and ids differ."""
    for wrong in (_wrong_attributions, _wrong_texts, _wrong_probabilities, _wrong_scores):
        broken = wrong(columns)  # places of examples
        if broken.size:
            first = int(broken.min())
            Explained(**next(fields_of(columns.between(first, first + 1))))
            raise AssertionError(f"example {first} breaks a rule of {wrong.__name__} that `Explained` does not know")
    check_ids(columns)
    return columns


def check_ids(columns: Columns) -> None:
    (id, times), *_ = [*Counter(columns.examples.id.tolist()).most_common(1), ("", 0)]
    if times > 1:
        raise Mistake(f"two examples are called {id!r}: the ids of examples must differ.")


def _wrong_attributions(c: Columns) -> Ints:
    """There are some, of different method or target, and each scores a part that is there."""
    example, a = c.example_of_attribution, c.attributions
    missing = a.query & (c.examples.n_texts < 2)[example]
    names = {name: i for i, name in enumerate(dict.fromkeys(method.name for method in c.methods))}
    name = np.array([names[method.name] for method in c.methods], dtype=np.int64)[a.method]
    key = (example * len(names) + name) * max(map(len, c.label_sets), default=0) + a.target  # (attributions,)
    twice = np.ones(len(key), dtype=np.bool_)
    twice[np.unique(key, return_index=True)[1]] = False
    none = np.flatnonzero(c.examples.n_attributions == 0)
    return np.concatenate([none, example[missing | twice | ~(a.passage | a.query)]])


def _wrong_texts(c: Columns) -> Ints:
    """Words, in the order of the text and inside it; numbers of words that ascend."""
    text, p = c.text_of_position, c.positions  # (positions,)
    within = np.diff(text, prepend=-1) == 0  # (positions,) not the first of its text
    length = np.array([len(each) for each in c.texts.text.tolist()], dtype=np.int64)  # (texts,)
    outside = (p.start < 0) | (p.start > p.end) | (p.end > length[text])
    unordered = within & (np.diff(p.start, prepend=0) < 0)
    unnumbered = (p.word < 0) | (within & (np.diff(p.word, prepend=0) < 0))
    wrong = c.texts.n_words == 0  # (texts,)
    wrong[text[outside | unordered | unnumbered]] = True
    return np.repeat(np.arange(len(c)), c.examples.n_texts)[np.flatnonzero(wrong)]


def _wrong_probabilities(c: Columns) -> Ints:
    """None below 0, and of sum 1; of labels that can be true together none above 1; numbers are finite."""
    example = np.repeat(np.arange(len(c)), c.n_labels)
    kinds = np.array([c.answers_of(i) for i in range(len(c.label_sets))], dtype=np.object_)[c.examples.labels]
    p, kind = c.probabilities, kinds[example]  # (probabilities,) each
    impossible = ~np.where(kind == "numbers", np.isfinite(p), (p >= 0) & ((kind == "one label") | (p <= 1 + 1e-3)))
    total = np.bincount(example, p, len(c))
    return np.concatenate([example[impossible], np.flatnonzero((kinds == "one label") & ~(np.abs(total - 1) < 1e-3))])


def _wrong_scores(c: Columns) -> Ints:
    """Finite, and not below 0 where they have no sign; so are those of special tokens, where there are any."""
    special, signed = c.attributions.special, c.signed
    wrong = np.isinf(special) | np.isinf(c.attributions.rest) | (~signed & (special < 0))  # (attributions,)
    wrong_score = ~np.isfinite(c.scores) | ((c.scores < 0) & ~np.repeat(signed, c.n_scores))
    wrong[c.attribution_of_score[wrong_score]] = True
    wrong[c.attribution_of_cell[_wrong_cells(c)]] = True
    return c.example_of_attribution[wrong]


def _wrong_cells(c: Columns) -> Flags:
    """Of axes that their method has, at scores that are there, each place once and in order; numbers as scores are."""
    cells, attribution = c.cells, c.attribution_of_cell
    axes = np.array([method.axes for method in c.methods], dtype=np.object_)[c.attributions.method[attribution]]
    pairs = (axes == "pairs") & (cells.j >= cells.i) & (cells.layer == -1)
    layers = (axes == "layers") & (cells.j == -1) & (cells.layer >= 0)
    inside = (cells.i >= 0) & (np.maximum(cells.i, cells.j) < c.n_scores[attribution])
    key = np.stack([attribution, cells.layer, cells.i, cells.j]).astype(np.int64)  # (4, cells)
    step = np.diff(key)  # the first that differs must rise
    first = np.take_along_axis(step, (step != 0).argmax(0)[None], 0)[0]
    ascends = np.append(np.ones(min(len(cells), 1), dtype=np.bool_), first > 0)
    number = np.isfinite(cells.score) & ((cells.score >= 0) | c.signed[attribution])
    wrong: Flags = ~((pairs | layers) & inside & ascends & number)
    return wrong
