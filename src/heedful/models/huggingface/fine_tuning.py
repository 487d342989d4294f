"""A checkpoint that is to be trained further, and one that was: the module in memory changes, no file of the user's.

`begin` reads a checkpoint for the labels of a corpus. Where it classifies already and knows these labels by name, its
own head is kept, with its outputs in the order of the corpus; otherwise a head is drawn at random from the seed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.corpora.labels import match_labels
from heedful.errors import Mistake
from heedful.models.huggingface.files import read_labels
from heedful.models.huggingface.loading import one_line, read_module, read_tokenizer, wrap
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.text import PieceEncoder
from heedful.models.link import SOFTMAX
from heedful.models.model import Model
from heedful.models.sequence import Long

PROBLEM = "single_label_classification"
MOST_DRAWN = 0.5  # of all weights: with more drawn at random, the files are not those of this kind of model


@dataclass(frozen=True, slots=True)
class Begun:
    """A model before its training, and the names of those of its weights that no file has."""

    model: Model
    drawn: tuple[str, ...]

    @property
    def network(self) -> HuggingFaceNetwork:
        assert isinstance(self.model.network, HuggingFaceNetwork)
        return self.model.network

    @property
    def text(self) -> PieceEncoder:
        assert isinstance(self.model.text, PieceEncoder)
        return self.model.text


def begin(
    folder: Path,
    labels: Sequence[str],
    seed: int,
    *,
    own_labels: Sequence[str] | None = None,
    problem_type: str | None = None,
    query: bool = False,
    long: Long = "windows",
    ignore: Sequence[str] = (),
) -> Begun:
    """In float32, whatever the files are in: steps of 2e-5 are lost in 16 bits.

    `own_labels`: names of the checkpoint's own outputs, in place of those in its configuration.
    """
    module, missing = read_module(folder, torch.float32, ignore=ignore, head=False)
    kept = None if missing else _rows_of(module.config, labels, own_labels, problem_type)
    if kept is None:
        names = dict(enumerate(labels))
        module, missing = read_module(
            folder,
            torch.float32,
            seed,
            ignore=ignore,
            head=False,
            num_labels=len(names),
            id2label=names,
            label2id={name: i for i, name in names.items()},
        )
        _check_drawn(module, missing, folder)
    elif kept != tuple(range(module.config.num_labels)):
        _keep_rows(module, kept)
    module.config.id2label = dict(enumerate(labels))
    module.config.label2id = {name: i for i, name in enumerate(labels)}
    module.config.problem_type = PROBLEM
    model = wrap(module, read_tokenizer(folder), query=query, long=long, name=folder.name)
    return Begun(model, tuple(missing))


def _rows_of(
    config: Any, labels: Sequence[str], own_labels: Sequence[str] | None, problem_type: str | None
) -> tuple[int, ...] | None:
    """Which outputs of a checkpoint's own head are these labels; None where it does not know them."""
    try:
        link, own = read_labels(config, own_labels, problem_type)
        return match_labels(own, labels) if link is SOFTMAX else None
    except Mistake:
        return None


def _keep_rows(module: Any, rows: Sequence[int]) -> None:
    """Let the outputs be those at `rows`, in that order. Whether the last linear layer makes them is then asked."""
    own = [(n, part) for n, part in module.named_modules() if isinstance(part, nn.Linear)]
    name, head = [(n, part) for n, part in own if part.out_features == module.config.num_labels][-1]
    before = _ask(module)
    with torch.no_grad():
        narrow = nn.Linear(head.in_features, len(rows), bias=head.bias is not None)
        narrow.weight.copy_(head.weight[list(rows)])
        if head.bias is not None:
            narrow.bias.copy_(head.bias[list(rows)])
    module.set_submodule(name, narrow)
    module.config.num_labels = module.num_labels = len(rows)
    if not torch.equal(_ask(module), before[:, list(rows)]):
        raise Mistake(
            f"the outputs of {type(module).__name__} cannot be put into the order of the labels of the data: list "
            "these in the model's order with --labels."
        )


@torch.no_grad()
def _ask(module: Any) -> Tensor:
    found: Tensor = module.eval()(input_ids=torch.arange(5, 9).unsqueeze(0)).logits
    return found


def _check_drawn(module: nn.Module, missing: Sequence[str], folder: Path) -> None:
    sizes = {name: parameter.numel() for name, parameter in module.named_parameters()}
    if sum(sizes.get(name, 0) for name in missing) > MOST_DRAWN * sum(sizes.values()):
        raise Mistake(
            f"{folder}: most weights of a {type(module).__name__} are not in its files ({missing[0]!r} and "
            f"{len(missing) - 1} more), so there is nothing to begin with."
        )


def description_files(begun: Begun) -> dict[str, bytes]:
    """What `reopen` needs beside the weights: configuration and tokenizer, as the library writes them."""
    with tempfile.TemporaryDirectory() as folder:
        begun.network.module.config.save_pretrained(folder)
        begun.text.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}


def reopen(folder: Path, weights: Mapping[str, Tensor], *, query: bool = False, long: Long = "windows") -> Model:
    """The model of `description_files` in a folder, with these weights."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.random.fork_rng(devices=[]):
            module = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
        module.load_state_dict(weights)
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        raise Mistake(f"{folder.parent} cannot be read: {one_line(error)}") from None
    return wrap(module.eval(), read_tokenizer(folder), query=query, long=long, name=folder.parent.name)
