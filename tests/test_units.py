"""Units: sentences, paragraphs and passages are words to everything that scores or removes words."""

from __future__ import annotations

from itertools import chain, combinations
from math import factorial
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import language_zoo as languages
import zoo
from heedful.api.language import questions
from heedful.api.words import explain as explain_texts
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.units import Units, example_in_units, in_units, read_units, spans_of
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.explainers.methods import Method
from heedful.explainers.run import explain
from heedful.explainers.sources.ablations import draw, fit_surrogate, lasso, linear
from heedful.explainers.sources.subsets import all_subsets, best_removals, values_of
from heedful.explanation.explanation import Explanation
from heedful.models.language.decisions import decision, in_sentences
from heedful.models.language.model import LanguageModel
from heedful.models.model import Model
from heedful.records import Example, Saying

TEXT = "The keys are here. What a waste!\nthe table is best\n\nA good day"
PROMPT = "the keys are on the table. the cabinet is open. a good day: the best"
SAY = " film was"


def words_of(text: str) -> Units:
    found = in_units(tokenizer("spacy")(text), "sentence")
    assert isinstance(found, Units)
    return found


def scores(found: Explanation, method: str) -> np.ndarray:
    return found.by_word()[0].attribution(method).scores["passage"]


def test_sentences_paragraphs_and_passages() -> None:
    words = tokenizer("spacy")(TEXT)
    assert in_units(words, "word") is words
    sentences = ("The keys are here.", "What a waste!", "the table is best", "A good day")
    assert words_of(TEXT).forms == sentences
    assert in_units(words, "paragraph").forms == (TEXT[: TEXT.index("\n\n")], "A good day")
    some = in_units(words, ["What a", "best\n\nA"])
    assert some.forms == ("What a", "best\n\nA")
    assert isinstance(some, Units)
    assert {words.surface(i): u for i, u in enumerate(some.of.tolist()) if u >= 0} == {
        "What": 0,
        "a": 0,
        "best": 1,
        "A": 1,
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("sentence", "the text is one sentence"),
        ("paragraph", "Give sentences, or words"),
        (["day", "good"], "does not stand again further on"),
        (["night"], "does not stand in the text"),
        ([], "there are no units"),
        ("line", "word, sentence or paragraph"),
    ],
)
def test_what_cannot_be_units(kind: str | list[str], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        spans_of(tokenizer("spacy")("a good day"), kind)


def test_a_file_of_units(tmp_path: Path) -> None:
    file = tmp_path / "units.txt"
    file.write_text("What a\n\nA good day\n", encoding="utf-8")
    assert read_units(str(file)) == ["What a", "A good day"]
    file.write_text('["one\\ntwo", "three"]', encoding="utf-8")
    assert read_units(str(file)) == ["one\ntwo", "three"]
    assert read_units("paragraph") == "paragraph"
    with pytest.raises(Mistake, match=r"--units nothing\.txt|--units 'nothing\.txt'"):
        read_units("nothing.txt")


def test_evidence_is_then_the_units_that_hold_it() -> None:
    words = tokenizer("spacy")(TEXT)
    found = example_in_units(Example("e", words, evidence=(0, 7, 8)), "sentence")
    assert found.evidence == (0, 1)


def question(model: LanguageModel) -> Example:
    (example,) = questions(model, [PROMPT], say=SAY, whole=True)
    return example_in_units(example, "sentence")


def slow(model: LanguageModel, example: Example, keep: np.ndarray) -> float:
    """log P of the phrase after only some sentences, token by token, by the plain module."""
    units = example.passage
    assert isinstance(units, Units)
    encoded = model.text.encode([units.words], "passage")
    full = model.text.encode([units], "passage")
    assert full.word_index is not None
    stays = (full.word_index < 0) | np.append(keep, True)[full.word_index]
    read = encoded.flat[stays].tolist()
    total = 0.0
    for token in model.tokens_of(model.prompt(PROMPT), SAY):
        with torch.no_grad():
            logits = model.network.module(input_ids=torch.tensor([read]), use_cache=False).logits[0, -1]
        total += float(logits.double().log_softmax(-1)[token])
        read.append(token)
    return total


@pytest.mark.parametrize("family", ["GPT2", "Llama"])
def test_leaving_sentences_out_is_reading_what_is_left(family: str) -> None:
    model = languages.model(family)
    example = question(model)
    n = len(example.passage)
    assert n == 3
    table = np.array([slow(model, example, keep) for keep in all_subsets(n)])
    methods: list[Method] = ["omission", ("sources", {"value": "banzhaf"})]
    found = explain(model, [example], methods, "this", of="log_probability", parts="passage")
    np.testing.assert_allclose(scores(found, "omission"), values_of(table, "leave_one_out"), atol=1e-4)
    np.testing.assert_allclose(scores(found, "sources"), values_of(table, "banzhaf"), atol=1e-4)
    assert found[0].attribution("sources").cost.forward == 2**n


def test_a_phrase_is_its_steps_added_up() -> None:
    model = languages.model("Llama")
    methods = ["gradient_x_input", "integrated_gradients", "omission", "occlusion", "sources"]
    for units in ("word", "sentence"):
        whole = explain_texts(model, [PROMPT], methods, say=SAY, whole=True, units=units)
        steps = explain_texts(model, [PROMPT], methods, say=SAY, units=units, of="log_probability", parts="passage")
        assert len(whole) == 1
        assert len(steps) > 1
        for method in methods if units == "sentence" else methods[:-1]:  # of many words ablations are drawn
            added = sum(one.by_word().attribution(method).scores["passage"] for one in steps)
            close = {"integrated_gradients": 5e-2}.get(method, 1e-4)  # each path has an error of its own
            np.testing.assert_allclose(scores(whole, method), added, atol=close, err_msg=method)
    assert whole[0].labels[1] == SAY
    for method in ("lrp", "rollout"):
        with pytest.raises(Mistake, match=f"{method} says nothing of several tokens together"):
            explain_texts(model, [PROMPT], [method], say=SAY, whole=True)
    with pytest.raises(Mistake, match="there is no whole"):
        explain_texts(model, [PROMPT], ["omission"], say=SAY, instead=" key", whole=True)


def test_scores_of_tokens_add_up_to_their_unit() -> None:
    model = languages.model("GPT2")
    by_word = explain_texts(model, [PROMPT], ["gradient_x_input"], say="film")[0].by_word()
    units = explain_texts(model, [PROMPT], ["gradient_x_input"], say="film", units="sentence")[0]
    assert [units.passage.surface(i) for i in range(3)] == [
        "the keys are on the table.",
        "the cabinet is open.",
        "a good day: the best",
    ]
    single = by_word.attribution("gradient_x_input").scores["passage"]
    of = words_of(PROMPT).of
    np.testing.assert_allclose(units.attribution("gradient_x_input").scores["passage"], np.bincount(of, single))


def test_classifiers_of_our_own_leave_sentences_out() -> None:
    words = tokenizer("spacy")(TEXT)
    encoder = WordEncoder(Vocabulary((*MARKERS, *dict.fromkeys(words.forms))))
    model = Model("toy", zoo.network(), encoder, ("no", "yes"))
    units = words_of(TEXT)
    found = explain_texts(model, [TEXT], ["omission", "sources", "attention"], target="yes", units="sentence")
    whole = float(np.log(model.predict([TEXT])[0, 1] / model.predict([TEXT])[0, 0]))
    for i in range(len(units)):
        left = [w for w, of in zip(words.forms, units.of.tolist(), strict=True) if of != i]
        ids = torch.tensor([[2, *encoder.vocabulary.ids(left), 3]])
        batch = model.encode([Example("e", tokenizer("whitespace")(" ".join(left)))]).batch([0])
        assert batch.passage.ids.tolist() == ids.tolist()
        drop = whole - float(model.network(batch).logits[0, 0].detach())
        np.testing.assert_allclose(scores(found, "omission")[i], drop, atol=1e-6)
    np.testing.assert_allclose(scores(found, "attention").sum(), 1)
    with pytest.raises(Mistake, match="give units of all of it"):
        explain_texts(model, [TEXT], ["omission"], units=["What a waste!"])


def subsets(items: list[int]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(items, k) for k in range(len(items) + 1)))


