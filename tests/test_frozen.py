"""The frozen network: its value is the network's own, its gradient takes the whole logit apart."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack

import zoo

pytest.importorskip("transformers", reason="transformers is not installed")

import transformer_zoo
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.explainers.lrp.decomposition import decompose
from heedful.explainers.lrp.frozen import BIASES, POSITIONS, RULES, Frozen, frozen
from heedful.explainers.lrp.relevance import lrp
from heedful.models import AttentiveClassifier, Output
from heedful.models.attentive import sparse
from heedful.models.attentive.encoders import Encoder
from heedful.models.huggingface import HuggingFaceNetwork, wrap
from heedful.models.link import SOFTMAX
from heedful.models.model import Model
from heedful.records import Batch
from test_toy_transformer import ids_of
from toy_transformer import DIM, HEADS, LAYERS, Array, ToyTransformer, by_hand

LENGTHS = [5, 9, 2]
TARGET = torch.tensor([0, 1, 2])
FAMILIES = [*transformer_zoo.FAMILIES, *transformer_zoo.OTHERS]
FLOAT32_NORMS = ("Deberta", "Llama", "Mistral", "Qwen2", "Gemma")  # whatever the type of their weights
ROTARY = ("ModernBert", "GPTNeoX", "Phi", "Llama", "Mistral", "Qwen2", "Gemma")
WITHOUT_POSITIONS = (*ROTARY, "DebertaV2", "XLNet")  # none that is added: it is in the attention's scores


@cache
def model(family: str, query: bool = False) -> Model:
    """In float64."""
    made = transformer_zoo.module(family).double()
    return wrap(made, transformer_zoo.tokenizer_of(family), query=query)


def network_of(module: nn.Module, family: str = "Bert") -> HuggingFaceNetwork:
    return transformer_zoo.network(wrap(module, transformer_zoo.tokenizer_of(family)))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_of_a_logit_are_the_logit(family: str) -> None:
    network, batch = transformer_zoo.network(model(family)), transformer_zoo.batch(model(family))
    f = network(batch, x=network.embed(batch.passage).requires_grad_()).score(TARGET)
    found = decompose(network, batch, TARGET)
    assert torch.equal(found.f, f), "the forward value is the network's own, to the last bit"
    with torch.no_grad():  # texts go by length then, and where a row stands in a product can change its last bit
        torch.testing.assert_close(found.f, network(batch).score(TARGET), atol=1e-6, rtol=1e-6)
    exact = 1e-5 if family in FLOAT32_NORMS else 1e-10
    summed = found.words + found.special + found.positions + found.biases
    torch.testing.assert_close(summed, f, atol=exact, rtol=0)
    # biases by their own formula agree with what is left of f
    torch.testing.assert_close(found.biases, f - found.words - found.special - found.positions, atol=exact, rtol=0)
    mask = batch.passage.mask
    torch.testing.assert_close(found.words, (found.passage * mask).sum(1))
    torch.testing.assert_close(found.special, (found.passage * ~mask).sum(1))
    assert found.passage[~batch.passage.present].eq(0).all(), "padding has no part in it"
    assert found.words.abs().min() > 1e-6
    assert (found.positions.abs().min() > 0) == (family not in WITHOUT_POSITIONS)
    assert (found.biases.abs().min() > 0) == (family not in ("Llama", "Mistral", "Gemma")), "some have no biases"


@pytest.mark.parametrize("family", FAMILIES)
def test_in_float32_the_parts_are_the_logit_to_rounding(family: str) -> None:
    made = transformer_zoo.model(family)
    network, batch = transformer_zoo.network(made), transformer_zoo.batch(made)
    scores = EXPLAINERS["lrp"].run(network, batch, TARGET)
    assert scores.special is not None
    summed = scores.passage.sum(1) + scores.special + sum(scores.rest.values())
    with torch.no_grad():
        torch.testing.assert_close(summed, network(batch).score(TARGET), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_alone_and_among_others(family: str) -> None:
    made = model(family)
    network, batch = transformer_zoo.network(made), transformer_zoo.batch(made)
    together = decompose(network, batch, TARGET)
    near = 1e-5 if family in FLOAT32_NORMS else 1e-10
    for i in range(len(batch)):
        row = torch.tensor([i])
        alone = decompose(network, batch.rows(row), TARGET[row])
        n = alone.passage.shape[1]
        torch.testing.assert_close(together.passage[i, :n], alone.passage[0], atol=near, rtol=near)
        for name in ("special", "positions", "biases"):
            torch.testing.assert_close(getattr(together, name)[i], getattr(alone, name)[0], atol=near, rtol=near)


@pytest.mark.parametrize("family", ["Bert", "Roberta", "ModernBert"])
def test_pairs_of_texts(family: str) -> None:
    made = model(family, query=True)
    network, batch = transformer_zoo.network(made), transformer_zoo.batch(made)
    scores = EXPLAINERS["lrp"].run(network, batch, TARGET)
    assert batch.query is not None
    assert scores.query is not None
    assert scores.special is not None
    assert scores.query[~batch.query.mask].eq(0).all()
    assert scores.query.abs().sum(1).min() > 1e-6
    summed = scores.passage.sum(1) + scores.query.sum(1) + scores.special + sum(scores.rest.values())
    with torch.no_grad():
        torch.testing.assert_close(summed, network(batch).score(TARGET), atol=1e-10, rtol=0)
    only = EXPLAINERS["lrp"].run(network, batch, TARGET, parts="query")
    assert only.query is not None
    assert torch.equal(only.query, scores.query)
    assert only.passage.eq(0).all()


@pytest.mark.parametrize("family", ["Bert", "GPT2"])
def test_a_text_longer_than_the_model_reads(family: str) -> None:
    """It is read in windows, and its logit, the weighted mean of theirs, is taken apart all the same."""
    made = model(family)
    network = transformer_zoo.network(made)
    batch = transformer_zoo.batch(made, ["a good film " * 40, "waste", "it isn't bad at all " * 30])
    with pytest.warns(UserWarning, match="windows"):
        f = network(batch).score(TARGET).detach()
    with pytest.warns(UserWarning, match="windows"):
        found = decompose(network, batch, TARGET)
    torch.testing.assert_close(found.f, f, atol=1e-12, rtol=0)
    assert found.gap.abs().max() < 1e-10
    assert found.biases.abs().min() > 0


@pytest.mark.parametrize("family", ["Bert", "GPT2", "Llama"])
def test_every_implementation_of_attention_gives_the_same(family: str) -> None:
    found = []
    for implementation in ("eager", "sdpa"):
        made = transformer_zoo.module(family, attn_implementation=implementation).double()
        assert made.config._attn_implementation == implementation
        network = network_of(made, family)
        found.append(decompose(network, transformer_zoo.batch(model(family)), TARGET).passage)
    torch.testing.assert_close(*found, atol=1e-6, rtol=1e-6)


ACTIVATIONS = ["gelu", "gelu_new", "gelu_fast", "gelu_python", "quick_gelu", "relu", "relu2", "silu", "tanh", "mish"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_is_its_ratio(activation: str) -> None:
    """However it is written: z is worth act(z), so all that is left in biases is what was in the biases."""
    made = transformer_zoo.module("Bert", hidden_act=activation).double()
    found = decompose(network_of(made), transformer_zoo.batch(model("Bert")), TARGET)
    torch.testing.assert_close(found.gap, torch.zeros(3).double(), atol=1e-10, rtol=0)
    act = made.bert.encoder.layer[0].intermediate.intermediate_act_fn
    z = torch.linspace(-3, 3, 13).double().requires_grad_()
    with frozen(act, [z]):
        out = act(z)
    (slope,) = torch.autograd.grad(out.sum(), z)
    torch.testing.assert_close(slope * z, act(z).detach(), atol=1e-12, rtol=1e-9)


# The toy transformer, taken apart by hand.


def by_hand_decomposition(model: ToyTransformer, ids: list[int], label: int) -> dict[str, Any]:
    """Forwards: each source (every token, the positions, the biases) sent alone through the frozen layers."""
    w = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    logits, _, weights = by_hand(model, ids)
    n, size = len(ids), DIM // HEADS
    sources = [np.zeros((n, DIM)) for _ in range(n + 2)]
    for t, i in enumerate(ids):
        sources[t][t] = w["words.weight"][i]
        sources[n][t] = w["places.weight"][t]
    biases = n + 1

    def linear(name: str, z: Array, is_bias: bool) -> Array:
        found: Array = z @ w[f"{name}.weight"].T + (w[f"{name}.bias"] if is_bias else 0.0)
        return found

    def norm(name: str, parts: list[Array]) -> list[Array]:
        sd = np.sqrt(np.sum(parts, axis=0).var(-1, keepdims=True) + 1e-5)
        made = [w[f"{name}.weight"] * (z - z.mean(-1, keepdims=True)) / sd for z in parts]
        made[biases] = made[biases] + w[f"{name}.bias"]
        return made

    for number in range(LAYERS):
        name = f"layers.{number}"
        after = []
        for k, h in enumerate(sources):
            v = linear(f"{name}.v", h, k == biases)
            mixed = np.concatenate([weights[number][a] @ v[:, a * size : (a + 1) * size] for a in range(HEADS)], axis=1)
            after.append(h + linear(f"{name}.out", mixed, k == biases))
        sources = norm(f"{name}.norm", after)
        inner = [linear(f"{name}.up", h, k == biases) for k, h in enumerate(sources)]
        z = np.sum(inner, axis=0)
        ratio = np.vectorize(lambda u: 0.5 * (1 + math.erf(u / math.sqrt(2))))(z)  # gelu(z) / z
        added = [
            h + linear(f"{name}.down", ratio * u, k == biases)
            for k, (h, u) in enumerate(zip(sources, inner, strict=True))
        ]
        sources = norm(f"{name}.norm_mlp", added)
    pooled = [linear("pool", h[0], k == biases) for k, h in enumerate(sources)]
    z = np.sum(pooled, axis=0)
    out = [linear("readout", np.tanh(z) / z * u, k == biases)[label] for k, u in enumerate(pooled)]
    assert sum(out) == pytest.approx(logits[label])
    return {"tokens": np.array(out[:n]), POSITIONS: out[n], BIASES: out[biases]}


def test_the_toy_transformer_by_hand() -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    found = decompose(model, batch, TARGET)
    scores = EXPLAINERS["lrp"].run(model, batch, TARGET)
    for i in range(3):
        expected = by_hand_decomposition(model, ids_of(batch, i), i)
        n, mask = len(expected["tokens"]), batch.passage.mask[i].numpy()
        np.testing.assert_allclose(found.passage[i, :n], expected["tokens"], atol=1e-12)
        assert found.positions[i].item() == pytest.approx(expected[POSITIONS], abs=1e-12)
        assert found.biases[i].item() == pytest.approx(expected[BIASES], abs=1e-12)
        np.testing.assert_allclose(scores.passage[i, :n], expected["tokens"] * mask[:n], atol=1e-12)
        assert scores.special is not None
        assert scores.special[i].item() == pytest.approx(expected["tokens"][~mask[:n]].sum(), abs=1e-12)
        assert scores.rest[POSITIONS][i].item() == pytest.approx(expected[POSITIONS], abs=1e-12)
        assert scores.rest[BIASES][i].item() == pytest.approx(expected[BIASES], abs=1e-12)
    assert scores.gap is not None
    assert scores.scale is not None
    assert scores.gap.abs().max() < 1e-12
    torch.testing.assert_close(scores.scale, model(batch).score(TARGET).abs().detach())


# Our own classifiers, whose rules are written out layer by layer.


@pytest.mark.parametrize("task", ["binary", "several", "nli"])
@pytest.mark.parametrize("encoder", ["transformer", "cnn", "average"])
def test_it_is_the_epsilon_rule_with_epsilon_zero(encoder: str, task: zoo.TaskName) -> None:
    """relevance.py with a small epsilon and the frozen network agree, word by word, where there is no recurrence."""
    model, batch = zoo.network(encoder, task=task), zoo.batch(LENGTHS, task)
    target = torch.tensor([0, 1, 1])
    by_rules, found = lrp(model, batch, target, epsilon=1e-13), decompose(model, batch, target)
    torch.testing.assert_close(found.passage * batch.passage.mask, by_rules.passage, atol=1e-7, rtol=1e-6)
    if batch.query is not None:
        assert found.query is not None
        assert by_rules.query is not None
        torch.testing.assert_close(found.query * batch.query.mask, by_rules.query, atol=1e-7, rtol=1e-6)
    assert found.gap.abs().max() < 1e-12
    assert by_rules.gap is not None
    torch.testing.assert_close(found.f - found.words, by_rules.gap, atol=1e-6, rtol=1e-6)


class TwoLayers(Encoder):
    """A recurrence that is one call of torch for several layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(6, 8, num_layers=2, batch_first=True)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.layers(x)[0]
        return h


