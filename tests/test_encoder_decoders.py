"""Encoder-decoders: every number against plain transformers, one source and one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import language_zoo as zoo
from heedful.errors import Mistake
from heedful.explainers.run import explain
from heedful.models.language.loading import wrap_language_model
from heedful.models.language.model import LanguageModel
from heedful.records import Example

SOURCE = "the keys to the cabinet are here"
SAY = "the teacher is on the table"
FAMILIES = list(zoo.ENCODER_DECODERS)


def source_ids(model: LanguageModel, example: Example) -> list[int]:
    found: list[int] = model.text.encode([example.passage], "passage").flat.tolist()
    return found


def said_ids(model: LanguageModel, example: Example) -> list[int]:
    said = [] if example.query is None else list(example.query.ids)  # type: ignore[attr-defined]
    return [*model.text.begins, *said]  # type: ignore[attr-defined]


def slow(module: Any, example: Example, source: Any, said: Any) -> torch.Tensor:
    """log p(this) - log p(that) by the plain module: ids, or embeddings."""
    if isinstance(source, list):
        given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([said])}
    else:
        given = {"inputs_embeds": source.unsqueeze(0), "decoder_inputs_embeds": said.unsqueeze(0)}
    logits = module(**given, use_cache=False).logits[0, -1]
    assert example.asked is not None
    this, that = list(example.asked.this), example.asked.that
    rest = [i for i in range(len(logits)) if i not in this] if that is None else list(that)
    p = logits.double().log_softmax(-1)
    return torch.logsumexp(p[this], 0) - torch.logsumexp(p[rest], 0)


def embeddings(module: Any, ids: list[int]) -> torch.Tensor:
    found: torch.Tensor = module.get_encoder().embed_tokens(torch.tensor(ids)).detach()
    return found


def steps(model: LanguageModel) -> list[Example]:
    prompt = model.prompt(SOURCE)
    say = model.tokens_of(prompt, SAY)
    contrast = model.steps(prompt, say, model.tokens_of(prompt, "the teacher was"), name="contrast")
    return [*model.steps(prompt, say), *contrast]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_the_modules_own(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    examples = steps(model)
    with torch.no_grad():
        wanted = [float(slow(module, e, source_ids(model, e), said_ids(model, e))) for e in examples]
    encoded = model.encode(examples)
    together = model.network(encoded.batch(range(len(examples)))).logits[:, 0]
    apart = torch.cat([model.network(encoded.batch([i])).logits[:, 0] for i in range(len(examples))])
    np.testing.assert_allclose(together.detach().numpy(), wanted, atol=1e-5)
    np.testing.assert_allclose(apart.detach().numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_and_relevance_step_by_step(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    examples = steps(model)
    found = explain(model, examples, ["gradient", "gradient_x_input", "lrp"], "this")
    for example, explained in zip(examples, found, strict=True):
        read, said = source_ids(model, example), said_ids(model, example)
        x, y = embeddings(module, read).requires_grad_(), embeddings(module, said).requires_grad_()
        f = slow(module, example, x, y)
        slopes = torch.autograd.grad(f, (x, y))
        of_words = np.flatnonzero(model.text.encode([example.passage], "passage").word)  # type: ignore[arg-type]
        begun = len(model.text.begins)  # type: ignore[attr-defined]
        of_said = [] if example.query is None else list(range(begun, len(said)))
        norm = [*slopes[0].norm(dim=1)[of_words].tolist(), *slopes[1].norm(dim=1)[of_said].tolist()]
        times = [*(slopes[0] * x).sum(1)[of_words].tolist(), *(slopes[1] * y).sum(1)[of_said].tolist()]
        np.testing.assert_allclose(explained.attribution("gradient").flat(), norm, atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(explained.attribution("gradient_x_input").flat(), times, atol=1e-5, rtol=1e-4)
        a = explained.attribution("lrp")
        assert a.check is not None
        assert a.check.ok
        assert a.flat().sum() + (a.special or 0) + (a.rest or 0) == pytest.approx(float(f), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_removal_is_reading_without(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    examples = steps(model)[1:3]
    found = explain(model, examples, ["omission", "occlusion"], "this").by_word()
    for example, explained in zip(examples, found, strict=True):
        read, said = source_ids(model, example), said_ids(model, example)
        with torch.no_grad():
            f = float(slow(module, example, read, said))
            index = model.text.encode([example.passage], "passage").word_index
            assert index is not None
            for word in range(len(example.passage)):
                without = [token for token, w in zip(read, index.tolist(), strict=True) if w != word]
                drop = f - float(slow(module, example, without, said))
                assert explained.attribution("omission").scores["passage"][word] == pytest.approx(drop, abs=1e-5)
                x = embeddings(module, read)
                x[index == word] = 0
                drop = f - float(slow(module, example, x, embeddings(module, said)))
                assert explained.attribution("occlusion").scores["passage"][word] == pytest.approx(drop, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_three_kinds_of_attention(family: str) -> None:
    model, module = zoo.model(family), zoo.module(family)
    examples = steps(model)[:4]
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    batch = model.encode(examples).batch(range(len(examples)))
    for i, example in enumerate(examples):
        read, said = source_ids(model, example), said_ids(model, example)
        with torch.no_grad():
            own = module(input_ids=torch.tensor([read]), decoder_input_ids=torch.tensor([said]), output_attentions=True)
        n, m = len(read), len(said)
        for kind, wanted in (("cross", own.cross_attentions), ("decoder", own.decoder_attentions)):
            got = model.network.attentions(batch, kind=kind)[i]  # type: ignore[call-arg]
            first = 0 if kind == "cross" else n
            for layer, weights in enumerate(wanted):
                np.testing.assert_allclose(
                    got[layer, :, n + m - 1, first : first + weights.shape[-1]], weights[0, :, -1], atol=1e-5
                )
        encoder = model.network.attentions(batch, -1, kind="encoder")[i, 0]  # type: ignore[call-arg]
        np.testing.assert_allclose(encoder[:, :n, :n], own.encoder_attentions[-1][0], atol=1e-5)
    module.set_attn_implementation(before)
    found = explain(model, examples, ["attention"], "this")
    assert all(e.attribution("attention").flat().sum() <= 1 + 1e-5 for e in found)
    other = explain(model, examples, [("attention", {"kind": "encoder"})], "this")
    assert not np.allclose(found[0].attribution("attention").flat(), other[0].attribution("attention").flat())


def test_a_language_code_moves_no_target() -> None:
    """Decoder: start, code, then what is said (inseq#295)."""
    model, module = zoo.model("NLLB"), zoo.module("NLLB")
    assert model.text.begins == [1, 3]  # type: ignore[attr-defined]
    other = wrap_language_model(module, zoo.ends(), language="<user>")
    assert other.text.begins == [1, 2]  # type: ignore[attr-defined]
    prompt = model.prompt(SOURCE)
    say = model.tokens_of(prompt, SAY)
    assert other.tokens_of(prompt, SAY) == say
    with torch.no_grad():
        for asked in (model, other):
            example = asked.steps(prompt, say)[0]
            logits = module(
                input_ids=torch.tensor([source_ids(asked, example)]),
                decoder_input_ids=torch.tensor([asked.text.begins]),  # type: ignore[attr-defined]
            ).logits[0, -1]
            p = float(asked.network(asked.encode([example]).batch([0])).probabilities[0, 1])
            assert p == pytest.approx(float(logits.softmax(-1)[say[0]]), abs=1e-6)
    with pytest.raises(Mistake, match="not a language code"):
        wrap_language_model(module, zoo.ends(), language="xx_XX")


def test_what_it_says_is_what_generate_says() -> None:
    for family in ("T5", "mBART", "NLLB"):
        model, module = zoo.model(family), zoo.module(family)
        prompt = model.prompt(SOURCE)
        ids = model.generate(prompt, 8)
        begin = model.text.begins  # type: ignore[attr-defined]
        read = torch.tensor([model.text.encode([prompt], "passage").flat.tolist()])
        own = module.generate(
            read,
            decoder_input_ids=torch.tensor([begin]),
            max_new_tokens=len(ids) + 1,
            do_sample=False,
            num_beams=1,
            forced_bos_token_id=None,
        )
        assert own[0, len(begin) :].tolist()[: len(ids)] == list(ids)
