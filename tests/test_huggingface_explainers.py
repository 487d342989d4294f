"""Every explainer and experiment on transformers classifiers: against Captum, and against asking one text at a time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

import heedful
import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.experiments.adversarial.adversarial import AdversarialConfig
from heedful.experiments.adversarial.adversarial import run as run_adversarial
from heedful.experiments.attention.permutation import PermutationConfig, changes
from heedful.experiments.attention.permutation import run as run_permutation
from heedful.experiments.correlation.correlation import CORRELATION
from heedful.experiments.edited_attention.observe import EditedAttention, View, observer
from heedful.explainers import EXPLAINERS
from heedful.explainers.attention.weights import attention
from heedful.explainers.gradients.gradient import gradient, gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.lrp.decomposition import decompose
from heedful.explainers.perturbation.occlusion import mask, occlusion, omission
from heedful.models.huggingface import HuggingFaceNetwork
from heedful.records import Batch, Tokens

each_family = pytest.mark.parametrize("family", list(zoo.FAMILIES))
TARGET = torch.tensor([0, 2, 1])


class ByHand:
    """One text of a batch, its module, and f_c of its embeddings or ids, as anybody would write them."""

    def __init__(self, network: HuggingFaceNetwork, batch: Batch, row: int) -> None:
        tokens = batch.passage
        self.module, self.target = network.module, int(TARGET[row])
        self.ids = tokens.ids[row][tokens.present[row]].unsqueeze(0)  # (1, n)
        self.words = tokens.mask[row][tokens.present[row]]  # (n,)
        assert tokens.word_index is not None
        self.word_index = tokens.word_index[row][tokens.present[row]]
        self.x = network.module.get_input_embeddings()(self.ids).detach()

    def f(self, x: Tensor) -> Tensor:
        every = [self.module(inputs_embeds=one).logits for one in x.unsqueeze(1)]  # some refuse several: no padding
        return torch.cat(every)[:, self.target]

    @torch.no_grad()
    def of_ids(self, ids: Tensor) -> float:
        return float(self.module(input_ids=ids.unsqueeze(0)).logits[0, self.target])


@each_family
def test_special_tokens_have_a_share_of_their_own(family: str) -> None:
    """Words and special tokens together are x . df/dx of the whole text."""
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    products, norms = gradient_x_input(network, batch, TARGET), gradient(network, batch, TARGET)
    assert products.special is not None
    assert norms.special is not None
    for row in range(2):
        hand = ByHand(network, batch, row)
        x = hand.x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(hand.f(x).sum(), x)
        close(products.special[row] + products.passage[row].sum(), (slope * x).sum().detach())
        close(norms.special[row], slope[0][~hand.words].norm(dim=-1).sum())


@each_family
def test_gradients_and_integrated_gradients_are_captums(family: str) -> None:
    from captum.attr import IntegratedGradients, Saliency

    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    norms, products = gradient(network, batch, TARGET), gradient_x_input(network, batch, TARGET)
    ours = integrated_gradients(network, batch, TARGET, n_steps=8)
    for row in range(2):
        hand = ByHand(network, batch, row)
        n = hand.ids.shape[1]
        slope = Saliency(hand.f).attribute(hand.x, abs=False)[0]  # (n, dim)
        close(norms.passage[row, :n], slope.norm(dim=-1) * hand.words)
        close(products.passage[row, :n], (slope * hand.x[0]).sum(-1) * hand.words)
        baseline = hand.x * ~hand.words[:, None]  # special tokens keep their embedding
        theirs = IntegratedGradients(hand.f).attribute(hand.x, baseline, n_steps=8, method="gausslegendre")
        close(ours.passage[row, :n], theirs[0].sum(-1))
        assert (ours.passage[row, n:] == 0).all()


def test_captum_on_pairs() -> None:
    from captum.attr import IntegratedGradients

    made = zoo.model("Bert", query=True)
    network, batch = zoo.network(made), zoo.batch(made)
    assert batch.query is not None
    ours = integrated_gradients(network, batch, TARGET, n_steps=6)
    assert ours.query is not None
    for row, texts in enumerate(zip(zoo.SOME, zoo.QUERIES, strict=True)):
        given = zoo.tokenizer("wordpiece")(*texts, return_tensors="pt")
        x = network.module.get_input_embeddings()(given["input_ids"]).detach()

        def f(x: Tensor, row: int = row, types: Tensor = given["token_type_ids"]) -> Tensor:
            logits: Tensor = network.module(inputs_embeds=x, token_type_ids=types.expand(len(x), -1)).logits
            return logits[:, TARGET[row]]

        words = torch.cat([part.mask[row][part.present[row]] for part in (batch.passage, batch.query)])
        theirs = IntegratedGradients(f).attribute(x, x * ~words[:, None], n_steps=6, method="gausslegendre")
        p, q = int(batch.passage.present[row].sum()), int(batch.query.present[row].sum())
        close(torch.cat([ours.passage[row, :p], ours.query[row, :q]]), theirs[0].sum(-1))


@pytest.mark.parametrize(
    ("family", "baselines"),
    [("Bert", "zero"), ("Roberta", "mask"), ("DebertaV2", "unk"), ("Albert", "pad"), ("Llama", "unk")],
)
def test_completeness(family: str, baselines: Any) -> None:
    """From zero a decoder with RMS norms needs many more steps: x / |x| has no limit there. `gap` tells."""
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    found = integrated_gradients(network, batch, TARGET, baselines=baselines, n_steps=60)
    assert found.gap is not None
    assert found.scale is not None
    assert (found.gap.abs() <= 1e-3 * found.scale + 1e-4).all()
    assert (found.scale > 1e-3).all()


@pytest.mark.parametrize("family", list(zoo.FAMILIES))
def test_one_word_at_a_time(family: str) -> None:
    """omission, mask and occlusion, each word's pieces together, sharing the effect."""
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    deleted = omission(network, batch, TARGET)
    zeroed = occlusion(network, batch, TARGET)
    hidden = 7 if network.reads == "last" else None  # decoders have no mask to replace a word by
    replaced = mask(network, batch, TARGET, token=hidden)
    token = batch.passage.reserved.mask if hidden is None else hidden
    for row in range(2):
        hand = ByHand(network, batch, row)
        with torch.no_grad():
            before = float(hand.f(hand.x))
        ids = hand.ids[0]
        for word in set(hand.word_index[hand.words].tolist()):
            here = hand.word_index == word
            pieces = int(here.sum())
            at = torch.cat([here, torch.zeros(len(batch.passage.ids[row]) - len(here), dtype=torch.bool)])
            rest = before - hand.of_ids(ids[~here]) if len(ids[~here]) else None
            if rest is not None:
                close(deleted.passage[row][at], torch.full((pieces,), rest / pieces))
            hid = before - hand.of_ids(torch.where(here, torch.tensor(token), ids))
            close(replaced.passage[row][at], torch.full((pieces,), hid / pieces))
            with torch.no_grad():
                zero = before - float(hand.f(hand.x.masked_fill(here[:, None], 0.0)))
            close(zeroed.passage[row][at], torch.full((pieces,), zero / pieces))