def test_a_recurrence_without_a_rule_is_refused() -> None:
    """Layers on top of each other in one call, whose gates nobody sees: no scores are better than wrong ones."""
    model = zoo.network("bilstm")
    model.encoder = TwoLayers().double()
    with pytest.raises(Mistake, match="of a logit is in none of its parts"):
        decompose(model, zoo.batch(LENGTHS), torch.tensor([0, 1, 1]))


@pytest.mark.parametrize("encoder", ["bilstm", "lstm", "bigru"])
def test_gates_that_are_held_constant(encoder: str) -> None:
    """f is linear in the signals: its parts add up, and each state is the sum of what its step took, by hand."""
    model, batch = zoo.network(encoder), zoo.batch(LENGTHS)
    found = decompose(model, batch, torch.tensor([0, 1, 1]))
    assert found.gap.abs().max() < 1e-12


def test_an_lstm_step_by_hand() -> None:
    """h = o tanh(c), c = i tanh(z): with gates and the ratios tanh(c) / c and tanh(z) / z constant, dh/dx is their
    product with W."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 2, batch_first=True).double()
    x = torch.randn(1, 1, 3).double().requires_grad_()
    with frozen(layer, [x]):
        h: Tensor = layer.forward(x)[0]
    (slope,) = torch.autograd.grad(h[0, 0, 1], x)
    with torch.no_grad():
        of_x, _, b_x, b_h = (p.detach() for p in layer.parameters())
        z = of_x @ x[0, 0] + b_x + b_h
        i, _, g, o = z.chunk(4)
        c = i.sigmoid() * g.tanh()
        W = of_x.chunk(4)[2]
        expected = (o.sigmoid() * (c.tanh() / c) * i.sigmoid() * (g.tanh() / g))[1] * W[1]
    torch.testing.assert_close(slope[0, 0], expected)


# What the explainer refuses, and that it leaves everything as it was.


def test_what_lrp_does_not_take() -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    with pytest.raises(Mistake, match="lrp explains the logit"):
        EXPLAINERS["lrp"].run(model, batch, TARGET, of="probability")
    with pytest.raises(Mistake, match=r"epsilon=0\.1: in this model lrp divides by nothing"):
        EXPLAINERS["lrp"].run(model, batch, TARGET, epsilon=0.1)
    with pytest.raises(Mistake, match="lrp needs a model whose word embeddings"):
        EXPLAINERS["lrp"].check(frozenset({"predicts"}))


def everything(made: nn.Module) -> dict[str, Any]:
    state: dict[str, Any] = {f"weight {n}": p.detach().clone() for n, p in made.named_parameters()}
    state |= {f"{n} needs": (p.requires_grad, p.grad is None) for n, p in made.named_parameters()}
    state |= {f"{n} attributes": sorted(vars(m)) for n, m in made.named_modules()}
    state |= {
        f"{n} hooks": (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks), m.training)
        for n, m in made.named_modules()
    }
    state["modes"] = len(_get_current_function_mode_stack())  # type: ignore[no-untyped-call]
    state["rng"] = torch.random.get_rng_state()
    return state


@pytest.mark.parametrize(
    ("family", "name"), [("Bert", "hidden_act"), ("GPT2", "activation_function"), ("Llama", "hidden_act")]
)
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_survives(family: str, name: str, fails: bool) -> None:
    made = transformer_zoo.module(family, 0, **{name: "gelu_new"}).double()
    network, batch = network_of(made, family), transformer_zoo.batch(model(family))
    before, own = everything(made), network(batch).logits
    if fails:
        head = made.classifier if hasattr(made, "classifier") else made.score
        broken = head.register_forward_pre_hook(half_way)
        with pytest.raises(RuntimeError, match="half way"):
            decompose(network, batch, TARGET)
        broken.remove()
    else:
        decompose(network, batch, TARGET)
    after = everything(made)
    assert before.keys() == after.keys()
    for key, value in before.items():
        assert torch.equal(value, after[key]) if isinstance(value, Tensor) else value == after[key], key
    assert torch.equal(network(batch).logits, own)


def half_way(part: nn.Module, given: Any) -> None:
    raise RuntimeError("half way")


@pytest.mark.parametrize("family", ["BigBird", "ConvBert"])
def test_a_head_that_makes_its_activation_anew(family: str) -> None:
    """gelu_new is written out as products: taken for a gated layer, words were off by 17%. As torch's, it is not."""
    parts = []
    for activation in ("gelu_new", "gelu_pytorch_tanh"):  # one function, written twice
        network = network_of(transformer_zoo.module(family, hidden_act=activation).double(), family)
        parts.append(decompose(network, transformer_zoo.batch(model(family)), TARGET))
    torch.testing.assert_close(parts[0].passage, parts[1].passage, atol=1e-9, rtol=1e-7)


