"""The frozen network: its value is the network's own, its gradient takes the whole logit apart."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack

import zoo
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.explainers.decomposition import decompose
from heedful.explainers.frozen import BIASES, POSITIONS, RULES, Frozen, frozen
from heedful.explainers.relevance import lrp
from heedful.models.classifier import AttentiveClassifier
from heedful.models.link import SOFTMAX
from heedful.models.network import Output
from heedful.records import Batch
from test_toy_transformer import ids_of
from tiny_transformers import DECODERS, FAMILIES, EmbeddingsGiven, module
from toy_transformer import DIM, HEADS, LAYERS, Array, ToyTransformer, by_hand

FLOAT32_NORMS = ("deberta", "llama", "mistral", "qwen2", "gemma")  # whatever the type of their weights
LENGTHS = [5, 9, 2]
TARGET = torch.tensor([0, 1, 2])


def texts(family: str) -> Batch:
    """Decoders read the last token, so theirs have no padding here."""
    return zoo.batch([7, 7, 7] if family in DECODERS else LENGTHS)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_of_a_logit_are_the_logit(family: str) -> None:
    network, batch = EmbeddingsGiven(module(family)), texts(family)
    with torch.no_grad():
        f = network(batch).score(TARGET)
    found = decompose(network, batch, TARGET)
    assert torch.equal(found.f, f), "the forward value is the network's own, to the last bit"
    exact = 1e-5 if family in FLOAT32_NORMS else 1e-10
    summed = found.words + found.special + found.positions + found.biases
    torch.testing.assert_close(summed, f, atol=exact, rtol=0)
    # biases by their own formula agree with what is left of f
    torch.testing.assert_close(
        found.biases, f - found.words - found.special - found.positions, atol=exact, rtol=0
    )
    mask = batch.passage.mask
    torch.testing.assert_close(found.words, (found.passage * mask).sum(1))
    torch.testing.assert_close(found.special, (found.passage * ~mask).sum(1))
    assert found.passage[~batch.passage.present].eq(0).all(), "padding has no part in it"
    assert found.words.abs().min() > 1e-6
    learned = family not in ("modernbert", "gpt_neox", "phi", "llama", "mistral", "qwen2", "gemma")
    assert (found.positions.abs().min() > 0) == learned, (
        "rotary positions turn queries and keys, and are not added"
    )
    assert (found.biases.abs().min() > 0) == (family not in ("llama", "mistral", "gemma")), (
        "some have no biases"
    )


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert", "deberta-v2"])
def test_a_text_alone_and_among_others(family: str) -> None:
    network, batch = EmbeddingsGiven(module(family)), texts(family)
    together = decompose(network, batch, TARGET)
    for i in range(len(batch)):
        alone = decompose(network, zoo.row(batch, i), TARGET[i : i + 1])
        n = alone.passage.shape[1]
        torch.testing.assert_close(together.passage[i, :n], alone.passage[0], atol=1e-10, rtol=1e-8)
        for name in ("special", "positions", "biases"):
            torch.testing.assert_close(
                getattr(together, name)[i], getattr(alone, name)[0], atol=1e-10, rtol=1e-8
            )


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_every_implementation_of_attention_gives_the_same(implementation: str) -> None:
    made = module("bert")
    made.set_attn_implementation(implementation)
    other = module("bert")
    other.set_attn_implementation("eager")
    one, two = (decompose(EmbeddingsGiven(m), zoo.batch(LENGTHS), TARGET) for m in (made, other))
    torch.testing.assert_close(one.passage, two.passage, atol=1e-12, rtol=1e-9)


ACTIVATIONS = [
    "gelu",
    "gelu_new",
    "gelu_fast",
    "gelu_python",
    "quick_gelu",
    "relu",
    "relu2",
    "silu",
    "tanh",
    "mish",
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_is_its_ratio(activation: str) -> None:
    """However it is written: z is worth act(z), so all that is left in biases is what was in the biases."""
    made = module("bert", hidden_act=activation)
    found = decompose(EmbeddingsGiven(made), zoo.batch(LENGTHS), TARGET)
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
            mixed = np.concatenate(
                [weights[number][a] @ v[:, a * size : (a + 1) * size] for a in range(HEADS)], axis=1
            )
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


def test_a_recurrent_network_is_refused() -> None:
    """An LSTM is one call, whose gates nobody sees: no scores are better than wrong ones."""
    with pytest.raises(Mistake, match="of a logit is in none of its parts"):
        decompose(zoo.network("bilstm"), zoo.batch(LENGTHS), torch.tensor([0, 1, 1]))


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


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_survives(family: str, fails: bool) -> None:
    name = "activation_function" if family == "gpt2" else "hidden_act"
    made = module(family, 0, **{name: "gelu_new"})
    before, batch = everything(made), texts(family)
    own = EmbeddingsGiven(made)(batch).logits
    network = Breaks(made) if fails else EmbeddingsGiven(made)
    if fails:
        with pytest.raises(RuntimeError, match="half way"):
            decompose(network, batch, TARGET)
    else:
        decompose(network, batch, TARGET)
    after = everything(made)
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(value, after[name]) if isinstance(value, Tensor) else value == after[name], name
    assert torch.equal(EmbeddingsGiven(made)(batch).logits, own)


class Breaks(EmbeddingsGiven):
    def __call__(self, batch: Batch, **given: Any) -> Output:
        super().__call__(batch, **given)
        raise RuntimeError("half way")


def test_a_forward_that_was_somebodys_own_is_given_back() -> None:
    made = module("bert")
    act = made.bert.encoder.layer[0].intermediate.intermediate_act_fn
    own = act.forward
    act.forward = own
    decompose(EmbeddingsGiven(made), zoo.batch(LENGTHS), TARGET)
    assert vars(act)["forward"] is own


def test_parameters_without_gradients_and_inference_mode() -> None:
    made, batch = module("bert"), zoo.batch(LENGTHS)
    expected = decompose(EmbeddingsGiven(made), batch, TARGET)
    for parameter in made.parameters():
        parameter.requires_grad_(False)
    with torch.no_grad():
        found = decompose(EmbeddingsGiven(made), batch, TARGET)
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
        logits = [
            super(Apart, self).forward(batch.rows(r), x=x[r, :k]).logits
            for r, k in zip(parts, n, strict=True)
        ]
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
    "norm written out": lambda x: (
        (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 0.1).sqrt() * B + 1.0
    ),
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
    "activations": lambda x: (
        F.gelu(x) + F.relu(x) + x.tanh() + F.leaky_relu(x) + F.elu(x) + F.hardswish(x) + F.mish(x)
    ),
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
    places = (torch, F, Tensor, torch.linalg, vars(torch._C)["_linalg"])
    assert [name for name in RULES if not any(hasattr(place, name) for place in places)] == []


def test_lrp_of_both_kinds_has_one_name() -> None:
    batch = zoo.batch(LENGTHS)
    own = EXPLAINERS["lrp"].run(zoo.network("bilstm"), batch, torch.tensor([0, 1, 1]))
    assert own.rest == {}
    assert isinstance(zoo.network("bilstm"), AttentiveClassifier)
    only = replace(batch, labels=None)
    assert set(EXPLAINERS["lrp"].run(ToyTransformer(), only, TARGET).rest) == {POSITIONS, BIASES}
