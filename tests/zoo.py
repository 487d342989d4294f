"""Small random models and batches of every kind, for tests that must hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from heedful.config import AttentionName, EncoderName, ModelConfig, RunConfig
from heedful.data.text.vocabulary import END, PAD, START
from heedful.experiments import Experiment
from heedful.experiments.framework.parts import no_runs
from heedful.models import ATTENTIONS, ENCODERS, AttentiveClassifier, build
from heedful.models.link import LOG_ODDS, SOFTMAX, Of
from heedful.records import Batch, Tokens

TaskName = Literal["binary", "several", "qa", "nli"]
ENCODER_NAMES: tuple[EncoderName, ...] = tuple(ENCODERS)
ATTENTION_NAMES: tuple[AttentionName, ...] = tuple(ATTENTIONS)
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
PLAIN: tuple[AttentionName, ...] = ("additive", "dot", "general", "uniform")
# Every encoder with every attention, each of both with every task: tasks take turns. A BiLSTM, through whose structure
# most is computed in a way of its own, has its plain attentions with all tasks.
KINDS = tuple(
    dict.fromkeys(
        [
            *(
                (encoder, attention, TASK_NAMES[(i + j) % len(TASK_NAMES)])
                for i, encoder in enumerate(ENCODER_NAMES)
                for j, attention in enumerate(ATTENTION_NAMES)
            ),
            *product(("bilstm",), PLAIN, TASK_NAMES),
        ]
    )
)
N_WORDS = 50
N_LABELS: dict[TaskName, int] = {"binary": 2, "several": 4, "qa": 5, "nli": 3}


def network(
    encoder: EncoderName = "bilstm",
    attention: AttentionName = "additive",
    task: TaskName = "binary",
    seed: int = 0,
    activation: Literal["relu", "tanh"] = "relu",
) -> AttentiveClassifier:
    dim = 8 if encoder == "none" else 6  # without an encoder states are embeddings
    config = ModelConfig(encoder=encoder, attention=attention, embedding_dim=dim, hidden_dim=8, activation=activation)
    has_query = task in ("qa", "nli")
    made = build(config, N_WORDS, N_LABELS[task], has_query, seed).double().eval()
    if attention.endswith(("sparsemax", "entmax")):  # scores so far apart that words without weight are met
        with torch.no_grad():
            for parameter in made.attention.parameters():
                parameter.mul_(40 if attention.startswith("dot") else 4)
    return made


class OtherRun:
    """Stands for a finished run beside the one that is asked: another network on the same texts."""

    def __init__(self, whole: Batch, model: AttentiveClassifier, config: RunConfig) -> None:
        self.name, self.config, self.network, self.whole = "other", config, model, whole
        self.performance = {"accuracy": 0.5}

    def batch(self, places: Any) -> Batch:
        return self.whole.rows(torch.as_tensor([int(place) for place in places]))


def beside(
    experiment: Experiment, config: Any, whole: Batch, task: TaskName = "binary", dtype: torch.dtype = torch.double
) -> dict[str, Any]:
    """What `experiment.run` is given beside the texts: the runs that it compares with, as networks with other seeds."""
    if experiment.takes.runs is no_runs:
        return {}
    named = experiment.takes.runs(config, RunConfig(dataset="zoo"))
    made = {name: network(task=task, seed=i).to(dtype) for i, name in enumerate(named, start=1)}
    return {"others": {name: OtherRun(whole, made[name], named[name]) for name in named}}


def tokens(lengths: list[int], seed: int = 0) -> Tokens:
    """Texts of so many words, each between its markers, padded to the longest."""
    generator = torch.Generator().manual_seed(seed)
    n = torch.tensor(lengths).unsqueeze(1) + 2  # (batch, 1)
    place = torch.arange(int(n.max()))  # (length,)
    present = place < n  # (batch, length)
    mask = (place > 0) & (place < n - 1)
    ids = torch.randint(4, N_WORDS, present.shape, generator=generator)
    ids = ids.masked_fill(place == n - 1, END).masked_fill(place == 0, START).masked_fill(~present, PAD)
    return Tokens(ids, present, mask)


def batch(lengths: list[int], task: TaskName = "binary", seed: int = 0) -> Batch:
    """Every third word is evidence, from the second or third on: short texts have none. Sentences have four."""
    made = _batch(lengths, task, seed)
    place = torch.arange(made.passage.ids.shape[1])
    first = 2 + torch.tensor(lengths).unsqueeze(1) % 2
    evidence = made.passage.mask & (place >= first) & ((place - first) % 3 == 0)
    begins = made.passage.mask & ((place - 1) % 4 == 0)
    return replace(made, targets={"evidence": evidence, "sentence_begins": begins})


def _batch(lengths: list[int], task: TaskName, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed + 1)
    labels = torch.randint(0, N_LABELS[task], (len(lengths),), generator=generator)
    if task not in ("qa", "nli"):
        return Batch(tokens(lengths, seed), labels=labels)
    query = tokens([1 + (7 * n + seed) % 4 for n in lengths], seed + 2)
    candidates = None
    if task == "qa":
        candidates = torch.rand((len(lengths), N_LABELS[task]), generator=generator) < 0.7
        candidates[torch.arange(len(lengths)), labels] = True
    return Batch(tokens(lengths, seed), query, candidates, labels)


def row(whole: Batch, i: int) -> Batch:
    """Text i of a batch, alone and without padding."""
    return Batch(
        _row(whole.passage, i),
        None if whole.query is None else _row(whole.query, i),
        None if whole.candidates is None else whole.candidates[i : i + 1],
        None if whole.labels is None else whole.labels[i : i + 1],
        {name: values[i : i + 1, : int(whole.passage.present[i].sum())] for name, values in whole.targets.items()},
    )


def rows(whole: Batch, which: list[int] | Tensor) -> Batch:
    """Some texts of a batch in that order, with the padding that they had."""

    def some(texts: Tokens) -> Tokens:
        return Tokens(texts.ids[which], texts.present[which], texts.mask[which])

    return Batch(
        some(whole.passage),
        None if whole.query is None else some(whole.query),
        None if whole.candidates is None else whole.candidates[which],
        None if whole.labels is None else whole.labels[which],
        {name: values[which] for name, values in whole.targets.items()},
    )


def _row(texts: Tokens, i: int) -> Tokens:
    n = int(texts.present[i].sum())
    return Tokens(texts.ids[i : i + 1, :n], texts.present[i : i + 1, :n], texts.mask[i : i + 1, :n])


def probabilities(logits: Tensor) -> Tensor:
    """Of the models here: one logit means two labels."""
    return (LOG_ODDS if logits.shape[-1] == 1 else SOFTMAX).probabilities(logits)


def score(logits: Tensor, target: Tensor, of: Of = "logit") -> Tensor:
    return (LOG_ODDS if logits.shape[-1] == 1 else SOFTMAX).score(logits, target, of)


def without(texts: Tokens, t: int) -> Tokens:
    """The same texts, position t deleted from each."""
    kept = torch.arange(texts.ids.shape[1]) != t
    return Tokens(texts.ids[:, kept], texts.present[:, kept], texts.mask[:, kept])
