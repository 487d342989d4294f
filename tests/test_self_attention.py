"""rollout, attention_flow, attention_x_norm and value_zeroing against their slow formulas, one text at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

import zoo

pytest.importorskip("transformers", reason="transformers is not installed")

import transformer_zoo
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS, Scores
from heedful.explainers.attention.rollout import max_flows
from heedful.models import Output
from heedful.models.huggingface import HuggingFaceNetwork
from heedful.models.network import Edit, SelfAttends
from heedful.records import Batch
from test_toy_transformer import ids_of
from toy_transformer import DIM, HEADS, LAYERS, Array, ToyTransformer, by_hand

LENGTHS = [4, 1, 6]
NAMES = ("rollout", "attention_flow", "attention_x_norm", "value_zeroing")
LAYERS_ASKED = (0, 1, -1)
SIZE = DIM // HEADS


def run(name: str, model: SelfAttends, batch: Batch, **options: Any) -> Scores:
    return EXPLAINERS[name].run(model, batch, torch.zeros(len(batch), dtype=torch.long), **options)


def expect(scores: Scores, batch: Batch, i: int, values: Array) -> None:
    """`values` of all tokens of text i: words in `passage`, markers in `special`, padding nowhere."""
    n, mask = len(values), batch.passage.mask[i].numpy()
    np.testing.assert_allclose(scores.passage[i, :n], values * mask[:n], atol=1e-6, rtol=1e-6)
    assert scores.passage[i, n:].eq(0).all()
    assert scores.special is not None
    np.testing.assert_allclose(scores.special[i], values[~mask[:n]].sum(), atol=1e-6)


def seen(maps: Array, row: str) -> Array:
    result: Array = {"first": maps[0], "last": maps[-1], "mean": maps.mean(0)}[row]
    return result


def half(weights: Array) -> Array:
    """(heads, to, from) -> (A + I) / 2, the heads averaged."""
    result: Array = (weights.mean(0) + np.eye(weights.shape[1])) / 2
    return result


each_layer_row_and_heads = pytest.mark.parametrize(
    ("layer", "row", "heads"), [*product(LAYERS_ASKED, ("first", "last", "mean"), (None, 1, (0, 2)))]
)


@each_layer_row_and_heads
def test_rollout(layer: int, row: str, heads: Any) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    scores = run("rollout", model, batch, layer=layer, row=row, heads=heads)
    chosen = list(range(HEADS)) if heads is None else list(np.atleast_1d(heads))
    for i in range(len(batch)):
        weights = by_hand(model, ids_of(batch, i))[2]
        product = np.eye(weights[0].shape[1])
        for number in range(layer % LAYERS + 1):
            product = half(weights[number][chosen]) @ product
        np.testing.assert_allclose(product.sum(1), 1, atol=1e-12)
        expect(scores, batch, i, seen(product, row))


def flow(maps: list[Array], top: int, token: int) -> float:
    """The maximum flow as a linear program: one variable for each pipe, what flows into a node flows out of it."""
    n = len(maps[0])
    pipes = [(layer, i, j) for layer in range(len(maps)) for i in range(n) for j in range(n)]
    keep = []
    for layer in range(1, len(maps)):
        for node in range(n):  # below layer `layer`, above layer - 1
            into = [float(a == layer and j == node) for a, i, j in pipes]
            out = [float(a == layer - 1 and i == node) for a, i, j in pipes]
            keep.append(np.subtract(into, out))
    bounds = [(0, maps[a][i, j] if a < len(maps) - 1 or i == top else 0) for a, i, j in pipes]
    arrives = [-float(a == 0 and j == token) for a, i, j in pipes]
    solved = linprog(
        arrives, A_eq=np.array(keep) if keep else None, b_eq=np.zeros(len(keep)) if keep else None, bounds=bounds
    )
    assert solved.fun is not None
    return -float(solved.fun)


@pytest.mark.parametrize("row", ["first", "last"])
@pytest.mark.parametrize("layer", LAYERS_ASKED)
def test_attention_flow(layer: int, row: str) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    scores = run("attention_flow", model, batch, layer=layer, row=row)
    for i in range(len(batch)):
        weights = by_hand(model, ids_of(batch, i))[2]
        maps = [half(one) for one in weights[: layer % LAYERS + 1]]
        n = len(maps[0])
        expect(scores, batch, i, np.array([flow(maps, 0 if row == "first" else n - 1, t) for t in range(n)]))


def test_the_flow_of_pipes_that_are_known() -> None:
    """Two layers: from node 0 above, .6 and .4 go down; from there to token 0 fit .5 and .9."""
    maps = np.array([[[0.5, 0.5], [0.9, 0.1]], [[0.6, 0.4], [0.0, 1.0]]])
    np.testing.assert_allclose(max_flows(maps, 0), [0.5 + 0.4, 0.5 + 0.1], atol=1e-8)
    np.testing.assert_allclose(max_flows(maps, 1), [0.9, 0.1], atol=1e-8)


def test_attention_flow_says_what_it_costs() -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    with pytest.raises(Mistake, match=r"text with 8 tokens .* max_tokens above 5"):
        run("attention_flow", model, batch, max_tokens=5)
    with pytest.raises(Mistake, match="row='first' or row='last'"):
        run("attention_flow", model, batch, row="mean")


@each_layer_row_and_heads
def test_attention_x_norm(layer: int, row: str, heads: Any) -> None:
    """||sum_h alpha^h_ij (x_j W_V^h + b_V^h) W_O^h||, from the weights themselves."""
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    scores = run("attention_x_norm", model, batch, layer=layer, row=row, heads=heads)
    chosen, number = list(range(HEADS)) if heads is None else list(np.atleast_1d(heads)), layer % LAYERS
    W_v, b_v, W_o = (
        model.get_parameter(f"layers.{number}.{name}").detach().numpy() for name in ("v.weight", "v.bias", "out.weight")
    )
    for i in range(len(batch)):
        _, states, weights = by_hand(model, ids_of(batch, i))
        x, n = states[number], len(states[number])
        norms = np.zeros((n, n))
        for to in range(n):
            for at in range(n):
                total = np.zeros(DIM)
                for head in chosen:
                    part = slice(head * SIZE, (head + 1) * SIZE)
                    total += weights[number][head, to, at] * W_o[:, part] @ (W_v[part] @ x[at] + b_v[part])
                norms[to, at] = np.linalg.norm(total)
        expect(scores, batch, i, seen(norms, row))


@pytest.mark.parametrize("row", ["first", "last", "mean"])
@pytest.mark.parametrize("layer", LAYERS_ASKED)
def test_value_zeroing(layer: int, row: str) -> None:
    """A value vector of zero, in the formula of the layer; not a column of weights, which is what the code sets."""
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    scores = run("value_zeroing", model, batch, layer=layer, row=row)
    number = layer % LAYERS
    for i in range(len(batch)):
        own = by_hand(model, ids_of(batch, i))[1]
        before, after = own[number], own[number + 1]
        n = len(before)
        distances = np.zeros((n, n))
        for j in range(n):
            changed = layer_with_zero_value(model, number, before, j)
            for to in range(n):
                cosine = changed[to] @ after[to] / np.linalg.norm(changed[to]) / np.linalg.norm(after[to])
                distances[to, j] = 1 - cosine
        expect(scores, batch, i, seen(distances / distances.sum(1, keepdims=True), row))


def layer_with_zero_value(model: ToyTransformer, number: int, h: Array, j: int) -> Array:
    parts = model.layers[number]
    assert isinstance(parts, nn.ModuleDict)
    x = torch.from_numpy(h)
    with torch.no_grad():
        q, k, v = (parts[name](x).view(len(x), HEADS, SIZE).transpose(0, 1) for name in "qkv")
        v[:, j] = 0  # in every head
        mixed = ((q @ k.transpose(1, 2) / SIZE**0.5).softmax(-1) @ v).transpose(0, 1).reshape(len(x), DIM)
        middle = parts["norm"](x + parts["out"](mixed))
        out: Array = parts["norm_mlp"](middle + parts["down"](nn.functional.gelu(parts["up"](middle)))).numpy()
    return out


@pytest.mark.parametrize("row", ["first", "last"])
@pytest.mark.parametrize("name", NAMES)
def test_a_text_alone_and_among_others(name: str, row: str) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    together = run(name, model, batch, row=row)
    assert together.special is not None
    for i in range(len(batch)):
        alone = run(name, model, zoo.row(batch, i), row=row)
        n = alone.passage.shape[1]
        torch.testing.assert_close(together.passage[i, :n], alone.passage[0], atol=1e-9, rtol=1e-7)
        assert together.passage[i, n:].eq(0).all()
        assert alone.special is not None
        torch.testing.assert_close(together.special[i], alone.special[0], atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_is_checked(name: str) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    with pytest.raises(Mistake, match="layer 2: this model has 2 layers"):
        run(name, model, batch, layer=2)
    with pytest.raises(Mistake, match="no row 'top'"):
        run(name, model, batch, row="top")
    if "heads" in EXPLAINERS[name].options:
        with pytest.raises(Mistake, match=r"heads \[3\]: this model has 3 heads"):
            run(name, model, batch, heads=3)


@pytest.mark.parametrize("name", NAMES)
def test_models_that_lack_what_is_needed_are_refused_by_name(name: str) -> None:
    explainer = EXPLAINERS[name]
    explainer.check(ToyTransformer.can)
    with pytest.raises(Mistake, match=rf"{name} needs a model in whose layers every token attends .*self_attends"):
        explainer.check(zoo.network().can, "sst-bilstm")
    if "edits_attention" in explainer.needs:
        with pytest.raises(Mistake, match="under other attention weights"):
            explainer.check(ToyTransformer.can - {"edits_attention"})


@pytest.mark.parametrize("name", NAMES)
def test_where_the_classifier_reads_is_where_it_is_seen_from(name: str) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    last = run(name, model, batch, row="last")
    model.reads = "last"  # type: ignore[assignment]
    assert torch.equal(run(name, model, batch).passage, last.passage)


class NormBetween(ToyTransformer):
    """A norm between attention and output projection: no weight times vector any more."""

    def _run(self, batch: Batch, x: Tensor | None, edit: Edit | None) -> Any:
        def normed(z: Tensor) -> Tensor:
            return nn.functional.layer_norm(z, (DIM,))

        for layer in self.layers:
            assert isinstance(layer, nn.ModuleDict)
            layer["out"].register_forward_pre_hook(lambda _, given: (normed(given[0]),))
        return super()._run(batch, x, edit)


class NoProjection(ToyTransformer):
    """Its attention is never used."""

    def forward(self, batch: Batch, **given: Any) -> Output:
        return super().forward(batch)


def test_norms_that_cannot_be_had_are_refused() -> None:
    batch = zoo.batch(LENGTHS)
    with pytest.raises(Mistake, match="'layer_norm' comes between attention and its output projection"):
        run("attention_x_norm", NormBetween(), batch)
    with pytest.raises(Mistake, match="no output projection follows the attention of layer 1"):
        run("attention_x_norm", NoProjection(), batch)


# The same on models of transformers: where values and projections are is known here, and nowhere in the code.

VALUES = {  # of layer 1: values, output projection
    "Bert": ("bert.encoder.layer.1.attention.self.value", "bert.encoder.layer.1.attention.output.dense"),
    "DistilBert": (
        "distilbert.transformer.layer.1.attention.v_lin",
        "distilbert.transformer.layer.1.attention.out_lin",
    ),
    "Llama": ("model.layers.1.self_attn.v_proj", "model.layers.1.self_attn.o_proj"),
    "OPT": ("model.decoder.layers.1.self_attn.v_proj", "model.decoder.layers.1.self_attn.out_proj"),
}
ROWS = {"first": 0, "last": -1}
EDITED = [
    family for family in (*transformer_zoo.FAMILIES, *transformer_zoo.OTHERS) if family not in transformer_zoo.UNEDITED
]


def of_transformers(family: str) -> tuple[HuggingFaceNetwork, Batch]:
    """In float32: the library's own attention of decoders gives no numbers for left padding in float64."""
    made = transformer_zoo.model(family)
    return transformer_zoo.network(made), transformer_zoo.batch(made)


