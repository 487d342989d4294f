"""The smallest change that changes the answer, on functions whose answers are known by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
import webruns
from commands import heedful as command
from heedful import Mistake
from heedful.api.changes import counterfactual
from heedful.data.text.tokenise import tokenizer
from heedful.explainers.counterfactual.changes import Change, changed_text, pieces
from heedful.explainers.counterfactual.fill import masked_model
from heedful.models.model import Model
from heedful.records import Example


def of_words(score: Callable[[list[str]], float], labels: tuple[str, ...] = ("neg", "pos"), **given: Any) -> Model:
    """A function that answers `pos` as the score of a text's words says."""

    def predict(texts: list[Any]) -> np.ndarray:
        z = np.array([score((t if isinstance(t, str) else " ".join(t)).lower().split()) for t in texts])
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], 1)

    return heedful.wrap(predict, labels=list(labels), **given)


def sentiment(words: list[str]) -> float:
    good = sum(w in ("good", "great", "fine") for w in words)
    return (-1 if "not" in words else 1) * (good - 0.5) - 2 * ("bad" in words)


def split(text: str) -> Any:
    return tokenizer("spacy")(text)


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("not a good film.", [Change(0, "remove")], "a good film."),
        ("a (very) good film", [Change(2, "remove")], "a () good film"),
        ("a good film.", [Change(2, "remove"), Change(1, "remove")], "a."),
        ("Good films", [Change(0, "replace", "bad")], "Bad films"),
        ("a good film", [Change(1, "add", "not")], "a not good film"),
        ("good", [Change(0, "add", "not"), Change(1, "add", "enough")], "not good enough"),
        ("a good film", [Change(0, "remove"), Change(1, "replace", "bad")], "bad film"),
    ],
)
def test_the_text_that_changes_make(text: str, changes: list[Change], expected: str) -> None:
    assert changed_text(split(text), changes) == expected
    gone = [piece.strip() for kind, piece in pieces(split(text), changes) if kind == "gone"]
    assert gone == [split(text).surface(c.place) for c in sorted(changes) if c.kind != "add"]


def test_the_smallest_removal_is_certain() -> None:
    found = counterfactual(of_words(sentiment), "not a good film")
    assert found.answer == "neg"
    assert found.searched is not None
    assert found.searched.smallest
    assert {flip.text for flip in found.searched.flips} >= {"a good film"}
    for flip in found.searched.flips:  # what is told of a text is what the model says of it
        assert of_words(sentiment).predict([flip.text]).argmax() == 1
        assert flip.answer == "pos"
    assert found.certificate() == "one change is enough"


def brute_force(model: Model, text: str) -> int:
    """The fewest words whose removal changes the answer."""
    words = split(text)
    own = model.predict([text]).argmax()
    for size in range(1, len(words)):
        for gone in combinations(range(len(words)), size):
            if model.predict([changed_text(words, [Change(i, "remove") for i in gone])]).argmax() != own:
                return size
    return 0


