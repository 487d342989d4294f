"""Many steps of a continuation at once: every fast way equals reading each step by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import language_zoo as zoo
from heedful.errors import Mistake
from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import gradient, gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.gradients.path import gradients_of
from heedful.explainers.gradients.steps import StepsPathGradient
from heedful.explainers.lrp.decomposition import decompose
from heedful.explainers.lrp.frozen import Frozen
from heedful.explainers.lrp.relevance import lrp
from heedful.explainers.perturbation.occlusion import occlusion, omission
from heedful.explainers.run import explain
from heedful.models.language.families import cut_families, key
from heedful.models.language.generator import Generator
from heedful.models.language.kept import Trunk
from heedful.models.language.model import LanguageModel
from heedful.models.language.own import own_answers
from heedful.records import Batch, Example

EVERY = [*zoo.FAMILIES, *zoo.ENCODER_DECODERS]
METHODS: dict[str, Callable[..., Scores]] = {
    "gradient": gradient,
    "gradient_x_input": gradient_x_input,
    "integrated_gradients": partial(integrated_gradients, n_steps=4),
    "lrp": lrp,
    "omission": omission,
    "occlusion": occlusion,
}


def steps(model: LanguageModel) -> list[Example]:
    """Two continuations and a contrast, so that families have different sizes."""
    long, short = model.prompt("the keys to the cabinet of the teachers"), model.prompt("a film that nobody likes")
    said = model.tokens_of(long, " are on the table")
    contrast = model.steps(long, said, model.tokens_of(long, " are here"), name="contrast")
    return [
        *model.steps(long, said, name="a"),
        *contrast,
        *model.steps(short, model.tokens_of(short, " was"), name="b"),
    ]


@contextmanager
def general(network: Generator) -> Iterator[None]:
    keeps, network.share, network.keeps = network.keeps, False, False
    try:
        yield
    finally:
        network.share, network.keeps = True, keeps


def batch_of(model: LanguageModel, examples: list[Example]) -> tuple[Batch, torch.Tensor]:
    return model.encode(examples).batch(range(len(examples))), torch.ones(len(examples), dtype=torch.long)


def close(found: Scores, wanted: Scores) -> None:
    for name in ("passage", "query", "special", "gap"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None and name != "gap":
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", EVERY)
def test_many_steps_equal_one_at_a_time(family: str) -> None:
    model = zoo.model(family)
    batch, target = batch_of(model, steps(model))
    assert gradients_of(model.network) is StepsPathGradient
    for run in METHODS.values():
        found = run(model.network, batch, target)
        with general(model.network):
            wanted = run(model.network, batch, target)
            for row in (0, len(batch) - 2):  # and alone
                one = run(model.network, batch.rows(torch.tensor([row])), target[:1])
                width = one.passage.shape[1]
                torch.testing.assert_close(found.passage[row, :width], one.passage[0], atol=1e-5, rtol=1e-4)
        close(found, wanted)


@pytest.mark.parametrize("family", ["GPT2", "Llama", "T5"])
def test_parts_and_held_attention(family: str) -> None:
    model = zoo.model(family)
    batch, target = batch_of(model, steps(model))
    asked: list[dict[str, Any]] = [{"parts": "passage"}, {"parts": "query"}, {"of": "probability"}]
    if "edits_attention" in model.network.can:
        asked.append({"hold_attention": True})
    for options in asked:
        found = gradient_x_input(model.network, batch, target, **options)
        with general(model.network):
            wanted = gradient_x_input(model.network, batch, target, **options)
        close(found, wanted)


def test_so_few_passes_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.model("Llama")
    prompt = model.prompt("the keys to the cabinet of the teachers and the key to the tables was here on the best day")
    batch, target = batch_of(model, model.steps(prompt, model.tokens_of(prompt, " are on the table")))
    tokens: list[int] = []
    handle = zoo.module("Llama").model.register_forward_pre_hook(
        lambda module, args, given: tokens.append(given["attention_mask"].shape[0] * _width(given)), with_kwargs=True
    )
    try:
        gradient_x_input(model.network, batch, target)
        longest = int((batch.passage.present.sum(1) + (0 if batch.query is None else batch.query.present.sum(1))).max())
        assert tokens == [longest]  # one forward pass of the longest
        tokens.clear()
        omission(model.network, batch, target)
        kept = sum(tokens)
        tokens.clear()
        monkeypatch.setattr(model.network, "keeps", False)
        omission(model.network, batch, target)
        shared = sum(tokens)
        tokens.clear()
        monkeypatch.setattr(model.network, "share", False)
        omission(model.network, batch, target)
        assert kept < 0.8 * shared < 0.4 * sum(tokens)
    finally:
        handle.remove()


def _width(given: dict[str, Any]) -> int:
    read = given["input_ids"] if given.get("input_ids") is not None else given["inputs_embeds"]
    width: int = read.shape[1]
    return width


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_keys_and_values_are_kept(family: str) -> None:
    model = zoo.model(family)
    assert model.network.keeps
    assert not zoo.model("T5").network.keeps
    batch, target = batch_of(model, steps(model))
    found = omission(model.network, batch, target)
    model.network.keeps = False
    try:
        close(found, omission(model.network, batch, target))
    finally:
        model.network.keeps = True


def test_a_module_whose_cache_is_wrong_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if positions after kept keys began anew."""
    module = zoo.module("GPT2")
    own = type(module.transformer).forward

    def wrong(self: Any, *args: Any, **given: Any) -> Any:
        if given.get("past_key_values") is not None and given["past_key_values"].get_seq_length():
            read = given["input_ids"] if given.get("input_ids") is not None else given["inputs_embeds"]
            given["position_ids"] = torch.arange(read.shape[1]).unsqueeze(0)
        return own(self, *args, **given)

    monkeypatch.setattr(type(module.transformer), "forward", wrong)
    from heedful.models.language.loading import wrap_language_model

    assert not wrap_language_model(module, zoo.tokenizer(True), name="wrong").network.keeps


