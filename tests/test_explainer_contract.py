"""What every explainer must hold, for every encoder, attention and task."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.config import AttentionName, EncoderName
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS, Explainer, Scores
from heedful.explainers.lrp.relevance import encoder_without_rule
from heedful.explainers.methods import usual, usual_control
from heedful.models import AttentiveClassifier
from heedful.records import Batch
from zoo import ATTENTION_NAMES, ENCODER_NAMES, KINDS, N_LABELS, TaskName, batch, network, row, rows

SURROGATES = ("lime", "shap", "removal_interactions", "shapley_interactions", "archipelago")
FAST = {
    "lime": {"n_samples": 10, "max_samples": 10},
    "shap": {"n_permutations": 1},
    "integrated_gradients": {"n_steps": 8},
    "integrated_hessians": {"n_steps": 4},
    "shapley_interactions": {"n_samples": 10, "max_samples": 10},
}
METHODS = [name for name, explainer in EXPLAINERS.items() if explainer.needs <= AttentiveClassifier.can]
# One axis at a time, then some of all: a method that holds on these has met every layer with every other.
SOME = [
    *((e, "additive", "binary") for e in ENCODER_NAMES),
    *(("bilstm", a, "several") for a in ATTENTION_NAMES if a != "additive"),
    *((e, "additive", t) for e in ("bilstm", "cnn", "average") for t in ("qa", "nli")),
    ("transformer", "dot", "nli"),
]
# Surrogates see only the model's answers: a part of the zoo is enough for them.
EVERYWHERE = [(*kind, name) for kind in KINDS for name in METHODS if name not in SURROGATES or kind in SOME]
# A control asks the model nothing, so nothing can fail in between.
CAN_FAIL = [
    (name, fails) for name in METHODS for fails in (False, True) if not fails or EXPLAINERS[name].kind != "control"
]


def run(name: str, model: AttentiveClassifier, texts: Batch, target: Tensor | None = None) -> Scores:
    target = model(texts).predicted if target is None else target
    return EXPLAINERS[name].run(model, texts, target, **FAST.get(name, {}))


def refuses(name: str, model: AttentiveClassifier, texts: Batch) -> bool:
    """Whether a method refuses a model: lrp may, where it has no rule for the encoder, and then it names both."""
    why = EXPLAINERS[name].why_not(model)
    if not why:
        return False
    encoder = encoder_without_rule(model.encoder)
    assert encoder is not None
    assert f"{name} has no rule for the encoder {encoder.__name__} of this model" in why
    assert name == "lrp"
    with pytest.raises(Mistake, match=re.escape(why)):
        run(name, model, texts)
    return True


def parts(scores: Scores) -> list[Tensor]:
    return [scores.passage] if scores.query is None else [scores.passage, scores.query]


@pytest.mark.parametrize(("encoder", "attention", "task", "name"), EVERYWHERE)
def test_shapes_and_zeros(encoder: EncoderName, attention: AttentionName, task: TaskName, name: str) -> None:
    model, texts = network(encoder, attention, task), batch([5, 1, 3], task)
    if refuses(name, model, texts):
        return
    scores = run(name, model, texts)
    assert scores.passage.shape == texts.passage.ids.shape
    assert scores.passage[~texts.passage.mask].eq(0).all()
    assert scores.passage.isfinite().all()
    assert not scores.passage.requires_grad
    if scores.query is not None:
        assert texts.query is not None
        assert scores.query.shape == texts.query.ids.shape
        assert scores.query[~texts.query.mask].eq(0).all()
        assert scores.query.isfinite().all()
    if not EXPLAINERS[name].signed:
        assert all(part.ge(0).all() for part in parts(scores))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("encoder", "attention", "task"), SOME)
def test_a_text_alone_among_others_or_in_another_order(
    name: str, encoder: EncoderName, attention: AttentionName, task: TaskName
) -> None:
    model, texts = network(encoder, attention, task), batch([4, 1, 6], task)
    if refuses(name, model, texts):
        return
    target = model(texts).predicted
    together = run(name, model, texts, target)
    for i in range(3):
        alone = run(name, model, row(texts, i), target[i : i + 1])
        for many, one in zip(parts(together), parts(alone), strict=True):
            torch.testing.assert_close(many[i, : one.shape[1]], one[0], atol=1e-9, rtol=1e-7)
    order = torch.tensor([2, 0, 1])
    turned = run(name, model, rows(texts, order), target[order])
    for many, other in zip(parts(together), parts(turned), strict=True):
        torch.testing.assert_close(many[order], other, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_again(name: str) -> None:
    model, texts = network(), batch([4, 7])
    for one, two in zip(parts(run(name, model, texts)), parts(run(name, model, texts)), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(("name", "fails"), CAN_FAIL)
@pytest.mark.parametrize("training", [False, True])
def test_nothing_is_changed_or_left_behind(name: str, fails: bool, training: bool) -> None:
    model, texts = network(task="nli").train(training), batch([4, 7], "nli")
    model.embedding.weight.requires_grad_(False)
    target = model(texts).predicted
    before = everything(model, texts)
    if fails:
        broken = replace(texts, passage=replace(texts.passage, mask=texts.passage.mask[:, :2]))
        with pytest.raises(Exception, match=r"."):
            run(name, model, broken, target)
    else:
        run(name, model, texts, target)
    after = everything(model, texts)
    assert before.keys() == after.keys()
    for key, value in before.items():
        found = after[key]
        if isinstance(value, Tensor):
            assert isinstance(found, Tensor)
            assert torch.equal(value, found), key
        else:
            assert value == found, key


@pytest.mark.parametrize("name", [n for n in METHODS if EXPLAINERS[n].kind in ("sensitivity", "saliency")])
@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_what_the_model_provably_ignores_gets_nothing(name: str, encoder: EncoderName) -> None:
    """Sensitivity (Sundararajan et al. 2017, "dummy"): no effect whatever the word, so no score."""
    texts = batch([4, 6], "nli")
    deaf = network(encoder, "additive", "nli")  # to the passage: its context never reaches the output
    if refuses(name, deaf, texts):
        return
    assert deaf.decoder.Wp is not None
    torch.nn.init.zeros_(deaf.decoder.Wp.weight)
    assert run(name, deaf, texts).passage.abs().max() < 1e-9
    blind = network(encoder, "additive", "nli")  # to the query: neither attention nor decoder sees it
    assert blind.decoder.Wq is not None
    torch.nn.init.zeros_(blind.decoder.Wq.weight)
    torch.nn.init.zeros_(blind.attention.W2.weight)  # type: ignore[union-attr, arg-type]
    scores = run(name, blind, texts)
    assert scores.query is None or scores.query.abs().max() < 1e-9
    assert scores.passage.abs().max() > 1e-6


SHIFT_INVARIANT = {"attention", "gradient", "omission", "mask", "lime", "shap", "random", "uniform"} | {
    *("sources", "removal_interactions", "shapley_interactions", "archipelago")
}


@pytest.mark.parametrize("name", [name for name in METHODS if name in EXPLAINERS.places])
@pytest.mark.parametrize("encoder", ["bilstm", "average"])
def test_input_shift(name: str, encoder: EncoderName) -> None:
    """Kindermans et al. 2019: the same model, its inputs moved by a constant that its bias takes back.

    Methods that compare with the zero vector (or multiply by the input) change; the others must not.
    """
    model, texts = network(encoder), batch([5, 8])
    moved = shifted(model, encoder)
    torch.testing.assert_close(model(texts).logits, moved(texts).logits)
    apart = (run(name, model, texts).passage - run(name, moved, texts).passage).abs().max()
    assert (apart < 1e-9) == (name in SHIFT_INVARIANT)


@pytest.mark.parametrize("explainer", EXPLAINERS.values(), ids=lambda e: str(e.name))
def test_every_explainer_declares_itself(explainer: Explainer) -> None:
    assert EXPLAINERS[explainer.name] is explainer
    assert explainer.run.__doc__
    assert explainer.cost
    if explainer.run.__module__.startswith("heedful."):  # those of other packages may leave this out
        assert explainer.citation
        assert explainer.passes is not None
    assert [option.name for option in explainer.describe() if not option.help] == []
    assert explainer.parse({}) == {}
    assert "target" not in explainer.options
    assert explainer.axiom is None or "{missed}" in explainer.axiom.sentence


def test_what_explainers_declare_tells_the_usual_from_the_slow_and_the_rest() -> None:
    assert usual() == [
        *("attention", "gradient", "gradient_x_input", "integrated_gradients", "lrp", "occlusion", "omission"),
        "rationale",
    ]
    assert [name for name, one in EXPLAINERS.items() if one.slow] == [
        *("attention_flow", "lime", "shap", "sources"),
        *("integrated_hessians", "removal_interactions", "shapley_interactions", "archipelago"),
    ]
    assert [name for name, one in EXPLAINERS.items() if one.is_control] == ["random", "uniform"]
    assert usual_control().name == "random"
    assert [name for name, one in EXPLAINERS.items() if one.in_layers] == [
        *("rollout", "attention_flow", "attention_x_norm", "value_zeroing")
    ]
    labels = [one.label for one in EXPLAINERS.values()]
    assert len(set(labels)) == len(labels)


def test_what_explainers_declare_is_read_without_torch() -> None:
    code = (
        "import sys; from heedful.registry import EXPLAINERS; from heedful.figures.figure import method_name\n"
        "assert all(one.citation and method_name(one.name) == one.label for one in EXPLAINERS.values())\n"
        "print({'torch', 'pandas', 'scipy.stats'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "set()", done.stderr


def test_the_page_of_explainers_is_what_they_declare() -> None:
    command = [sys.executable, str(Path(__file__).parents[1] / "checks" / "explainer_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", METHODS)
def test_the_target_decides_what_is_explained(name: str) -> None:
    model, texts = network(task="several"), batch([6, 6], "several")
    first, second = (run(name, model, texts, torch.full((2,), c)).passage for c in (0, 1))
    depends = EXPLAINERS[name].kind in ("sensitivity", "saliency", "interaction")
    assert torch.equal(first, second) != depends
    assert N_LABELS["several"] > 2


def everything(model: AttentiveClassifier, texts: Batch) -> dict[str, object]:
    """All that a careless method could change."""
    assert texts.query is not None
    state: dict[str, object] = {f"weight {n}": p.detach().clone() for n, p in model.named_parameters()}
    state |= {f"grad {n}": p.grad is None for n, p in model.named_parameters()}
    state |= {f"requires_grad {n}": p.requires_grad for n, p in model.named_parameters()}
    state |= {f"training {n}": m.training for n, m in model.named_modules()}
    state |= {
        f"hooks {n}": (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
        for n, m in model.named_modules()
    }
    for name, tokens in (("passage", texts.passage), ("query", texts.query)):
        state |= {f"{name} {field}": getattr(tokens, field).clone() for field in ("ids", "present", "mask")}
    state["rng"] = torch.random.get_rng_state()
    state["cudnn"] = torch.backends.cudnn.enabled
    state["grad mode"] = torch.is_grad_enabled()
    state["threads"] = torch.get_num_threads()
    return state


def shifted(model: AttentiveClassifier, encoder: EncoderName) -> AttentiveClassifier:
    """f'(x + m) = f(x): embeddings moved by m, and the first layer's bias made to take it back."""
    moved = network(encoder)
    m = torch.linspace(-1, 2, model.embedding.embedding_dim, dtype=torch.float64)
    with torch.no_grad():
        moved.embedding.weight += m
        if encoder == "average":
            moved.encoder.linear.bias -= moved.encoder.linear.weight @ m  # type: ignore[union-attr, operator]
        else:
            for lstm in (moved.encoder.forwards, moved.encoder.backwards):
                lstm.bias_ih_l0 -= lstm.weight_ih_l0 @ m  # type: ignore[union-attr, operator]
    return moved