def test_a_piece_that_is_several_words() -> None:
    """An emoji joined of three is five words to spaCy and one unknown piece: more words than pieces."""
    text = "😀👩\u200d👩\u200d👧 a film"
    made = zoo.model()
    batch = zoo.batch(made, [text])
    assert batch.passage.word_index is not None
    assert int(batch.passage.word_index.max()) >= batch.passage.ids.shape[1]
    network = zoo.network(made)
    found = mask(network, batch, TARGET[:1])
    hand = ByHand(network, batch, 0)
    last = hand.word_index == hand.word_index.max()  # "film"
    hidden = torch.where(last, torch.tensor(batch.passage.reserved.mask), hand.ids[0])
    with torch.no_grad():
        drop = float(hand.f(hand.x)) - hand.of_ids(hidden)
    close(found.passage[0][last], torch.full((int(last.sum()),), drop / int(last.sum())))


def test_a_model_without_a_mask_says_what_to_give() -> None:
    made = zoo.model("GPT2")
    for baselines in ("mask", "pad"):
        with pytest.raises(Mistake, match="no such token"):
            integrated_gradients(zoo.network(made), zoo.batch(made), TARGET, baselines=baselines)
    with pytest.raises(Mistake, match="give token=ID"):
        mask(made.network, zoo.batch(made), TARGET)
    every = {name for name, one in EXPLAINERS.items() if one.needs <= made.network.can} - {"mask"}
    assert len(every) >= 20
    few: dict[str, Any] = {"n_samples": 12, "n_permutations": 1, "n_steps": 2}
    assert set(heedful.explain(made, ["a good film"], ["all"], **few).methods) == every
    assert "mask" in heedful.explain(made, ["a good film"], ["all"], token=7, **few).methods