@pytest.mark.parametrize("family", EVERY)
def test_answers_are_compared_with_the_models_own(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.model(family)
    examples = steps(model)
    batch, _ = batch_of(model, examples)
    answers = model.network(batch).logits
    torch.testing.assert_close(own_answers(model.network, batch), answers, atol=1e-4, rtol=1e-4)
    explain(model, examples, ["gradient"])
    honest = type(model.network).together
    monkeypatch.setattr(
        type(model.network),
        "together",
        lambda self, *given, **more: type(out := honest(self, *given, **more))(out.logits + 0.1, out.link),
    )
    with pytest.raises(Mistake, match="says two things"):
        explain(model, examples, ["gradient"])


def test_batches_hold_whole_families() -> None:
    keys = [key(np.array([1, 2]), np.arange(n)) for n in range(5)] + [key(np.array([9]), np.arange(3))]
    lengths = np.array([2, 3, 4, 5, 6, 4])
    assert [rows.tolist() for rows in cut_families(keys, lengths, 64, 7)] == [[5], [0, 1, 2, 3, 4]]
    assert [rows.tolist() for rows in cut_families(keys, lengths, 64, 12)] == [[5, 0, 1, 2, 3, 4]]
    assert sorted(len(rows) for rows in cut_families(keys, lengths, 2, 100)) == [1, 1, 2, 2]


def test_the_text_that_shares_most_is_the_trunk() -> None:
    whole = np.arange(20)
    codes = [np.delete(whole, i) for i in range(10, 20)]
    trunk = Trunk.find(codes, np.full(10, 100))
    assert trunk is not None
    assert trunk.row in (8, 9)
    assert trunk.shared[:8].tolist() == list(range(10, 18))
    assert Trunk.find([np.arange(8), np.arange(8) + 100], np.full(2, 100)) is None
    capped = Trunk.find(codes, np.full(10, 11))
    assert capped is not None
    assert capped.shared.max() == 11


@pytest.mark.parametrize("family", EVERY)
def test_attention_that_takes_relevance_adds_up_too(family: str) -> None:
    """AttnLRP: another order of words, the same sum."""
    model = zoo.model(family)
    batch, target = batch_of(model, steps(model))
    frozen, attnlrp = (decompose(model.network, batch, target, rule) for rule in ("frozen", "attnlrp"))
    torch.testing.assert_close(attnlrp.f, frozen.f, atol=1e-5, rtol=1e-5)
    assert float(attnlrp.missing.max()) < 1e-5
    assert not torch.allclose(attnlrp.passage, frozen.passage, atol=1e-3)
    with general(model.network):
        alone = decompose(model.network, batch, target, "attnlrp")
    torch.testing.assert_close(attnlrp.passage, alone.passage, atol=1e-5, rtol=1e-4)


def test_the_softmax_of_attnlrp_is_its_gradient() -> None:
    """One head by hand: R = x * gradient, with half of a product for each factor."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    with Frozen((q, k, v), "attnlrp"):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(out, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    found = torch.autograd.grad(out[..., -1, 0].sum(), (q, k, v))
    plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    slopes = torch.autograd.grad(plain[..., -1, 0].sum(), (q, k, v))
    for ours, slope, share in zip(found, slopes, (4, 4, 2), strict=True):
        torch.testing.assert_close(ours, slope / share)