def test_values_of_all_subsets_are_their_definitions() -> None:
    u, rng = 5, np.random.default_rng(0)
    table = rng.normal(size=2**u)
    f = {s: table[sum(1 << i for i in s)] for s in subsets(list(range(u)))}
    for i in range(u):
        others = [j for j in range(u) if j != i]
        gains = {s: f[tuple(sorted((*s, i)))] - f[s] for s in subsets(others)}
        shapley = sum(factorial(len(s)) * factorial(u - len(s) - 1) / factorial(u) * gain for s, gain in gains.items())
        np.testing.assert_allclose(values_of(table, "shapley")[i], shapley)
        np.testing.assert_allclose(values_of(table, "banzhaf")[i], np.mean(list(gains.values())))
        np.testing.assert_allclose(values_of(table, "leave_one_out")[i], gains[tuple(others)])
    for k, (gone, drop) in enumerate(best_removals(table), 1):
        left = {s: f[tuple(i for i in range(u) if i not in s)] for s in combinations(range(u), k)}
        assert gone == min(left, key=lambda s: left[s])
        np.testing.assert_allclose(drop, f[tuple(range(u))] - min(left.values()))


def test_the_surrogate_is_that_of_context_cite() -> None:
    """Its pipeline: standardised masks, scikit-learn's LASSO of the mean over tokens, rescaled."""
    from sklearn.linear_model import Lasso
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    keep = rng.random((64, 20)) < 0.5
    f = keep @ (rng.normal(size=20) * (rng.random(20) < 0.3)) + 0.1 * rng.normal(size=64)
    scaler, theirs = StandardScaler(), Lasso(alpha=0.01, tol=1e-10, max_iter=100_000)
    make_pipeline(scaler, theirs).fit(keep.astype(np.float64), f / 3)
    w, bias = linear(keep, f, tokens=3)
    np.testing.assert_allclose(w, theirs.coef_ / scaler.scale_ * 3, atol=1e-6)
    np.testing.assert_allclose(bias, (theirs.intercept_ - scaler.mean_ / scaler.scale_ @ theirs.coef_) * 3, atol=1e-6)
    assert not lasso((keep - keep.mean(0)) / keep.std(0), f, 1e6).any()