@each_family
def test_a_batch_of_one_is_a_batch_of_many(family: str) -> None:
    made = zoo.model(family, query=True)
    network, batch = zoo.network(made), zoo.batch(made)
    some: dict[str, dict[str, Any]] = {
        "attention": {},
        "gradient": {},
        "gradient_x_input": {},
        "integrated_gradients": {"n_steps": 3},
        "lrp": {},
        "occlusion": {},
        "omission": {},
    }
    if family in ("Bert", "GPT2"):
        some |= {"random": {}, "uniform": {}, "lime": {"n_samples": 12}, "shap": {"n_permutations": 1}}
    for name, options in some.items():
        run = EXPLAINERS[name].run
        many = run(network, batch, TARGET, **options)
        for row in range(len(batch)):
            alone = batch.rows(torch.tensor([row]))
            one = run(network, alone, TARGET[row : row + 1], **options)
            n = one.passage.shape[1]
            close(many.passage[row, :n], one.passage[0])
            if many.special is not None:
                assert one.special is not None
                close(many.special[row], one.special[0])
            assert not many.passage[row][~batch.passage.mask[row]].any(), name
            if many.query is not None:
                assert one.query is not None
                close(many.query[row, : one.query.shape[1]], one.query[0])


def test_a_head_is_given_once() -> None:
    made = zoo.model()
    for name in ("attention", "attention_x_norm"):
        with pytest.raises(Mistake, match=r"heads \[0, 0\]: give each head once"):
            heedful.explain(made, ["a good film"], [name], heads=[0, 0])


def test_attention_of_layers_heads_and_rows() -> None:
    for family, row in (("Bert", 0), ("GPT2", -1)):
        made = zoo.model(family, query=True)
        network, batch = zoo.network(made), zoo.batch(made)
        weights = network.attentions(batch)
        found = attention(network, batch, TARGET, layer=0, heads=[1, 3])
        assert found.query is not None
        assert found.special is not None
        for i in range(3):
            p, q = int(batch.passage.present[i].sum()), int(batch.query.present[i].sum())  # type: ignore[union-attr]
            whole = weights[i, 0, [1, 3]].mean(0)[: p + q, : p + q][row]
            words = torch.cat([batch.passage.mask[i, :p], batch.query.mask[i, :q]])  # type: ignore[union-attr]
            close(torch.cat([found.passage[i, :p], found.query[i, :q]]), whole * words)
            close(found.special[i], whole[~words].sum())


@pytest.mark.parametrize("family", ["Bert", "Albert", "GPT2", "Qwen2"])
def test_permuted_attention(family: str) -> None:
    """Against permuting the weights of one head of one layer by hand, one permutation at a time."""
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    seen = observer(network, View(layer=1, heads=(2,)))(np.arange(3), batch)
    assert isinstance(seen, EditedAttention)
    found = changes(seen, [np.random.default_rng(i) for i in range(3)], 3)
    assert found.shape == (3, 3)
    for row in range(3):
        alone = batch.rows(torch.tensor([row]))
        at = alone.passage.mask[0].nonzero().squeeze(1)
        places = np.broadcast_to(np.arange(seen.alpha.shape[1]), (3, seen.alpha.shape[1])).copy()
        n = len(at)
        places[:, :n] = np.random.default_rng(row).permuted(places[:, :n], axis=1)
        y = network(alone).probabilities[0].detach()
        for k in range(3):
            source = at[torch.from_numpy(places[k, :n])]

            def edit(layer: int, weights: Tensor, at: Tensor = at, source: Tensor = source) -> Tensor:
                edited = weights.clone()
                if layer == 1:
                    edited[:, 2, :, at] = weights[:, 2][:, :, source]
                return edited

            p = network(alone, edit=edit).probabilities[0].detach()
            assert found[row, k] == pytest.approx(float((p - y).abs().sum() / 2), abs=1e-5)


