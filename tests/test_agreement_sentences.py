"""Agreement sentences: what stands before the verb, and the word that decides its number."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import zoo
from distinct import distinct
from heedful.data.corpora.load import load
from heedful.data.formats.agreement import CUES, before_verb, cues_of, is_plural, subject_of
from heedful.data.text.batching import EVIDENCE, SOME_EVIDENCE, encode
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.explainers import EXPLAINERS
from heedful.records import Example
from material import words_of


@pytest.mark.parametrize(
    ("text", "singular", "attractors", "subject"),
    [
        ("the nominator 's argument", True, 0, "argument"),
        ("however , the neurons of the central nervous system", False, 1, "neurons"),
        ("the use of notable cultural themes in significant ways usually", True, 2, "use"),
        ("apparently , people in the autism spectrum disorder", False, 3, "people"),
        ("the keys to the cabinet", True, 1, None),  # the head has another number than the verb
        ("the keys to the cabinet", False, 2, None),  # one noun cannot be two attractors
        ("the keys of the cabinet and the doors", False, 1, None),  # perhaps two heads
        ("the conditions surrounding every instance of friction", False, 2, None),  # a phrase inside the phrase
        ("an area rich in minerals", True, 1, None),  # an adjective before the preposition
        ("genes involved in the disease", True, 1, None),
        ("he thinks that members of the club", False, 1, None),  # another clause
        ("in 1972 the author of the books", True, 1, None),
        ("the culture in new community", True, 0, "culture"),
        ("the", True, 0, None),
    ],
)
def test_the_subject_is_found_where_the_rule_is_sure(
    text: str, singular: bool, attractors: int, subject: str | None
) -> None:
    words = text.split()
    place = subject_of(words, singular, attractors)
    assert (None if place is None else words[place]) == subject


def test_number_by_form() -> None:
    words = ["keys", "people", "analysis", "glass", "status", "cat", "dogs"]
    assert [word for word in words if is_plural(word)] == ["keys", "people", "dogs"]


def test_a_text_ends_before_its_verb() -> None:
    row = {"id": "linzen-3", "text": "the keys to the cabinet are here", "verb_index": 5, "label": 0}
    made = before_verb(row | {"n_attractors": 1})
    assert (made["text"], made["evidence_tokens"]) == ("the keys to the cabinet", [1])
    assert "evidence_tokens" not in before_verb(row | {"n_attractors": 2})
    named = before_verb(row | {"id": "L__NOUN_VERB_VERB-10-4", "n_attractors": 0})
    assert named["evidence_tokens"] == [2]
    assert cues_of("R__VERB_NOUN_CCONJ_VERB-15-0") == (30, 31)
    assert cues_of("linzen-12") == cues_of("") == ()
    for wrong in (0, 7, "5"):
        with pytest.raises(ValueError, match="verb_index"):
            before_verb(row | {"verb_index": wrong, "n_attractors": 1})


def test_a_corpus_of_such_rows_has_all_splits(tmp_path: Path) -> None:
    folder = tmp_path / "agreement_linzen"
    folder.mkdir()
    rows: list[dict[str, Any]] = [
        {
            "text": f"the key{'s' * (i % 2)} of room {i} {'are' if i % 2 else 'is'} here",
            "verb_index": 5,
            "n_attractors": i % 2,
            "label": 1 - i % 2,
        }
        for i in range(20)
    ]
    rows += [
        {"text": "a key is here", "verb_index": 2, "n_attractors": 0, "label": 1, "id": f"x-{i}"} for i in range(20)
    ]
    path = folder / "test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = load("agreement_linzen", data_dirs=[tmp_path])
    everyone = [example for split in corpus.splits.values() for example in split]
    assert len(everyone) == 40
    assert all(corpus.splits[split] for split in ("train", "dev", "test"))
    assert corpus.labels == ("plural", "singular")
    for example in everyone:  # a number makes the rule unsure
        assert example.evidence == (None if example.passage.forms[0] == "the" else (1,))
        assert {"is", "are"}.isdisjoint(example.passage.forms)
    path.write_text(json.dumps({"text": "a key is", "verb_index": 9, "n_attractors": 0, "label": 1}) + "\n")
    with pytest.raises(Mistake, match="line 1: the 'verb_index'"):
        load("agreement_linzen", data_dirs=[tmp_path])


def test_evidence_of_some_texts_is_kept_apart_from_that_of_all() -> None:
    words = [words_of(["a", "b"]), words_of(["b", "a", "a"])]
    examples = [Example("0", words[0], label=0, evidence=(1,)), Example("1", words[1], label=1)]
    text = WordEncoder(Vocabulary((*MARKERS, "a", "b")))
    targets = encode(examples, text, 2).targets
    assert set(targets) == {SOME_EVIDENCE}
    assert targets[SOME_EVIDENCE].sum() == 1
    assert set(encode([examples[0]], text, 2).targets) == {EVIDENCE}
    assert encode([examples[1]], text, 2).targets == {}


def test_rationales_of_some_texts_are_asked_of_these() -> None:
    batch = distinct(zoo.batch([5, 9, 7, 6]))
    known = batch.targets[EVIDENCE].clone()
    known[1] = False
    some = replace(batch, targets={SOME_EVIDENCE: known})
    experiment = find("rationales")
    config = experiment.config.parse({"methods": ["omission"]}, "")

    def rows(given: Any) -> Any:
        return to_table(experiment.run(zoo.network(), [(np.arange(4), given)], config, np.random.default_rng(0)))

    whole, partial = rows(batch), rows(some)
    for one, other in zip(whole.to_pylist(), partial.to_pylist(), strict=True):
        assert other["precision"] == (None if one["example"] == 1 else one["precision"])
    assert experiment.summarise(partial)["without_evidence"] == 1


def test_given_texts_count_where_they_are_predicted_rightly() -> None:
    experiment, model, batch = find("pointing"), zoo.network(), distinct(zoo.batch([5, 9, 11, 6, 8, 8]))
    with torch.no_grad():
        predicted = model(batch).predicted
    batch = replace(batch, labels=torch.where(torch.arange(6) < 4, predicted, 1 - predicted))
    config = experiment.config.parse({"methods": ["omission"], "documents": "given"}, "")
    table = to_table(experiment.run(model, [(np.arange(6), batch)], config, np.random.default_rng(4)))
    rows: list[dict[str, Any]] = [row for row in table.to_pylist() if row["method"] == "omission"]
    for row in rows:
        text = zoo.row(batch, row["example"])
        if row["example"] >= 4:
            assert row["hit"] is row["chance"] is None
            continue
        scores = EXPLAINERS["omission"].run(model, text, text.labels).passage[0, 1:-1].numpy()
        marked = text.targets[EVIDENCE][0, 1:-1].numpy()
        assert row["hit"] == marked[scores.argmax()]
        assert row["chance"] == pytest.approx(marked.mean())
    assert len(rows) == 6
    unlabelled = [(np.arange(6), replace(batch, labels=None))]
    with pytest.raises(Mistake, match="needs their labels"):
        list(experiment.run(model, unlabelled, config, np.random.default_rng(4)))


@pytest.mark.corpora
def test_the_corpora_themselves() -> None:
    for name, share in (("agreement_gulordava", 1.0), ("agreement_linzen", 0.3)):
        if not (Path(os.environ["HEEDFUL_DATA"]) / name).is_dir():
            pytest.skip(f"{name} is not among the data")
        corpus = load(name)
        everyone = [example for split in corpus.splits.values() for example in split]
        known = [example for example in everyone if example.evidence]
        assert len(known) >= share * len(everyone)
        if name == "agreement_gulordava":
            assert len(known) == 10 * len(CUES)
