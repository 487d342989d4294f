"""Classifiers of transformers as networks: the model's own answers, and the model as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers")

import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.models.huggingface import wrap
from heedful.models.model import Model
from heedful.models.sequence import sequences, split

every_family = pytest.mark.parametrize("family", [*zoo.FAMILIES, *zoo.OTHERS])
each_named = pytest.mark.parametrize("family", list(zoo.FAMILIES))
EDITED = [family for family in [*zoo.FAMILIES, *zoo.OTHERS] if family not in zoo.UNEDITED]
each_edited = pytest.mark.parametrize("family", EDITED)


def same(layer: int, weights: Tensor) -> Tensor:
    return weights


@every_family
def test_logits_are_the_models_own(family: str) -> None:
    """A text alone: to the last bit. In a batch, and for pairs: to rounding."""
    for query in (False, True):
        made = zoo.model(family, query)
        network, tokens = zoo.network(made), zoo.tokenizer_of(family)
        pairs = zip(zoo.SOME, zoo.QUERIES, strict=True) if query else [(text,) for text in zoo.SOME]
        own = [zoo.own_logits(network.module, tokens, *texts) for texts in pairs]
        together = network(zoo.batch(made)).logits
        torch.testing.assert_close(together, torch.cat(own), atol=1e-5, rtol=0)
        for i, logits in enumerate(own):
            queries = [zoo.QUERIES[i]] if query else None
            assert torch.equal(network(zoo.batch(made, [zoo.SOME[i]], queries)).logits, logits)


@every_family
def test_can(family: str) -> None:
    """What a family can do is seen from its answers, not from its name."""
    can = zoo.model(family).network.can
    assert {"predicts", "differentiable", "attends"} <= can
    assert ("edits_attention" in can) == (family not in zoo.UNEDITED)


@each_edited
def test_unedited_attention_is_eager_to_the_last_bit(family: str) -> None:
    """Each text alone: in a batch, predictions go by length, and other company rounds otherwise."""
    made = zoo.model(family)
    network = zoo.network(made)
    module: Any = network.module
    before = module.config._attn_implementation
    torch.testing.assert_close(
        network(zoo.batch(made), edit=same).logits, network(zoo.batch(made)).logits, atol=1e-5, rtol=0
    )
    for text in zoo.SOME:
        batch = zoo.batch(made, [text])
        listened = network(batch, edit=same).logits
        module.set_attn_implementation("eager")
        try:
            assert torch.equal(listened, network(batch).logits)
        finally:
            module.set_attn_implementation(before)


@each_edited
def test_edited_attention(family: str) -> None:
    """Weights that are given are used: all on one word, and what other words say no longer matters to that layer."""
    made = zoo.model(family)
    network = zoo.network(made)
    batch = zoo.batch(made)
    copied = network(batch, edit=lambda layer, weights: weights.clone()).logits
    torch.testing.assert_close(copied, network(batch).logits, atol=1e-5, rtol=0)

    def first_token(layer: int, weights: Tensor) -> Tensor:
        assert weights.shape == (3, 4, *[batch.passage.ids.shape[1]] * 2)
        return torch.zeros_like(weights).index_fill(-1, torch.tensor([0]), 1.0)

    other = network(batch, edit=first_token).logits
    assert ((other - network(batch).logits).abs().amax(1) > 1e-4).all()
    for row in range(3):  # wherever padding is
        alone = batch.rows(torch.tensor([row]))
        edited = network(alone, edit=lambda _, w: torch.zeros_like(w).index_fill(-1, torch.tensor([0]), 1.0)).logits
        torch.testing.assert_close(edited[0], other[row], atol=1e-5, rtol=0)


@every_family
def test_attention_that_is_read(family: str) -> None:
    made = zoo.model(family, query=True)
    network, batch = zoo.network(made), zoo.batch(made)
    weights = network.attentions(batch)  # (batch, layers, heads, to, from)
    there = sequences(batch).present
    assert weights.shape == (3, 2, network.n_heads, there.shape[1], there.shape[1])
    sums = weights.sum(-1)
    torch.testing.assert_close(sums, there[:, None, None].expand_as(sums).to(sums), atol=1e-5, rtol=0)
    for row in range(3):
        alone = network.attentions(batch.rows(torch.tensor([row])))[0]
        n = alone.shape[-1]
        torch.testing.assert_close(weights[row, :, :, :n, :n], alone, atol=1e-5, rtol=0)
    if network.reads == "last" and family != "XLNet":  # a decoder looks back only
        assert torch.equal(weights, weights.tril())


@each_named
def test_attention_is_what_the_library_tells(family: str) -> None:
    made = zoo.model(family)
    network, text = zoo.network(made), zoo.SOME[1]
    weights = network.attentions(zoo.batch(made, [text]))
    module = network.module
    before = module.config._attn_implementation
    module.set_attn_implementation("eager") if family not in zoo.UNEDITED else None
    given = zoo.tokenizer_of(family)(text, return_tensors="pt")
    if family in ("DistilBert", "GPT2"):
        given.pop("token_type_ids", None)
    with torch.no_grad():
        told = module(**given, output_attentions=True).attentions
    module.set_attn_implementation(before) if family not in zoo.UNEDITED else None
    assert torch.equal(weights, torch.stack(told, dim=1))


@pytest.mark.parametrize("family", ["Bert", "GPT2"])
def test_states(family: str) -> None:
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    states = network.states(batch)  # (batch, layers + 1, width, dim)
    assert states.shape == (3, 3, batch.passage.ids.shape[1], 16)
    for row, text in enumerate(zoo.SOME):
        given = zoo.tokenizer_of(family)(text, return_tensors="pt")
        with torch.no_grad():
            own = torch.stack(network.module(**given, output_hidden_states=True).hidden_states, dim=1)
        torch.testing.assert_close(states[row, :, : own.shape[2]], own[0], atol=1e-5, rtol=0)


def test_embeddings_may_be_given() -> None:
    for query in (False, True):
        made = zoo.model("Roberta", query)
        network, batch = zoo.network(made), zoo.batch(made)
        x = network.embed(batch.passage).requires_grad_()
        x_query = None if batch.query is None else network.embed(batch.query).requires_grad_()
        output = network(batch, x=x, x_query=x_query)
        assert torch.equal(output.logits, network(batch).logits)
        gradients = torch.autograd.grad(output.logits.sum(), [x] if x_query is None else [x, x_query])
        for gradient, tokens in zip(gradients, (batch.passage, batch.query), strict=False):
            assert tokens is not None
            assert (gradient[tokens.present].abs().sum(-1) > 0).all()
            assert (gradient[~tokens.present] == 0).all()


class Everything:
    """All of a module that a user could notice."""

    def __init__(self, module: Any) -> None:
        self.state = {name: value.clone() for name, value in module.state_dict().items()}
        self.training = [part.training for part in module.modules()]
        self.grads = [(p.requires_grad, p.grad) for p in module.parameters()]
        self.config = module.config.to_dict() | {"attention": module.config._attn_implementation}
        self.table = id(module.get_input_embeddings())
        self.hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in module.modules()]
        self.forwards = ["forward" in vars(part) for part in module.modules()]
        self.rng = torch.get_rng_state()

    def check(self, module: Any) -> None:
        now = Everything(module)
        assert all(torch.equal(now.state[name], value) for name, value in self.state.items())
        assert torch.equal(now.rng, self.rng)
        for name in ("training", "grads", "config", "table", "hooks", "forwards"):
            assert getattr(now, name) == getattr(self, name), name


@each_named
def test_the_users_model_stays_as_it_is_when_it_is_explained(family: str) -> None:
    """By every kind of method, and when one of them breaks."""
    module, tokens = zoo.module(family), zoo.tokenizer_of(family)
    module.train()
    made = wrap(module, tokens)
    network, batch = zoo.network(made), zoo.batch(made)
    before, target = Everything(module), torch.zeros(3, dtype=torch.long)
    for name in ("attention", "gradient", "integrated_gradients", "lrp", "occlusion", "omission", "rollout"):
        options = {"n_steps": 2} if name == "integrated_gradients" else {}
        EXPLAINERS[name].run(network, batch, target, **options)
    before.check(module)
    wrong = torch.tensor([0, 1, 99])  # no such label: the score breaks, after the forward pass
    for name in ("gradient", "integrated_gradients", "lrp", "omission"):
        with pytest.raises((RuntimeError, IndexError)):
            EXPLAINERS[name].run(network, batch, wrong)
    before.check(module)


@pytest.mark.parametrize("family", ["GPT2", "Llama", "Qwen2", "Mistral"])
def test_decoders_in_float64_are_padded_like_others(family: str) -> None:
    """Their softmax is in float32, where the least number of float64 is -inf, and a row of padding was NaN."""
    plain, double = zoo.model(family), wrap(zoo.module(family).double(), zoo.tokenizer_of(family))
    assert double.network.can == plain.network.can
    batch = zoo.batch(double)
    ours, theirs = zoo.network(double).attentions(batch), zoo.network(plain).attentions(zoo.batch(plain))
    torch.testing.assert_close(ours.float(), theirs, atol=1e-5, rtol=0)
    torch.testing.assert_close(double.network(batch, edit=same).logits, double.network(batch).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["Bert", "GPT2", "MPNet", "ConvBert"])
def test_one_layer_of_attention_is_read_alone(family: str) -> None:
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    every = network.attentions(batch)
    for layer in (0, 1, -1):
        assert torch.equal(network.attentions(batch, layer), every[:, [layer]])
    with pytest.raises(Mistake, match="layer 2: this model has 2 layers"):
        network.attentions(batch, 2)


@pytest.mark.parametrize("family", ["Bert", "Deberta", "GPT2", "Llama"])
@pytest.mark.parametrize("training", [False, True])
def test_the_users_model_stays_as_it_is(family: str, training: bool) -> None:
    module, tokens = zoo.module(family), zoo.tokenizer_of(family)
    module.train(training)
    if training:
        next(module.children()).eval()  # a part in another mode than the whole
    told = tokens.backend_tokenizer.to_str()
    before = Everything(module)
    made, second = wrap(module, tokens), wrap(module, tokens, query=True)
    network, batch = zoo.network(made), zoo.batch(made)
    before.check(module)
    x = network.embed(batch.passage).requires_grad_()
    torch.autograd.grad(network(batch, x=x).logits.sum(), x)
    network.attentions(batch)
    network.states(batch)
    zoo.network(second)(zoo.batch(second))
    before.check(module)
    if "edits_attention" in network.can:
        network(batch, edit=lambda layer, weights: weights.flip(-1))

        def broken(layer: int, weights: Tensor) -> Tensor:
            if layer == 1:
                zoo.network(second)(zoo.batch(second), edit=same)  # two networks of one module, one inside the other
                raise ZeroDivisionError
            return weights

        with pytest.raises(ZeroDivisionError):
            network(batch, edit=broken)
        before.check(module)
    with pytest.raises(RuntimeError):
        network(batch, x=torch.zeros(len(batch), batch.passage.ids.shape[1], 5))
    before.check(module)
    assert tokens.backend_tokenizer.to_str() == told


def test_one_network_inside_another_counts_its_own_layers() -> None:
    made = zoo.model("Bert")
    network, batch = zoo.network(made), zoo.batch(made)
    seen: list[int] = []

    def edit(layer: int, weights: Tensor) -> Tensor:
        seen.append(layer)
        if layer == 0:
            network(batch, edit=same)
        return weights

    assert torch.equal(network(batch, edit=edit).logits, network(batch, edit=same).logits)
    assert seen == [0, 1]


def test_what_cannot_be_edited_says_so() -> None:
    made = zoo.model("DebertaV2")
    with pytest.raises(Mistake, match=r"edits_attention.*DebertaV2ForSequenceClassification can: attends"):
        zoo.network(made)(zoo.batch(made), edit=same)


def test_an_encoder_decoder_predicts_and_no_more() -> None:
    import transformers

    config = transformers.BartConfig(
        vocab_size=zoo.N_IDS,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
    )
    kind: Any = transformers.BartForSequenceClassification
    module, tokens = kind(config).eval(), zoo.tokenizer("roberta")
    made = wrap(module, tokens)
    assert made.network.can == {"predicts"}
    own = torch.cat([zoo.own_logits(module, tokens, text) for text in zoo.SOME])
    torch.testing.assert_close(made.network(zoo.batch(made)).logits, own, atol=1e-5, rtol=0)


def test_split_undoes_what_sequences_join() -> None:
    made: Model = zoo.model("Roberta", query=True)
    batch = zoo.batch(made)
    assert batch.query is not None
    joined = sequences(batch).take(batch.passage.ids, batch.query.ids)
    passage, query = split(joined, batch)
    assert torch.equal(passage, batch.passage.ids * batch.passage.present)
    assert query is not None
    assert torch.equal(query, batch.query.ids * batch.query.present)
    for row, texts in enumerate(zip(zoo.SOME, zoo.QUERIES, strict=True)):
        ids = zoo.tokenizer("roberta")(*texts)["input_ids"]
        assert joined[row, : len(ids)].tolist() == ids


def test_a_module_that_draws_at_random_is_refused() -> None:
    """Two answers to one text were taken for its prediction, and explained."""

    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = zoo.module("Bert")
            self.config = self.inner.config

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def forward(self, **given: Any) -> Any:
            found = self.inner(**given)
            return type(found)(logits=nn.functional.dropout(found.logits, training=True))

    with pytest.raises(Mistake, match="answers the same text differently when it is asked twice"):
        wrap(Noisy(), zoo.tokenizer_of("Bert"))


def test_sparse_attention_that_depends_on_the_length_stays_as_it_is() -> None:
    """BigBird exchanges its sparse attention for full attention at the first short text, for good."""
    made = zoo.module("BigBird", attention_type="block_sparse")
    long = " ".join(["a good film of the bad day"] * 4)
    own = zoo.own_logits(made, zoo.tokenizer_of("BigBird"), long)  # before anybody asked a short text
    parts = dict(made.named_modules())
    model = wrap(made, zoo.tokenizer_of("BigBird"))
    assert made.bert.attention_type == "block_sparse"
    assert dict(made.named_modules()) == parts
    p = model.predict([long, "a good film"])  # together, and each as alone
    torch.testing.assert_close(torch.tensor(p[:1]), own.softmax(-1).double(), atol=1e-6, rtol=0)
    assert p[1:] == pytest.approx(model.predict(["a good film"]), abs=1e-9)
    full = wrap(zoo.module("BigBird"), zoo.tokenizer_of("BigBird")).predict([long])
    assert abs(full - p[:1]).max() > 1e-4  # what it would be otherwise
