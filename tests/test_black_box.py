"""A function from texts to probabilities: words are deleted from and replaced in the string itself."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import heedful
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.explainers.perturbation.occlusion import mask, omission
from heedful.explainers.run import explain
from heedful.models.black_box import BlackBox, StringEncoder, number_of, wrap_predict
from heedful.models.model import Model
from heedful.records import Batch, Example, Words

LABELS = ["neg", "pos"]


class Recorder:
    """P(pos) grows with the letter o in a text; every text that was asked about is kept."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, texts: list[Any]) -> NDArray[np.float64]:
        self.asked += texts
        p = np.array([(1 + str(text).count("o")) / (4 + len(str(text))) for text in texts])
        return np.stack([1 - p, p], axis=1)


def batch_of(model: Model, texts: list[str], queries: list[str] | None = None) -> Batch:
    return model.encode(model.examples(texts, queries)).batch(range(len(texts)))


def deletions(text: str) -> list[str]:
    predict = Recorder()
    model = wrap_predict(predict, labels=LABELS)
    omission(model.network, batch_of(model, [text]), torch.tensor([1]))
    return [asked for asked in dict.fromkeys(predict.asked) if asked != text]


def test_deleted_words_leave_the_string_as_a_person_would_write_it() -> None:
    assert set(deletions("a very good film")) == {"very good film", "a good film", "a very film", "a very good"}
    assert set(deletions("Not (so) good, isn't it?")) == {
        "(so) good, isn't it?",
        "Not so) good, isn't it?",
        "Not () good, isn't it?",
        "Not (so good, isn't it?",
        "Not (so), isn't it?",
        "Not (so) good isn't it?",
        "Not (so) good, n't it?",
        "Not (so) good, is it?",
        "Not (so) good, isn't?",
        "Not (so) good, isn't it",
    }
    assert set(deletions("שלום  עולם\n😀")) == {"עולם\n😀", "שלום  😀", "שלום  עולם"}


def test_replaced_words() -> None:
    predict = Recorder()
    model = wrap_predict(predict, labels=LABELS, mask="___")
    mask(model.network, batch_of(model, ["it isn't  good."]), torch.tensor([1]))
    assert set(predict.asked) == {
        "it isn't  good.",
        "___ isn't  good.",
        "it ___n't  good.",
        "it is___  good.",
        "it isn't  ___.",
        "it isn't  good___",
    }


def test_scores_are_differences_of_what_the_function_says() -> None:
    predict = Recorder()
    model = wrap_predict(predict, labels=LABELS)
    texts = ["one two good", "no"]
    batch = batch_of(model, texts)
    found = omission(model.network, batch, torch.tensor([1, 1]), of="probability").passage
    before, after = predict([texts[0]])[0, 1], predict(["one good"])[0, 1]
    assert float(found[0, 1]) == pytest.approx(before - after, abs=1e-12)
    assert float(found[1, 0]) == pytest.approx(predict(["no"])[0, 1] - predict([""])[0, 1], abs=1e-12)
    logits = omission(model.network, batch, torch.tensor([1, 1])).passage
    assert float(logits[0, 1]) == pytest.approx(np.log(before) - np.log(after), abs=1e-9)


def test_equal_texts_are_asked_once() -> None:
    predict = Recorder()
    model = wrap_predict(predict, labels=LABELS, batch_size=2)
    model.predict(["a"]), model.predict(["b", "c"])  # by then it has been tried
    predict.asked.clear()
    model.predict(["good film", "good film", "bad", "x"])
    assert sorted(predict.asked) == ["bad", "good film", "x"]


def test_everything_that_needs_no_inside() -> None:
    model = wrap_predict(Recorder(), labels=LABELS)
    examples = model.examples(["a good film, no?", "bad"])
    can = [name for name, explainer in EXPLAINERS.items() if explainer.needs <= model.network.can]
    assert {"omission", "mask", "lime", "shap", "random", "uniform"} <= set(can)
    found = explain(model, examples, ["omission", "mask", "lime", "shap"], n_samples=50, n_permutations=2)
    assert len(found) == 2
    for name in ("attention", "gradient_x_input", "integrated_gradients", "occlusion"):
        with pytest.raises(Mistake, match=f"{name} needs a model .*can: predicts"):
            explain(model, examples, [name])
    with pytest.raises(Mistake, match="no embeddings and no attention"):
        model.network(batch_of(model, ["x"]), edit=lambda layer, weights: weights)


