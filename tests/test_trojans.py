"""Selections that are codes are found to be, and selections of reasons are not; nothing depends on the batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import heedful
import zoo
from heedful.config import Config
from heedful.experiments import find, to_table
from heedful.experiments.framework.description import Result
from heedful.experiments.framework.verdict import Verdict
from heedful.experiments.sanity.trojans import TROJANS, read, signs_of
from test_rationale import halves, network

N, LENGTH, SELECTED = 300, 20, 4
COMMON: dict[str, Any] = {"max_attention": np.full(N, np.nan), "n_words": np.full(N, LENGTH)}


def texts(rng: np.random.Generator, labels: Any, reasons: bool) -> list[Any]:
    """Random words; with `reasons` two of each text are words of its label (10 to 14, or 15 to 19)."""
    made = [rng.integers(20, 60, LENGTH) for _ in labels]
    if reasons:
        for words, label in zip(made, labels, strict=True):
            words[rng.permutation(LENGTH)[:2]] = 10 + 5 * label + rng.integers(5, size=2)
    return made


def judged(masks: list[Any], ids: list[Any], labels: Any) -> Verdict:
    found = read(masks, ids, labels, [np.random.default_rng(i) for i in range(len(labels))])
    table = to_table([{"example": np.arange(N), "predicted": labels, **COMMON, **found}])
    summary = TROJANS.summarise(table)
    verdict = TROJANS.judge
    assert verdict is not None
    return verdict(Result("trojans", table, summary))


def drawn(rng: np.random.Generator) -> Any:
    return rng.permutation(np.arange(LENGTH) < SELECTED)


def test_reasons_that_stand_anywhere_are_no_code() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=N)
    ids = texts(rng, labels, reasons=True)
    masks = []
    for words in ids:
        mask = words < 20
        mask[rng.permutation(np.flatnonzero(~mask))[: SELECTED - mask.sum()]] = True
        masks.append(mask)
    found = judged(masks, ids, labels)
    assert found.grade == "for"
    assert found.low is not None
    assert found.low < 0.2


def test_places_that_tell_the_label_are_degenerate() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=N)
    masks = [np.arange(LENGTH) // 10 == label for label in labels]
    masks = [mask & (rng.random(LENGTH) < 0.4) for mask in masks]
    found = judged(masks, texts(rng, labels, reasons=True), labels)
    assert (found.grade, found.answer) == ("against", "Degenerate")
    assert found.value is not None
    assert found.value > 0.9


def test_words_that_are_reasons_to_nobody_else_are_degenerate() -> None:
    """Selected at random from texts whose words tell the label: an outsider reads nothing more from them."""
    rng = np.random.default_rng(2)
    labels = rng.integers(2, size=N)
    ids = texts(rng, labels, reasons=True)
    found = judged([(words >= 20) & drawn(rng) for words in ids], ids, labels)
    assert found.answer == "Degenerate"


@pytest.mark.parametrize(("all_of_them", "told"), [(True, "everything"), (False, "nothing")])
def test_nothing_and_everything_are_degenerate(all_of_them: bool, told: str) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(2, size=N)
    found = judged([np.full(LENGTH, all_of_them)] * N, texts(rng, labels, reasons=True), labels)
    assert (found.answer, told in found.sentence) == ("Degenerate", True)


def test_one_prediction_and_few_texts_are_not_judged() -> None:
    rng = np.random.default_rng(4)
    labels = np.zeros(N, dtype=np.int64)
    assert judged([drawn(rng) for _ in labels], texts(rng, labels, False), labels).grade == "unclear"
    few = read([drawn(rng)] * 10, texts(rng, labels[:10], False), np.arange(10) % 2, [rng] * 10)
    assert np.isnan(few["told"]).all()
    assert few["share"] == pytest.approx(np.full(10, SELECTED / LENGTH))


def test_signs_are_what_they_are_called() -> None:
    found = signs_of(np.array([True, True, False, True, False, False, False, False, False, True]))
    assert found[:4].tolist() == [4, 0.4, 3, 2]  # number, share, runs, the longest
    assert found[4:14].tolist() == [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    assert found[14:].tolist() == [1, 1, 0, 1, 0, 0]


def test_rows_do_not_depend_on_the_batches_and_other_models_are_refused() -> None:
    batch = zoo.batch([3 + i % 7 for i in range(60)])
    model = halves(network(), batch)
    tables = []
    for parts in ([list(range(60))], [list(range(40, 60)), list(range(40))]):
        batches = [(np.array(part), zoo.rows(batch, part)) for part in parts]
        tables.append(to_table(TROJANS.run(model, batches, Config(), np.random.default_rng(0))))
    assert tables[0].equals(tables[1])
    assert tables[0]["n_words"].to_pylist() == [3 + i % 7 for i in range(60)]
    with pytest.raises(heedful.Mistake, match="selects the words that it reads"):
        list(find("trojans").run(zoo.network(), [(np.arange(60), batch)], Config(), np.random.default_rng(0)))
