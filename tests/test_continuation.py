"""A continuation as a page: every word is there as text, each with its probability, surprisal and sources."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import heedful
import language_zoo as zoo
from heedful.errors import Mistake
from heedful.explanation.steps import StepMatrix, surprisal
from heedful.models.language.loading import wrap_language_model
from heedful.records import NextToken

HOSTILE = "</style><script>alert(1)</script>"


def matrix(said: tuple[str, ...] = (" are", HOSTILE), wide: int = 1) -> StepMatrix:
    scores = np.array([[0.5, -1.0, np.nan, np.nan], [0.0, 2.0, 0.25, np.nan]])
    return StepMatrix(
        "lrp", True, said, np.array([0.5, 0.0]), ("the", HOSTILE, " are", "x" * wide), 2, scores, ("is", "")
    )


def test_words_are_text_and_show_their_sources() -> None:
    html = matrix().html()
    assert "<script" not in html
    assert html.count("</style>") == 1
    assert html.count('type="radio"') == 3  # all words, and each
    assert "0.50 · 1.0 bit" in html
    assert "0.00 · ∞ bit" in html
    panels = re.findall(r'class="hf-sources hf-text" dir="auto">(.*?)</div>', html, re.S)
    titles = [re.findall(r'title="([^"]*)"', panel) for panel in panels]
    assert titles == [["0.5", "1", "0.25", "0"], ["0.5", "-1"], ["0", "2", "0.25"]]
    assert 'class="hf-n8"' in panels[1]  # against its own largest
    assert 'class="hf-p8"' in panels[2]
    assert "as a matrix" in html


def test_two_on_one_page_are_apart_and_one_is_always_the_same() -> None:
    names = [set(re.findall(r'name="(hf\w+)"', one.html())) for one in (matrix(), matrix((" is", " not")), matrix())]
    assert [len(found) for found in names] == [1, 1, 1]
    assert names[0] != names[1]
    assert names[0] == names[2]


def test_surprisal_is_in_bits() -> None:
    assert surprisal(0.25) == "2.0"
    assert surprisal(1.0) == "0.0"
    assert surprisal(0.0) == "∞"


def test_an_explanation_saves_its_page(tmp_path: Any) -> None:
    ex = heedful.explain(zoo.model("Llama"), ["the keys to the cabinet"], ["gradient_x_input"], say=" are on the table")
    ex.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('type="radio"') == len(ex) + 1
    first = float(ex[0].probabilities[1])
    assert f"{first:.2f} · {-math.log2(first):.1f} bit" in page
    assert "<script" not in page


def test_a_classifier_and_a_language_model_say_what_they_take(tmp_path: Any) -> None:
    with pytest.raises(Mistake, match=r"has no labels: give what it says \(say\), not a target"):
        heedful.explain(zoo.model("GPT2"), ["the keys"], ["gradient"], target="positive")
    classifier = heedful.wrap(lambda texts: np.full((len(texts), 2), 0.5), labels=["a", "b"])
    with pytest.raises(Mistake, match="is a classifier: say is for language models"):
        heedful.explain(classifier, ["the keys"], ["omission"], say="are")


def test_a_foil_of_several_tokens_is_decided_by_the_first_that_differs() -> None:
    model = zoo.model("GPT2")
    prompt = model.prompt("the keys to the cabinet")
    say, instead = model.tokens_of(prompt, " are on the table"), model.tokens_of(prompt, " are here")
    (example,) = model.steps(prompt, say, instead)
    assert isinstance(example.asked, NextToken)
    same = next(i for i, (a, b) in enumerate(zip(say, instead, strict=False)) if a != b)
    assert example.asked.step == same
    assert example.asked.names == (model.name_of(instead[same]), model.name_of(say[same]))


def test_numbers_that_are_not_finite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = zoo.module("GPT2")
    model = wrap_language_model(module, zoo.tokenizer(True), name="broken")
    own = type(module.transformer).forward

    def broken(self: Any, *args: Any, **given: Any) -> Any:
        output = own(self, *args, **given)
        output.last_hidden_state = output.last_hidden_state * torch.nan
        return output

    monkeypatch.setattr(type(module.transformer), "forward", broken)
    with pytest.raises(Mistake, match="not finite"):
        heedful.explain(model, ["the keys"], ["gradient"])
    with pytest.raises(Mistake, match="not finite"):
        heedful.explain(model, ["the keys"], ["gradient"], say=" are")