@pytest.mark.parametrize("family", VALUES)
def test_attention_x_norm_of_transformers(family: str) -> None:
    network, whole = of_transformers(family)
    value, projection = (network.module.get_submodule(name) for name in VALUES[family])
    together = {row: run("attention_x_norm", network, whole, layer=1, row=row) for row in ROWS}
    for i in range(len(whole)):
        batch = whole.rows(torch.tensor([i]))
        given: list[Tensor] = []
        hook = value.register_forward_hook(lambda part, args, out, given=given: given.append(out.detach()))
        weights = network.attentions(batch)[0, 1]  # (heads, to, from)
        hook.remove()
        heads, n = weights.shape[:2]
        size = 16 // heads
        groups = heads * size // given[0].shape[-1]  # of heads that share values
        for row, at in ROWS.items():
            total = torch.zeros(n, 16)
            for head in range(heads):
                v = given[0][0, :, head // groups * size : (head // groups + 1) * size]  # (from, size)
                W = projection.get_parameter("weight").detach()[:, head * size : (head + 1) * size]
                total += weights[head, at, :, None] * (v @ W.T)
            mask, norms = batch.passage.mask[0], total.norm(dim=-1)
            found, special = together[row].passage[i], together[row].special
            torch.testing.assert_close(found[:n], norms * mask, atol=1e-5, rtol=1e-5)
            assert found[n:].eq(0).all()
            assert special is not None
            torch.testing.assert_close(special[i], norms[~mask].sum(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", VALUES)
def test_value_zeroing_of_transformers(family: str) -> None:
    """The value vector set to zero inside the model, by a hook, is a column of weights set to zero."""
    network, whole = of_transformers(family)
    value = network.module.get_submodule(VALUES[family][0])
    together = {row: run("value_zeroing", network, whole, layer=1, row=row) for row in ROWS}
    for i in range(len(whole)):
        batch = whole.rows(torch.tensor([i]))
        own = network.states(batch)[0, 2].double()  # (n, dim)
        n = len(own)
        maps = torch.zeros(n, n, dtype=torch.float64)
        for j in range(n):
            hook = value.register_forward_hook(zero_at(j))
            maps[:, j] = 1 - torch.cosine_similarity(network.states(batch)[0, 2].double(), own, dim=-1)
            hook.remove()
        maps = maps / maps.sum(-1, keepdim=True)
        for row, at in ROWS.items():
            expected = maps[at] * batch.passage.mask[0]
            torch.testing.assert_close(together[row].passage[i, :n].double(), expected, atol=1e-4, rtol=1e-4)


def zero_at(j: int) -> Any:
    def zero(part: nn.Module, args: Any, out: Tensor) -> Tensor:
        return out * (torch.arange(out.shape[1]) != j)[:, None]

    return zero


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", EDITED)
def test_every_family(name: str, family: str) -> None:
    """Read and edited through the attention interface, wherever padding is: a text alone is a text among others."""
    network, batch = of_transformers(family)
    EXPLAINERS[name].check(network.can)
    together = run(name, network, batch)
    assert together.special is not None
    assert together.passage[~batch.passage.mask].eq(0).all()
    for i in range(len(batch)):
        alone = run(name, network, batch.rows(torch.tensor([i])))
        n = alone.passage.shape[1]
        assert alone.special is not None
        torch.testing.assert_close(together.passage[i, :n], alone.passage[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(together.special[i], alone.special[0], atol=1e-4, rtol=1e-4)
        if name in ("rollout", "value_zeroing"):
            assert float(alone.passage.sum() + alone.special.sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_pairs(name: str) -> None:
    made = transformer_zoo.model("Bert", query=True)
    network, batch = transformer_zoo.network(made), transformer_zoo.batch(made)
    scores = run(name, network, batch)
    assert batch.query is not None
    assert scores.query is not None
    assert scores.query.shape == batch.query.ids.shape
    assert scores.query[~batch.query.mask].eq(0).all()
    assert scores.query[batch.query.mask].gt(0).all()
    alone = run(name, network, batch.rows(torch.tensor([1])))
    assert alone.query is not None
    torch.testing.assert_close(scores.query[1, : alone.query.shape[1]], alone.query[0], atol=1e-5, rtol=1e-4)