def test_a_forward_that_was_somebodys_own_is_given_back() -> None:
    made = transformer_zoo.module("Bert").double()
    act = made.bert.encoder.layer[0].intermediate.intermediate_act_fn
    own = act.forward
    act.forward = own
    decompose(network_of(made), transformer_zoo.batch(model("Bert")), TARGET)
    assert vars(act)["forward"] is own


def test_parameters_without_gradients_and_no_grad() -> None:
    made, batch = transformer_zoo.module("Bert").double(), transformer_zoo.batch(model("Bert"))
    expected = decompose(network_of(made), batch, TARGET)
    for parameter in made.parameters():
        parameter.requires_grad_(False)
    with torch.no_grad():
        found = decompose(network_of(made), batch, TARGET)
    assert torch.equal(found.passage, expected.passage)


class InWindows(ToyTransformer):
    """Reads every text twice, as two rows: what is added to a row is not added to a text."""

    def forward(self, batch: Batch, **given: Any) -> Output:
        twice = torch.arange(len(batch)).repeat_interleave(2)
        x = given.get("x")
        x = self.embed(batch.passage) if x is None else x
        logits = super().forward(batch.rows(twice), x=x[twice]).logits
        return Output(logits.view(len(batch), 2, -1).mean(1), SOFTMAX)