@pytest.mark.parametrize("seed", range(4))
def test_all_smaller_sets_were_tried(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = dict(zip("abcdefg", rng.normal(0.3, 1, 7), strict=True))
    pair = {(a, b): rng.normal() for a, b in combinations("abcdefg", 2)}
    model = of_words(lambda ws: sum(weight[w] for w in ws) + sum(pair[p] for p in pair if set(p) <= set(ws)))
    text = "a b c d e f g"
    found = counterfactual(model, text, budget=200, most=6)
    expected = brute_force(model, text)
    assert found.searched is not None
    assert (len(found.searched.flips[0].changes) if found.searched.flips else 0) == expected
    assert found.searched.smallest == (expected > 0)
    assert found.searched.texts <= 200


def test_a_budget_takes_the_certainty_and_not_the_answer() -> None:
    needs_three = of_words(lambda ws: sum(w in ("good", "great", "fine") for w in ws) - 0.5)
    text = "a good and great and fine film to see again and again"
    all_tried, few = counterfactual(needs_three, text), counterfactual(needs_three, text, budget=60)
    assert all_tried.searched is not None
    assert few.searched is not None
    assert all_tried.searched.flips[0].text == few.searched.flips[0].text == "a and and film to see again and again"
    assert all_tried.searched.smallest
    assert "3 changes are the fewest: all sets of 2 or fewer were tried" in all_tried.certificate()
    assert not few.searched.smallest
    assert few.searched.texts <= 60
    assert "were not all tried" in few.certificate()


def test_words_are_replaced_and_added_from_a_list_and_ways_differ() -> None:
    found = counterfactual(of_words(sentiment), "a good film", words=["bad", "not", "table"], n=4)
    assert found.searched is not None
    texts = [flip.text for flip in found.searched.flips]
    assert len(set(texts)) == 4
    slots = [flip.changes[0].slot for flip in found.searched.flips]
    assert len(set(slots)) >= 3  # not four words at one place
    only = counterfactual(of_words(sentiment), "a good film", words=["bad"], changes=["add"])
    assert only.searched is not None
    assert all(c.kind == "add" for flip in only.searched.flips for c in flip.changes)
    assert "{+bad+}" in "\n".join(only.lines())
    assert "<ins>" in only.to_html()
    assert json.loads(only.to_json())["counterfactuals"][0]["changes"][0]["kind"] == "add"


def test_a_target_and_a_second_text() -> None:
    def three(texts: list[str]) -> np.ndarray:
        z = np.array([[1.0, 2.0 * ("b" in t.split()), 3.0 * ("c" in t.split())] for t in texts])
        return np.asarray(np.exp(z) / np.exp(z).sum(1, keepdims=True))

    model = heedful.wrap(three, labels=["A", "B", "C"])
    found = counterfactual(model, "x b c", target="A")
    assert found.answer == "C"
    assert found.searched is not None
    assert [flip.text for flip in found.searched.flips] == ["x"]
    nli = of_words(lambda ws: 1.0 - 2 * ("no" in ws), query=True)
    both = counterfactual(nli, "a man runs", query="no man runs", part="query")
    assert both.searched is not None
    assert both.searched.flips[0].text == "man runs"
    assert both.other == "a man runs"


def test_how_few_words_keep_the_answer() -> None:
    found = counterfactual(of_words(sentiment), "a good film that I will see again", reduce=True)
    assert found.reduced is not None
    assert found.reduced.text == "good"
    assert found.reduced.kept == (1,)
    assert found.reduced.confidence == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert [n for n, _ in found.reduced.steps] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert "not every one was tried" in found.certificate()


def test_where_nothing_changes_it_is_said() -> None:
    found = counterfactual(of_words(lambda ws: 1.0), "a good film", most=2)
    assert found.searched is not None
    assert found.searched.flips == ()
    assert found.certificate() == "no 2 or fewer changes of these kinds change the answer: all were tried"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"changes": ["swap"]}, "there is no change 'swap'"),
        ({"changes": ["replace"]}, "give a list of words"),
        ({"target": "pos"}, "says 'pos' already"),
        ({"budget": 0}, "budget must be from 1"),
        ({"reduce": True, "words": ["x"]}, "reduce removes words"),
        ({"part": "query"}, "a query can only be changed where one is given"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        counterfactual(of_words(sentiment), "a good film", **given)


def test_a_number_has_no_other_answer() -> None:
    model = heedful.wrap(lambda texts: np.ones((len(texts), 1)), labels=["stars"], problem_type="regression")
    with pytest.raises(Mistake, match="predicts a number"):
        counterfactual(model, "a good film")


def test_a_masked_language_model_fills_gaps(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "##s", ".", "not"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    fill = masked_model(tmp_path, 3)
    (found,) = fill([(split("a good film"), Change(1, "replace", "\x00"))])
    assert len(found) == 3
    assert set(found) <= {"a", "good", "bad", "film", "not"}
    with pytest.raises(Mistake, match="is not a masked language model"):
        masked_model(tmp_path / "nowhere", 3)


def test_a_language_model_says_another_word() -> None:
    pytest.importorskip("transformers")
    import language_zoo

    model = language_zoo.model(next(iter(language_zoo.FAMILIES)))
    found = counterfactual(model, "the cat sat on the mat", n=1)
    assert found.searched is not None
    for flip in found.searched.flips:
        token = int(model.next_logits(model.prompt(flip.text)).argmax())
        assert model.name_of(token) == flip.answer != found.answer


def test_the_command(tmp_path: Path) -> None:
    text = "a good film"
    given = [Example(f"{i}", split(one), i % 2) for i, one in enumerate(["a good film", "a bad film of no use"])]
    tiny_run = webruns.make_run(tmp_path, "tiny", given, experiments=()).path
    done = command("counterfactual", str(tiny_run), text, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["text"] == text
    out = tmp_path / "found.html"
    assert command("counterfactual", str(tiny_run), text, "--reduce", "-o", str(out)).returncode == 0
    assert "words keep the answer" in out.read_text()
    wrong = command("counterfactual", str(tiny_run), text, "-o", str(tmp_path / "found.txt"))
    assert wrong.returncode == 2
    assert ".html or .json" in wrong.stderr
