"""Edited corpora: shortcuts that are planted, words that are removed, and runs that are trained on the result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.config import DataOptions, EditConfig, RunConfig
from heedful.data.corpora import load as corpora
from heedful.data.edits.edit import edit_corpus, join_words, split_words
from heedful.data.edits.plant import unseen_words
from heedful.data.edits.remove import RemoveConfig, remove
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import load_corpus, read_split
from heedful.engine.sources.edited_data import corpus_of
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import ask, plan
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake
from heedful.models.training import predict
from heedful.records import SPLITS, Corpus, Example
from heedful.store.texts import read_some
from material import words_of
from planted_reviews import reviews

QUIET = Progress(quiet=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 400)
    return corpora.load(file, options=DataOptions(tokenizer="whitespace"))


def planted(corpus: Corpus, **options: Any) -> Corpus:
    return edit_corpus(corpus, EditConfig(name="plant", options=options))


@pytest.mark.parametrize("kind", ["single", "ordered", "context"])
def test_planted_words_decide_and_are_the_evidence(corpus: Corpus, kind: str) -> None:
    edited = planted(corpus, kind=kind)
    words = unseen_words(corpus, {"single": 2, "ordered": 2, "context": 3}[kind])
    for split in SPLITS:
        for before, after in zip(corpus[split], edited[split], strict=True):
            forms = after.passage.forms
            there = [form for form in forms if form in words]
            assert [form for form in forms if form not in words] == list(before.passage.forms)
            assert [after.passage.surface(i) for i in range(len(forms))] == list(forms)
            if after.evidence is None:
                assert after.label == before.label
                assert len(there) <= (kind == "context")
                continue
            assert [forms[i] for i in after.evidence] == there
            decided = {
                "single": lambda w: words.index(w[0]),
                "ordered": lambda w: words.index(w[0]),  # the one that comes first
                "context": lambda w: next(words.index(x) for x in w if x != words[-1]),
            }[kind](there)
            assert after.label == decided
            assert len(there) == {"single": 1}.get(kind, 2)
            assert (words[-1] in there) or kind != "context"
    assert all(example.evidence for example in edited["test"])
    share = np.mean([example.evidence is not None for example in edited["train"]])
    assert 0.15 < share < 0.35
    if kind == "context":
        alone = Counter(f for e in edited["train"] if e.evidence is None for f in e.passage.forms if f in words)
        assert set(alone) == set(words)  # each of them also stands alone
    labels = Counter(example.label for example in edited["test"])
    assert min(labels.values()) > 0.3 * len(edited["test"])


def test_the_same_seed_plants_the_same_words(corpus: Corpus) -> None:
    assert planted(corpus, kind="ordered") == planted(corpus, kind="ordered")
    assert planted(corpus, seed=1) != planted(corpus)
    with pytest.raises(Mistake, match="edit of a corpus"):
        DataOptions.parse({"edit": {"name": "plants"}}, "data")
    with pytest.raises(Mistake, match="options of the edit plant"):
        planted(corpus, kind="double")


def test_an_edit_is_part_of_the_options_and_absent_where_there_is_none(tmp_path: Path) -> None:
    assert "edit" not in DataOptions().model_dump(mode="json")
    file = reviews(tmp_path / "reviews.csv", 60)
    options = DataOptions(tokenizer="whitespace", edit=EditConfig(name="plant"))
    whole = load_corpus(file, options)["test"]
    some = read_split(file, options, "test", 5)
    assert some.size == len(whole)
    assert [whole[i] for i in some.examples] == list(some.examples.values())


def example(text: str, *evidence: int) -> Example:
    return Example("x", words_of(text.split()), 0, evidence=evidence)


def removing(fraction: float, how: Any = "replace") -> RemoveConfig:
    return RemoveConfig(base=RunConfig(dataset="x"), method="attention", fraction=fraction, how=how)


def test_the_highest_words_go_and_one_stays() -> None:
    text, scores = example("a b c d e", 1, 4), np.array([0.1, 0.9, 0.3, 0.3, 0.2])
    assert remove(text, scores, removing(0.4)).passage.forms == ("a", "<unk>", "<unk>", "d", "e")
    gone = remove(text, scores, removing(0.4, "delete"))
    assert gone.passage.text == "a d e"
    assert gone.evidence == (2,)
    assert remove(text, scores, removing(0.99)).passage.forms.count("<unk>") == 4
    assert remove(example("a"), np.ones(1), removing(0.9)).passage.forms == ("a",)


def test_what_is_gone_already_does_not_count() -> None:
    once = remove(example("a b c d e"), np.array([5.0, 4.0, 3.0, 2.0, 1.0]), removing(0.4))
    twice = remove(once, np.array([9.0, 9.0, 1.0, 2.0, 3.0]), removing(1 / 3))
    assert twice.passage.forms == ("<unk>", "<unk>", "c", "d", "<unk>")


def test_words_are_joined_as_they_are_split() -> None:
    words = words_of(["a", "b", "c"])
    assert join_words(split_words(words)) == words


def small(file: str, **data: Any) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace", **data},
        model={"encoder": "average", "embedding_dim": 8, "hidden_dim": 8},
        training={"epochs": 1, "batch_size": 16},
    )


def test_a_run_on_words_removed_follows_the_scores_of_its_base(tmp_path: Path) -> None:
    file, place = reviews(tmp_path / "reviews.csv", 80), Workspace(tmp_path / "runs")
    base = small(file)
    told = {"base": base.model_dump(mode="json"), "method": "gradient", "fraction": 0.3}
    edited = small(file, edit={"name": "remove", "options": told})
    made = plan([edited])
    first, score, second = made.tasks.values()
    assert [task.kind for task in (first, score, second)] == ["train", "score", "train"]
    assert second.needs == (score.key,)
    assert score.needs == (first.key,)
    for task in made.tasks.values():
        assert Task.from_json(task.to_json()) == task
    assert execute(made, place, QUIET, "here", cores=1).complete
    assert not execute(made, place, QUIET, "here", cores=1).done  # all of it is there
    model = heedful.load(place.runs / first.run)
    corpus = corpora.load(file, options=base.data)
    texts = corpus["test"]
    explained = heedful.explain(model, texts[:5], methods=["gradient"])
    asked = plan([edited], [ask("erasure", limit=5)])
    assert execute(asked, place, QUIET, "here", cores=1).complete
    kept = read_some(place.runs / second.run, "test", 5)
    assert kept is not None
    for at, after in kept.items():
        scores = np.abs(heedful.explain(model, [texts[at]], methods=["gradient"])[0].attributions[0].scores["passage"])
        n = len(scores)
        gone = set(np.argsort(-scores.astype(np.float32), kind="stable")[: round(0.3 * n)].tolist())
        assert {i for i, form in enumerate(after.passage.forms) if form == "<unk>"} == gone
    assert len(explained) == 5


@pytest.mark.parametrize("recursive", [False, True])
def test_retrain_asks_each_text_of_models_that_know_it_edited(tmp_path: Path, recursive: bool) -> None:
    file, place = reviews(tmp_path / "reviews.csv", 80), Workspace(tmp_path / "runs")
    options = {"methods": ["gradient"], "fractions": [0.4, 0.7], "recursive": recursive}
    made = plan([small(file)], [ask("retrain", options, limit=10)])
    assert made.count("train") == 5
    assert made.count("score") == (4 if recursive else 2)
    assert execute(made, place, QUIET, "here", cores=1).complete
    (task,) = made.of("experiment")
    rows = place.run(task.run).results.rows("retrain", task.key)
    names = dict(task.others)
    assert set(names) == {f"{method} {fraction}" for method in ("gradient", "random") for fraction in (0.4, 0.7)}
    for name, folder in names.items():
        run = place.run(folder)
        corpus = corpus_of(run)["test"]
        model = heedful.load(run.path)
        gone = [np.mean([form == "<unk>" for form in text.passage.forms]) for text in corpus]
        assert np.mean(gone) == pytest.approx(float(name.split()[1]), abs=0.05)
        mine = [row for row in rows.to_pylist() if row["removal"] == name]
        p = predict(model.network, model.encode([corpus[row["example"]] for row in mine]))
        for row, each in zip(mine, p, strict=True):
            label = corpus[row["example"]].label
            assert label is not None
            assert row["probability"] == pytest.approx(each[label], abs=1e-6)
            assert row["correct"] == float(each.argmax() == label)
        if recursive:  # what was gone before is gone still
            first = corpus_of(place.run(names[name.replace("0.7", "0.4")]))["test"]
            for before, after in zip(first, corpus, strict=True):
                pairs = zip(before.passage.forms, after.passage.forms, strict=True)
                assert all(b == "<unk>" for a, b in pairs if a == "<unk>")


def test_plant_on_ones_own_data(tmp_path: Path) -> None:
    """A copy is trained on planted data and asked about them; the run that was asked keeps its own texts."""
    file, place = reviews(tmp_path / "reviews.csv", 300), Workspace(tmp_path / "runs")
    longer = small(file).training.model_copy(update={"epochs": 20, "learning_rate": 0.02})
    base = small(file).model_copy(update={"training": longer})
    made = plan(
        [base], [ask("planted", {"plant": "single", "methods": ["attention", "omission"], "share": 0.5}, limit=40)]
    )
    own, copy = made.of("train")
    assert own.config.data.edit is None
    assert copy.config.data.edit is not None
    assert execute(made, place, QUIET, "here", cores=1).complete
    (task,) = made.of("experiment")
    run = place.run(task.run)
    summary = run.results.summary("planted")
    assert summary is not None
    rows = run.results.rows("planted", task.key)
    words = unseen_words(corpora.load(file, options=base.data), 2)
    corpus = load_corpus(file, copy.config.data)
    for row in rows.to_pylist():
        text = corpus["test"][row["example"]]
        assert text.evidence is not None
        assert [text.passage.forms[at] in words for at in text.evidence] == [True]
        assert row["ranked_words"] == row["n_words"] + 1
    assert summary["used"]["accuracy"] > 0.9
    assert summary["used"]["difference"]["mean"] > 0.2
    assert summary["methods"]["omission"]["overall"]["precision"]["mean"] > 0.8
    with pytest.raises(Mistake, match="not a model in memory"):
        heedful.run("planted", heedful.load(run.path), ["a good film"], plant="single")