def test_experiments_run_and_make_sense() -> None:
    made = zoo.model("Bert")
    batches = [(np.arange(3), zoo.batch(made))]
    rows = next(iter(run_permutation(made.network, batches, PermutationConfig(permutations=5), rng())))
    assert (np.asarray(rows["median"]) >= 0).all()
    assert (np.asarray(rows["max"]) >= np.asarray(rows["median"])).all()
    assert np.asarray(rows["max"]).max() > 0
    last = np.asarray(rows["median"])
    first = PermutationConfig(permutations=5, layer=0, heads=(1, 2))
    rows = next(iter(run_permutation(made.network, batches, first, rng())))
    assert not np.allclose(rows["median"], last)  # another layer is another question
    rows = next(iter(run_adversarial(made.network, batches, AdversarialConfig(epsilon=0.05), rng())))
    assert (np.asarray(rows["delta_y"]) <= 0.05 + 1e-6).all()
    assert (np.asarray(rows["jsd"]) <= np.asarray(rows["bound"]) + 1e-9).all()
    assert (np.asarray(rows["jsd"]) <= np.asarray(rows["ceiling"]) + 1e-9).all()
    columns = next(iter(CORRELATION.run(made.network, batches, CORRELATION.config(), rng())))
    assert len(columns["example"]) == 3
    with pytest.raises(Mistake, match=r"permutation needs a model .*edits_attention"):
        next(iter(run_permutation(zoo.model("MPNet").network, batches, PermutationConfig(), rng())))


def test_correlation_where_attention_can_only_be_read() -> None:
    made = zoo.model("MPNet")
    with pytest.raises(Mistake, match=r'set options=\{"gradient_x_input": \{"hold_attention": false\}\}'):
        heedful.run("correlation", made, zoo.SOME)
    found = heedful.run("correlation", made, zoo.SOME, options={"gradient_x_input": {"hold_attention": False}})
    assert found.table.num_rows == 4 * len(zoo.SOME)


@pytest.mark.parametrize("family", [*zoo.FAMILIES, *zoo.OTHERS])
def test_lrp_sums_to_the_logit(family: str) -> None:
    """Words, special tokens, positions and biases: everything is somewhere, for pairs, too."""
    made = zoo.model(family, query=True)
    network, batch = zoo.network(made), zoo.batch(made)
    parts = decompose(network, batch, TARGET)
    with torch.no_grad():
        f = network(batch).score(TARGET)
    close(parts.words + parts.special + parts.positions + parts.biases, f)
    assert (parts.passage.abs().amax(1) > 1e-4).all()  # of some word: their sum can be 0 by chance


@pytest.mark.parametrize("name", ["rollout", "attention_flow", "attention_x_norm", "value_zeroing"])
def test_maps_of_several_layers(name: str) -> None:
    for family in ("Bert", "GPT2"):
        made = zoo.model(family, query=True)
        network, batch = zoo.network(made), zoo.batch(made)
        found = EXPLAINERS[name].run(network, batch, TARGET)
        assert found.query is not None
        for row in range(3):
            alone = EXPLAINERS[name].run(network, batch.rows(torch.tensor([row])), TARGET[row : row + 1])
            close(found.passage[row, : alone.passage.shape[1]], alone.passage[0])
    needs = EXPLAINERS[name].needs
    if "edits_attention" in needs or "mixes_values" in needs:
        with pytest.raises(Mistake, match=name):
            EXPLAINERS[name].check(zoo.model("MPNet").network.can)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), atol=1e-5, rtol=1e-5)


def test_words_of_pieces_are_words_of_the_text() -> None:
    made = zoo.model("Roberta")
    example = made.examples(["naïve café 😀!"])[0]
    tokens: Tokens = made.encode([example]).batch([0]).passage
    assert tokens.word_index is not None
    assert set(tokens.word_index[tokens.mask].tolist()) == set(range(len(example.passage)))


@each_family
def test_the_only_word_can_be_left_out(family: str) -> None:
    """Nothing may be left, where a tokenizer adds no special tokens: the answer is still that of the text alone."""
    model = zoo.model(family)
    alone, among = (
        heedful.explain(model, texts, methods=["omission"])[0].attributions[0].scores["passage"]
        for texts in (["film"], ["film", "a good film of some length"])
    )
    np.testing.assert_allclose(alone, among, atol=1e-6)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize(("family", "said"), [("GPT2", True), ("Bert", False)])
def test_a_text_without_words_is_said_to_be_another_token(family: str, said: bool) -> None:
    """Leave-one-out of an only word, and SHAP's base, rested on a token that nobody was told of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        heedful.explain(zoo.model(family), ["it"], ["omission"])
    assert any("a text without any word is asked about" in str(one.message) for one in told) is said