def test_pairs() -> None:
    predict = Recorder()
    model = wrap_predict(predict, labels=LABELS, query=True)
    found = omission(model.network, batch_of(model, ["a good film"], ["is it?"]), torch.tensor([1]))
    assert found.query is not None
    assert ("a good film", "it?") in predict.asked
    assert ("a film", "is it?") in predict.asked


def test_labels_that_can_be_true_together_and_numbers() -> None:
    both = wrap_predict(
        lambda texts: np.full((len(texts), 2), 0.8), labels=LABELS, problem_type="multi_label_classification"
    )
    np.testing.assert_allclose(both.predict(["x"]), 0.8)
    number = wrap_predict(lambda texts: [[len(t)] for t in texts], labels=["length"], problem_type="regression")
    np.testing.assert_allclose(number.predict(["good film"]), [[9]])
    lost = omission(number.network, batch_of(number, ["good film"]), torch.tensor([0])).passage
    assert lost.tolist() == [[5, 5]]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda texts: [0.5] * len(texts), r"an array \(1,\) for 1 texts and 2 labels .*must be \(1, 2\)"),
        (lambda texts: [[0.5, 0.5, 0]] * len(texts), r"an array \(1, 3\)"),
        (lambda texts: [[0.5, np.nan]] * len(texts), "not finite"),
        (lambda texts: [[0.9, 0.9]] * len(texts), r"sum to 1.8, not to 1"),
        (lambda texts: [[-1.0, 2.0]] * len(texts), "-1, which is not a probability"),
        (lambda texts: [{"label": "pos"}] * len(texts), "list, which is not an array of numbers"),
    ],
)
def test_answers_are_checked(answer: Any, complaint: str) -> None:
    model = wrap_predict(answer, labels=LABELS)
    with pytest.raises(Mistake, match=complaint):
        model.predict(["x"])


def test_functions_that_answer_in_their_own_way() -> None:
    """Tensors of any kind are arrays, and a function that empties its list has been given one of its own."""

    def rude(texts: list[str]) -> torch.Tensor:
        answer = torch.full((len(texts), 2), 0.5, dtype=torch.bfloat16, requires_grad=True)
        texts.clear()
        return answer

    assert wrap_predict(rude, labels=LABELS).predict(["x", "y"]).tolist() == [[0.5, 0.5]] * 2


def test_the_usual_methods_are_those_that_it_can_be_asked_for() -> None:
    found = heedful.explain(wrap_predict(Recorder(), labels=LABELS), ["a good film"])
    assert list(found.methods) == ["omission"]


def test_a_probability_of_zero_has_a_logit() -> None:
    model = wrap_predict(lambda texts: [[1.0, 0.0]] * len(texts), labels=LABELS)
    output = model.network(batch_of(model, ["x"]))
    assert torch.isfinite(output.logits).all()
    torch.testing.assert_close(output.probabilities, torch.tensor([[1.0, 0.0]], dtype=torch.float64))


def test_what_cannot_be_wrapped() -> None:
    with pytest.raises(Mistake, match="a str cannot be called"):
        wrap_predict("model", labels=LABELS)  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="each with a name of its own"):
        wrap_predict(Recorder(), labels=["a", "a"])
    with pytest.raises(Mistake, match="no problem type 'binary'"):
        wrap_predict(Recorder(), labels=LABELS, problem_type="binary")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="text 1 has no words"):
        wrap_predict(Recorder(), labels=LABELS).predict(["  "])
    with pytest.raises(Mistake, match="query 1 has no words"):
        wrap_predict(Recorder(), labels=LABELS, query=True).predict(["a"], [""])
    with pytest.raises(Mistake, match="labels='ab': give a list of names"):
        wrap_predict(Recorder(), labels="ab")
    with pytest.raises(Mistake, match="at least 1, not '3'"):
        wrap_predict(Recorder(), labels=LABELS, batch_size="3")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match=r"mask=3: .* must be a string"):
        wrap_predict(Recorder(), labels=LABELS, mask=3)  # type: ignore[arg-type]
    assert isinstance(wrap_predict(Recorder(), labels=LABELS).network, BlackBox)


def test_texts_are_numbered_once() -> None:
    encoder = StringEncoder()
    one, other = encoder.split("a b"), encoder.split("c")
    first, again = encoder.encode([one, other]), encoder.encode([one])
    assert again.flat.tolist() == first.flat[:2].tolist()
    assert len(set(first.flat.tolist())) == 3


