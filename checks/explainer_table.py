"""Write docs/explainers.md: what each explainer declares, and what Kindermans' input-shift test says of it.

python checks/explainer_table.py > docs/explainers.md
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from heedful.config import EncoderName, ModelConfig
from heedful.data.text.vocabulary import END, PAD, START
from heedful.explainers import EXPLAINERS
from heedful.models import build
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.records import Batch, Tokens

WORDS, LENGTHS = 50, (5, 8)
QUICK: dict[str, dict[str, Any]] = {
    "lime": {"n_samples": 10, "max_samples": 10},
    "shap": {"n_permutations": 1},
    "integrated_gradients": {"n_steps": 8},
}
CITATIONS = {
    "attention": "the model's own weights",
    "rollout": "Abnar & Zuidema 2020, eq. 1",
    "attention_flow": "Abnar & Zuidema 2020, section 3",
    "attention_x_norm": "Kobayashi et al. 2020, section 3",
    "value_zeroing": "Mohebbi et al. 2023",
    "gradient": "Bastings & Filippova 2020, eq. 2; Li et al. 2016a",
    "gradient_x_input": "eq. 3; Denil et al. 2015",
    "integrated_gradients": "eq. 4; Sundararajan et al. 2017",
    "lrp": "Bach et al. 2015; Arras et al. 2017; Ali et al. 2022 (lrp.md)",
    "occlusion": "eq. 5; Zeiler & Fergus 2014; Li et al. 2016b",
    "omission": "Kádár et al. 2017; leave-one-out of Jain & Wallace 2019",
    "mask": "the word replaced",
    "lime": "Ribeiro et al. 2016",
    "shap": "Lundberg & Lee 2017",
    "random": "control",
    "uniform": "control",
}

HEAD = """# Explainers

`heedful explain MODEL TEXT -m METHOD`, or `heedful.explain(model, texts, methods=[...])`. This page is written by
`python checks/explainer_table.py > docs/explainers.md`.

*Attention* says where the model looked at one point of its computation. *Sensitivity* says how much a change of
the input would change the output. *Saliency* says how much the word that is there contributed to the output
(Bastings & Filippova 2020, section 3.1). They answer different questions, so each score carries its kind.

`target` is the predicted label unless one is given. `of="logit"` (the default) or `"probability"` chooses what is
explained; with two labels there is one logit z, and f_1 = z, f_0 = -z. Questions and hypotheses are explained,
too (`parts`: passage, query or both), except by attention, which is over the passage.

| method | kind | signed | needs | cost for n words | absent means | checked on every call | input shift | source |
|---|---|---|---|---|---|---|---|---|"""

TAIL = """
*Input shift* (Kindermans et al. 2019): the inputs of a model are moved by a constant which the first layer's bias
takes back, so the model computes the same function of the words. A method whose scores change depends on where
zero happens to be. Measured here as the largest change of a score on two random texts, on a BiLSTM and on an
average encoder, relative to the largest score; `yes` means unchanged on both, `-` that the method has no use for
models of one layer.

*Needs* are what a model must be able to do, by the names of `models/network.py`; a model that lacks one is refused by
name, and says what it can.

## Attention in several layers and heads