def test_the_surrogate_knows_how_good_it_is() -> None:
    rng = np.random.default_rng(2)
    keep = draw(64, 10, 0.5, rng)
    np.testing.assert_allclose(keep.mean(0), 0.5)
    true = np.array([3.0, 0, 0, -2, 0, 0, 1, 0, 0, 0])
    good = fit_surrogate(keep, keep @ true)
    assert good.lds > 0.95
    np.testing.assert_allclose(good.weights, true, atol=0.1)
    assert abs(fit_surrogate(keep, rng.normal(size=64)).lds) < 0.5
    assert np.isnan(fit_surrogate(keep, np.ones(64)).lds)


def test_many_units_are_asked_by_ablations_and_say_so() -> None:
    model = languages.model("Llama")
    (example,) = questions(model, [PROMPT], say="film")
    found = explain(model, [example], [("sources", {"exact": 3, "n_ablations": 16})], "this")[0].attribution("sources")
    assert found.cost.forward == 16
    assert found.check is not None
    assert found.check.name == "surrogate error"
    with pytest.raises(Mistake, match="n_ablations must be at least 8"):
        explain(model, [example], [("sources", {"n_ablations": 4})], "this")


FACTS = "the key is here. a film is best.\nthe key is"


def test_a_row_whose_evidence_is_a_sentence_is_asked_by_sentence() -> None:
    """The line that asks is of no unit: it is never removed, and gets no score."""
    words = tokenizer("whitespace")(FACTS)
    row = Example("row", words, evidence=(0, 1, 2, 3), saying=Saying("here", "best"))
    model = languages.model("Llama")
    asked = decision(model, row)
    assert asked.passage.forms == ("the key is here.", "a film is best.")
    assert asked.evidence == (0,)
    encoded = model.encode([asked]).batch([0])
    plain = model.encode([decision(model, Example("row", words, saying=Saying("here", "best")))]).batch([0])
    assert encoded.passage.ids.tolist() == plain.passage.ids.tolist()
    torch.testing.assert_close(model.network(encoded).logits, model.network(plain).logits)
    assert encoded.passage.mask.sum() < plain.passage.mask.sum()
    by_word = decision(model, Example("row", words, evidence=(1,), saying=Saying("here", "best")))
    assert by_word.evidence == (1,)
    assert by_word.passage.forms == model.prompt(FACTS).forms


def test_only_whole_sentences_make_units() -> None:
    prompt = languages.model("GPT2").prompt(FACTS)
    first = ((0, 16),)
    assert isinstance(in_sentences(prompt, first), Units)
    assert in_sentences(prompt, ()) is prompt
    assert in_sentences(prompt, ((4, 16),)) is prompt
    assert in_sentences(prompt, ((0, 32),)) is prompt  # all of the sentences: nothing could be missed
