"""Language models: every number against plain transformers, one sequence and one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import language_zoo as zoo
from heedful.errors import Mistake
from heedful.explainers.run import explain
from heedful.models.language.model import LanguageModel
from heedful.records import Example

PROMPT = "the keys to the cabinet"
SAY = " are on the table"
BOTH = [(family, begins) for family in zoo.FAMILIES for begins in (True, False)]


def ids_of(model: LanguageModel, example: Example) -> list[int]:
    """Everything that is read before the token that is asked about."""
    prompt = model.text.encode([example.passage], "passage").flat.tolist()
    said = [] if example.query is None else model.text.encode([example.query], "query").flat.tolist()
    return [*prompt, *said]


def slow_answer(module: Any, ids: list[int] | torch.Tensor, example: Example) -> torch.Tensor:
    """log p(this) - log p(that) of the last place, by the plain module: ids, or embeddings (length, dim)."""
    if isinstance(ids, list):
        logits = module(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
    else:
        logits = module(inputs_embeds=ids.unsqueeze(0), use_cache=False).logits[0, -1]
    assert example.asked is not None
    this = list(example.asked.this)
    that = example.asked.that
    rest = [i for i in range(len(logits)) if i not in this] if that is None else list(that)
    p = logits.double().log_softmax(-1)
    return torch.logsumexp(p[this], 0) - torch.logsumexp(p[rest], 0)


def steps(model: LanguageModel) -> list[Example]:
    prompt = model.prompt(PROMPT)
    say = model.tokens_of(prompt, SAY)
    contrast = model.steps(prompt, say, model.tokens_of(prompt, "of all days"), name="contrast")
    return [*model.steps(prompt, say), *contrast]


def with_embeddings(module: Any, ids: list[int]) -> torch.Tensor:
    found: torch.Tensor = module.get_input_embeddings()(torch.tensor(ids)).detach()
    return found


@pytest.mark.parametrize(("family", "begins"), BOTH)
def test_answers_are_the_modules_own(family: str, begins: bool) -> None:
    model = zoo.model(family, begins)
    examples = steps(model)
    slow = [float(slow_answer(zoo.module(family), ids_of(model, e), e)) for e in examples]
    for group in ([e for e in examples if e.query is None], [e for e in examples if e.query is not None]):
        encoded = model.encode(group)
        together = model.network(encoded.batch(range(len(group)))).logits[:, 0]
        apart = torch.cat([model.network(encoded.batch([i])).logits[:, 0] for i in range(len(group))])
        wanted = [slow[examples.index(e)] for e in group]
        np.testing.assert_allclose(together.detach().numpy(), wanted, atol=1e-4)
        np.testing.assert_allclose(apart.detach().numpy(), wanted, atol=1e-4)
        p = model.network(encoded.batch(range(len(group)))).probabilities[:, 1]
        np.testing.assert_allclose(p.detach().numpy(), torch.tensor(wanted).sigmoid().numpy(), atol=1e-5)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_gradients_step_by_step(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    examples = steps(model)
    found = explain(model, examples, ["gradient", "gradient_x_input", "occlusion"], "this")
    for example, explained in zip(examples, found, strict=True):
        ids = ids_of(model, example)
        x = with_embeddings(module, ids).requires_grad_()
        (slope,) = torch.autograd.grad(slow_answer(module, x, example), x)
        n = len(model.text.encode([example.passage], "passage").flat)
        of_prompt = model.text.encode([example.passage], "passage").word_index
        assert of_prompt is not None
        words = [i for i, w in enumerate(of_prompt.tolist()) if w >= 0]
        if example.query is not None:
            of_said = model.text.encode([example.query], "query").word_index
            assert of_said is not None
            words += [n + i for i, w in enumerate(of_said.tolist()) if w >= 0]
        np.testing.assert_allclose(
            explained.attribution("gradient").flat(), slope.norm(dim=1)[words], rtol=1e-3, atol=1e-5
        )
        product = (slope * x).sum(1)[words].detach()
        np.testing.assert_allclose(explained.attribution("gradient_x_input").flat(), product, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_relevance_is_the_answer_taken_apart(family: str) -> None:
    model = zoo.model(family)
    examples = steps(model)
    for example, explained in zip(examples, explain(model, examples, ["lrp"], "this"), strict=True):
        a = explained.attribution("lrp")
        assert a.check is not None
        assert a.check.ok
        f = float(slow_answer(zoo.module(family), ids_of(model, example), example))
        assert a.flat().sum() + (a.special or 0) + (a.rest or 0) == pytest.approx(f, abs=2e-3)


@pytest.mark.parametrize("family", ["GPT2", "Llama", "OPT"])
def test_removing_words_is_reading_the_text_without_them(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    (example,) = [e for e in steps(model) if e.id.startswith("contrast")]
    explained = explain(model, [example], ["omission", "occlusion"], "this").by_word()[0]
    passage = model.text.encode([example.passage], "passage")
    assert passage.word_index is not None
    ids, f = ids_of(model, example), float(slow_answer(module, ids_of(model, example), example))
    for word in range(len(example.passage)):
        places = [i for i, w in enumerate(passage.word_index.tolist()) if w == word]
        without = [token for i, token in enumerate(ids) if i not in places]
        drop = f - float(slow_answer(module, without, example))
        assert explained.attribution("omission").scores["passage"][word] == pytest.approx(drop, abs=1e-4)
        x = with_embeddings(module, ids)
        x[places] = 0
        drop = f - float(slow_answer(module, x, example))
        assert explained.attribution("occlusion").scores["passage"][word] == pytest.approx(drop, abs=1e-4)


def test_a_chat_is_explained_but_for_its_template() -> None:
    model = zoo.model("Llama")
    prompt = model.prompt(
        [
            {"role": "user", "content": "the keys"},
            {"role": "assistant", "content": "are here"},
            {"role": "user", "content": "what keys"},
        ]
    )
    assert [prompt.surface(i) for i in range(len(prompt))] == ["the", "keys", "are", "here", "what", "keys"]
    example = model.steps(prompt, model.tokens_of(prompt, "the best"))[1]
    explained = explain(model, [example], ["lrp"], "this").by_word()[0]
    assert len(explained.attribution("lrp").scores["passage"]) == 6
    assert explained.attribution("lrp").special
    text = zoo.tokenizer(True).apply_chat_template(
        [
            {"role": "user", "content": "the keys"},
            {"role": "assistant", "content": "are here"},
            {"role": "user", "content": "what keys"},
        ],
        tokenize=False,
        add_generation_prompt=True,
    )
    own = zoo.tokenizer(True)(text, add_special_tokens=False)["input_ids"]
    assert model.text.encode([prompt], "passage").flat.tolist() == own


def test_what_is_said_keeps_its_tokens() -> None:
    model = zoo.model("GPT2")
    prompt = model.prompt(PROMPT)
    ids = model.generate(prompt, 12)
    own = zoo.module("GPT2").generate(
        torch.tensor([model.text.encode([prompt], "passage").flat.tolist()]),
        max_new_tokens=len(ids),
        do_sample=False,
        pad_token_id=1,
    )[0, -len(ids) :]
    assert list(ids) == own.tolist()
    said = model.text.said(ids)
    assert model.text.encode([said], "query").flat.tolist() == list(ids)
    assert said.text == zoo.tokenizer(True).decode(list(ids))
    assert model.generate(prompt, 5, sample=True, seed=1) == model.generate(prompt, 5, sample=True, seed=1)


@pytest.mark.parametrize(
    ("say", "instead", "sentence"),
    [("are", "are", "give two that differ"), ("are", "are on", "neither begins with the other"), (" ", "is", "empty")],
)
def test_slips_in_what_is_asked(say: str, instead: str, sentence: str) -> None:
    model = zoo.model("Llama")
    prompt = model.prompt(PROMPT)
    with pytest.raises(Mistake, match=sentence):
        model.steps(prompt, model.tokens_of(prompt, say), model.tokens_of(prompt, instead))


def test_prompts_that_cannot_be_asked() -> None:
    model = zoo.model("Llama")
    with pytest.raises(Mistake, match="the prompt is empty"):
        model.prompt("  ")
    with pytest.raises(Mistake, match="no message of the role 'user'"):
        model.prompt([{"role": "system", "content": "be kind"}])
    with pytest.raises(Mistake, match="reads 64 at once"):
        model.prompt("the keys " * 60)
    prompt = model.prompt("the keys " * 20)
    with pytest.raises(Mistake, match="give a shorter continuation"):
        model.steps(prompt, [5] * 40)