`attention`, `rollout`, `attention_flow`, `attention_x_norm` and `value_zeroing` see a token from one row (`row`: the
first, the last, or the mean over all; not given: where the model's classifier reads) of one `layer` (the last), over
some `heads` (all). What falls to special tokens is no word's, and is told apart (`Scores.special`).

- `rollout`: A'_l ... A'_1 with A' = (A + I) / 2, the heads averaged. Sums to 1 over all tokens.
- `attention_flow`: the maximum flow from each token through pipes that hold A'. Each is a number of its own, and they
  do not sum to 1. One maximum flow (SciPy, whole numbers: capacities are rounded to 2^-29) for each of n tokens, over
  n^2 pipes a layer, so texts with more than `max_tokens` (128) tokens are refused.
- `attention_x_norm`: ||sum_h α^h_ij f^h(x_j)||, f^h(x) = (x W_V + b_V) W_O of head h. f^h(x_j) is asked for, not taken
  from model code: with the weights of head h set to the identity and all others to 0, the attention's output at place
  j is f^h(x_j) + b_O. A layer that puts anything between attention and output projection is refused.
- `value_zeroing`: the cosine distance between a token's state after the layer and what it is when the value of token j
  is zero, rows normalised to sum 1. A value of zero is a column of weights that is zero and not normalised again; the
  tests set values to zero inside BERT, Llama and OPT and find the same. Where a model gives its last state only after a
  final norm (Llama, ModernBERT), that norm is part of the last layer.

## The variants of Jain & Wallace

Options, not copies: their "gradient" is `gradient_x_input` with `of="probability", hold_attention=True,
absolute=True` (the indicator in their Algorithm 1 makes it gradient x one-hot input, and the graph is cut at the
attention); their leave-one-out is `omission` with `change="tvd"`.

## Li et al. 2016: importance over a corpus

`heedful.explainers.perturbation.corpus_view` gives the mean effect of erasing a word over all its occurrences,
and of erasing a dimension of the embeddings.

## Options named as in Captum

`target`, `baselines`, `n_steps`, `method`, `internal_batch_size`; `n_samples` for LIME. An option goes to every
method that takes it, and one that none takes is a mistake.
"""


def shift(name: str) -> str:
    if not EXPLAINERS[name].needs <= AttentiveClassifier.can:
        return "-"
    worst = 0.0
    encoders: tuple[EncoderName, ...] = ("bilstm", "average")
    for encoder in encoders:
        config = ModelConfig(encoder=encoder, embedding_dim=6, hidden_dim=8)
        model = build(config, WORDS, 2, False, 0).double().eval()
        here, there = (scores(name, each) for each in (model, moved(model, encoder)))
        worst = max(worst, float((here - there).abs().max() / here.abs().max()))
    return "yes" if worst < 1e-9 else f"no ({worst:.0%})"


def scores(name: str, model: AttentiveClassifier) -> Tensor:
    """Of two texts of random words, each between its markers."""
    place, length = torch.arange(max(LENGTHS) + 2), torch.tensor(LENGTHS).unsqueeze(1)
    present, mask = place < length + 2, (place > 0) & (place <= length)
    ids = torch.randint(4, WORDS, present.shape, generator=torch.Generator().manual_seed(0))
    ids = ids.masked_fill(place == length + 1, END).masked_fill(place == 0, START).masked_fill(~present, PAD)
    texts = Batch(Tokens(ids, present, mask))
    return EXPLAINERS[name].run(model, texts, model(texts).predicted, **QUICK.get(name, {})).passage


def moved(model: AttentiveClassifier, encoder: EncoderName) -> AttentiveClassifier:
    """f'(x + m) = f(x): embeddings moved by m, and the first layer's bias made to take it back."""
    other = deepcopy(model)
    layers: Any = other.encoder
    m = torch.linspace(-1, 2, model.embedding.embedding_dim, dtype=torch.float64)
    with torch.no_grad():
        other.embedding.weight += m
        if encoder == "average":
            layers.linear.bias -= layers.linear.weight @ m
        else:
            for lstm in (layers.forwards, layers.backwards):
                lstm.bias_ih_l0 -= lstm.weight_ih_l0 @ m
    return other


def main() -> None:
    print(HEAD)
    for name, explainer in EXPLAINERS.items():
        axiom = explainer.axiom.name if explainer.axiom else "-"
        cells = (
            *(f"`{name}`", explainer.kind, "yes" if explainer.signed else "no"),
            *(", ".join(sorted(explainer.needs)), explainer.cost),
            *(explainer.removal or "-", axiom, shift(name), CITATIONS[name]),
        )
        print("| " + " | ".join(cells) + " |")
    print(TAIL, end="")


if __name__ == "__main__":
    main()