class Apart(ToyTransformer):
    """Reads some texts before the others."""

    def forward(self, batch: Batch, **given: Any) -> Output:
        x = given.get("x")
        x = self.embed(batch.passage) if x is None else x
        parts = [torch.tensor([1]), torch.tensor([0, 2])] if len(batch) == 3 else [torch.tensor([0])]
        n = [int(batch.passage.present[rows].sum(1).max()) for rows in parts]
        logits = [super(Apart, self).forward(batch.rows(r), x=x[r, :k]).logits for r, k in zip(parts, n, strict=True)]
        return Output(torch.cat(logits)[torch.cat(parts).argsort()], SOFTMAX)


@pytest.mark.parametrize("kind", [InWindows, Apart])
def test_rows_that_are_no_texts(kind: type[ToyTransformer]) -> None:
    batch = zoo.batch(LENGTHS)
    expected, found = decompose(ToyTransformer(), batch, TARGET), decompose(kind(), batch, TARGET)
    for name in ("f", "passage", "words", "special", "positions", "biases"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), atol=1e-12, rtol=1e-9)


# Each rule by itself: the value of the function, and x . df/dx + constants = f.

Z = torch.linspace(-2.0, 2.5, 12, dtype=torch.float64).view(3, 4)
W = torch.linspace(1.0, -1.5, 16, dtype=torch.float64).view(4, 4)
B = torch.tensor([0.3, -0.2, 0.5, 1.0], dtype=torch.float64)
FUNCTIONS: dict[str, Any] = {
    "linear": lambda x: F.linear(x, W, B),
    "addmm": lambda x: torch.addmm(B, x, W),
    "addmm with beta": lambda x: torch.addmm(B, x, W, beta=2),
    "layer_norm": lambda x: F.layer_norm(x, (4,), W[0], B),
    "layer_norm without weights": lambda x: F.layer_norm(x, normalized_shape=(4,)),
    "norm written out": lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 0.1).sqrt() * B + 1.0,
    "rms norm": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.1) * B,
    "rms_norm": lambda x: F.rms_norm(x, (4,), B),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "gated": lambda x: F.silu(x @ W) * (x @ W.T + B),
    "three factors": lambda x: torch.einsum("ij,ij,ij->ij", x, x @ W, x + B),
    "glu by sigmoid": lambda x: torch.sigmoid(x @ W) * x,
    "attention": lambda x: (x @ x.T).softmax(-1) @ (x @ W + B),
    "sdpa": lambda x: F.scaled_dot_product_attention(x[None], x[None], (x @ W + B)[None])[0],
    "sdpa by name": lambda x: F.scaled_dot_product_attention(query=x[None], key=x[None], value=x[None])[0],
    "conv1d": lambda x: F.conv1d(x[:, :, None], W[:, :, None], B)[:, :, 0],
    "sub": lambda x: B - x @ W,
    "sub with alpha": lambda x: torch.sub(x, B, alpha=3),
    "constant minus": lambda x: 1 - x,
    "rsub": lambda x: torch.rsub(x, B, alpha=2),
    "in place after an activation": lambda x: F.gelu(x @ W).add_(B) + F.silu(x).mul_(x),
    "in place": lambda x: (x @ W).add_(B).mul_(B).sub_(1.0),
    "in place product": lambda x: (x @ W).mul_(x).div_(x.exp()),
    "in place activation": lambda x: F.relu(x @ W, inplace=True) + torch.relu_(x @ W.T) + torch.tanh_(x @ W),
    "added to a constant": lambda x: torch.ones(3, 4, dtype=torch.float64).add_(x),
    "quotients": lambda x: x / (1 + x.abs()) + 2 / (x.abs() + 1),
    "powers": lambda x: x**3 + x.square() + torch.pow(x, 2) + 2**x,
    "parameters": lambda x: x * (1 + nn.Parameter(B)) + nn.Parameter(B).exp(),
    "activations": lambda x: F.gelu(x) + F.relu(x) + x.tanh() + F.leaky_relu(x) + F.elu(x) + F.hardswish(x) + F.mish(x),
    "table": lambda x: x + F.embedding(torch.tensor([1, 0, 2]), W) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_its_frozen_parts(name: str) -> None:
    function, x = FUNCTIONS[name], Z.clone().requires_grad_()
    expected = function(Z.clone())
    with Frozen([x]) as mode:
        out = function(x)
    assert torch.equal(out, expected)
    (slope,) = torch.autograd.grad(out.sum(), x)
    found = (slope * Z).sum() + sum(amount.sum() for amount in mode.constants.values())
    torch.testing.assert_close(found, expected.sum(), atol=1e-12, rtol=1e-12)
    assert (mode.constants[POSITIONS].abs().sum() > 0) == (name == "table")


def test_rules_are_of_functions_that_exist() -> None:
    places = (torch, F, Tensor, torch.linalg, vars(torch._C)["_linalg"], sparse)
    assert [name for name in RULES if not any(hasattr(place, name) for place in places)] == []


def test_lrp_of_both_kinds_has_one_name() -> None:
    batch = zoo.batch(LENGTHS)
    own = EXPLAINERS["lrp"].run(zoo.network("bilstm"), batch, torch.tensor([0, 1, 1]))
    assert own.rest == {}
    assert isinstance(zoo.network("bilstm"), AttentiveClassifier)
    only = replace(batch, labels=None)
    assert set(EXPLAINERS["lrp"].run(ToyTransformer(), only, TARGET).rest) == {POSITIONS, BIASES}