def test_texts_live_no_longer_than_their_batches() -> None:
    """A model that is asked about new texts all day does not keep them."""
    model = wrap_predict(Recorder(), labels=LABELS)
    words = model.examples(["a text of its own"])[0].passage
    alive = weakref.ref(words.offsets)
    batch = model.encode([Example("one", words)]).batch([0])
    del words
    gc.collect()
    assert alive() is not None
    assert model.network(batch).logits.shape == (1, 2)
    del batch
    gc.collect()
    assert alive() is None


def test_two_texts_with_one_number() -> None:
    encoder = StringEncoder()
    one, other = encoder.split("a b"), encoder.split("c d")
    known: dict[int, Words] = {}
    begin = number_of(one, known)
    taken = {number_of(other, {}): one}  # as if their digests were the same
    assert number_of(other, taken) not in (begin, number_of(other, {}))
    assert number_of(one, known) == begin


def test_a_function_that_does_not_repeat_itself() -> None:
    rng = np.random.default_rng(0)

    def random(texts: list[str]) -> NDArray[np.float64]:
        p = rng.uniform(size=len(texts))
        return np.stack([1 - p, p], axis=1)

    model = wrap_predict(random, labels=LABELS)
    for _ in range(2):  # it is not taken for tried
        with pytest.raises(
            Mistake, match=r"'(neg|pos)' of 'x', and 0\.\d+ when it is asked once more: .*depend on the"
        ):
            model.predict(["x"])
    with pytest.raises(Mistake, match="once more"):
        heedful.explain(wrap_predict(random, labels=LABELS), ["a good film"], ["omission"])


def test_a_function_that_mixes_the_texts_of_its_list() -> None:
    def mixed(texts: list[str]) -> NDArray[np.float64]:
        p = np.array([len(text) for text in texts], dtype=float)
        p = p / p.sum() if len(p) > 1 else np.array([0.5])
        return np.stack([1 - p, p], axis=1)

    model = wrap_predict(mixed, labels=LABELS)
    with pytest.raises(Mistake, match="when it is asked alone"):
        model.predict(["a", "a b c"])
    model = wrap_predict(mixed, labels=LABELS)
    assert model.predict(["a"]).tolist() == [[0.5, 0.5]]  # alone there is nothing to mix
    with pytest.raises(Mistake, match="when it is asked alone"):
        model.predict(["a", "a b c"])


def test_a_function_is_tried_once_and_rounding_is_no_difference() -> None:
    asked: list[int] = []

    def rounded(texts: list[str]) -> NDArray[np.float64]:
        asked.append(len(texts))
        p = np.array([0.25 + 0.001 * len(texts)] * len(texts))
        return np.stack([1 - p, p], axis=1)

    model = wrap_predict(rounded, labels=LABELS)
    model.predict(["a", "b"])
    model.predict(["c", "d"])
    assert asked == [2, 2, 1, 2]


def test_columns_with_names_are_put_into_the_order_of_the_labels() -> None:
    """A DataFrame whose columns stood in another order was read as if they were the labels'."""
    pandas = pytest.importorskip("pandas")

    def table(columns: list[Any]) -> Any:
        return wrap_predict(lambda texts: pandas.DataFrame([[0.9, 0.1]] * len(texts), columns=columns), labels=LABELS)

    assert table(["pos", "neg"]).predict(["x"])[0] == pytest.approx([0.1, 0.9])
    assert table(["neg", "pos"]).predict(["x"])[0] == pytest.approx([0.9, 0.1])
    assert table([0, 1]).predict(["x"])[0] == pytest.approx([0.9, 0.1])
    with pytest.raises(Mistake, match="the columns good, bad, and the labels are neg, pos: call the columns"):
        table(["good", "bad"]).predict(["x"])
    with pytest.raises(Mistake, match="the columns pos, pos"):
        table(["pos", "pos"]).predict(["x"])


def test_classes_of_scikit_learn_are_not_swapped() -> None:
    class Fitted:
        classes_ = np.array(["neg", "pos"])

        def predict_proba(self, texts: list[str]) -> NDArray[np.float64]:
            return np.full((len(texts), 2), 0.5)

    assert wrap_predict(Fitted().predict_proba, labels=["neg", "pos"]).labels == ("neg", "pos")
    assert wrap_predict(Fitted().predict_proba, labels=["bad", "good"]).labels == ("bad", "good")
    with pytest.raises(Mistake, match=r"order of its classes_: give labels=\['neg', 'pos'\]"):
        wrap_predict(Fitted().predict_proba, labels=["pos", "neg"])
