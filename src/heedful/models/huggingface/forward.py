"""One forward pass of somebody's module: what is handed over, and what comes back."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.text.batching import cut
from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Each, attention_calls
from heedful.models.sequence import Side

NO_TOKEN = -1  # of models that know no padding: no token of a text is taken for it, whatever its number


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """n sequences: their embeddings, or their ids where a module takes no embeddings."""

    present: Tensor  # (n, width) bool
    types: Tensor  # (n, width) long: which text a token belongs to, as the tokenizer numbers them
    x: Tensor | None = None  # (n, width, dim)
    ids: Tensor | None = None  # (n, width)
    attended: Tensor | None = None  # (n, width) bool: what may be attended to; None: all that is present

    def rows(self, which: Tensor, width: int, side: Side) -> Inputs:
        """Some sequences, cut to a width that holds them."""

        def some(part: Tensor) -> Tensor:
            return part[which, :width] if side == "right" else part[which, part.shape[1] - width :]

        x, ids, attended = (None if part is None else some(part) for part in (self.x, self.ids, self.attended))
        return Inputs(some(self.present), some(self.types), x, ids, attended)


class Forward:
    """Calls a module with what its `forward` takes."""

    def __init__(self, module: nn.Module, pad: int, with_types: bool) -> None:
        self.module, self.pad = module, pad
        takes = inspect.signature(module.forward).parameters
        self.takes = frozenset(takes)
        free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values())
        if missing := [] if free else sorted({"input_ids", "attention_mask"} - self.takes):
            raise Mistake(
                f"{type(module).__name__}.forward takes no {missing[0]}: it must take input_ids and attention_mask, "
                "and give logits (texts, labels)."
            )
        self.with_types = with_types and "token_type_ids" in takes
        # BigBird's sparse attention: the width of a batch decides which attention is used, and switches it for good
        self.by_length = [part for part in module.modules() if getattr(part, "attention_type", "") == "block_sparse"]

    def __call__(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False) -> Tensor:
        """Logits (n, outputs). `each`: what is done about the attention of every layer."""
        return self.logits(self.output(inputs, side, each, learning))

    def logits(self, output: Any) -> Tensor:
        found = getattr(output, "logits", output[0] if isinstance(output, tuple) and output else output)
        if not isinstance(found, Tensor):
            raise Mistake(f"{type(self.module).__name__} gives no logits, but {type(output).__name__}.")
        return found

    def attentions(self, inputs: Inputs, side: Side) -> tuple[Tensor, ...]:
        """What the module itself says its weights were, (n, heads, to, from) of each layer."""
        return self.attended(inputs, side)[0]

    def attended(self, inputs: Inputs, side: Side) -> tuple[tuple[Tensor, ...], Tensor]:
        """Those weights, and the logits (n, outputs) of the pass that told them."""
        output = self.output(inputs, side, output_attentions=True)
        return tuple(output.attentions or ()), self.logits(output)

    def output(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False, **more: Any) -> Any:
        attended = inputs.present if inputs.attended is None else inputs.attended
        given: dict[str, Any] = {"attention_mask": attended.long(), **more}
        if inputs.x is not None:
            given["inputs_embeds"] = inputs.x
        else:
            given["input_ids"] = inputs.ids
        if self.with_types:
            given["token_type_ids"] = inputs.types
        if side == "left" and "position_ids" in self.takes:
            given["position_ids"] = (inputs.present.long().cumsum(1) - 1).clamp(min=0)
        if "use_cache" in self.takes:
            given.setdefault("use_cache", False)
        listening: AbstractContextManager[None] = nullcontext() if each is None else attention_calls(self.module, each)
        told = any(name.startswith("output_") for name in more)
        tidy: AbstractContextManager[None] = without_traces(self.module) if told else nullcontext()
        with undisturbed(self.module, self.pad, learning), as_they_were(self.by_length), tidy, listening:
            return self.module(**given)


def by_length(inputs: Inputs, side: Side, tokens: int | None = None) -> list[tuple[Tensor, Inputs]]:
    """Sequences of one length together; with `tokens`, of like length, at most so many tokens with their padding."""
    lengths = inputs.present.sum(1)  # (n,)
    if tokens is None:
        groups = [(lengths == n).nonzero().squeeze(1) for n in torch.unique(lengths).tolist()]
    else:
        found = cut(lengths.cpu().numpy(), len(lengths), token_budget=tokens)
        groups = [torch.from_numpy(which).to(lengths.device) for which in found]
    return [(which, inputs.rows(which, int(lengths[which].max()), side)) for which in groups]


# The user's module is asked, never changed: what a forward pass needs otherwise is put back, also after an error.


TURN = RLock()  # modes and configurations belong to the module, and two networks can share one: one at a time
_NOISE = "will not detect padding tokens"  # a warning about padding on the right; ours is on the left then


@contextmanager
def undisturbed(module: nn.Module, pad: int, learning: bool = False) -> Iterator[None]:
    """Without dropout inside, and without gradients of parameters: they would only cost memory.

    `pad`: for models that refuse several texts at once when they know no padding. `learning`: this is a step of the
    training of the module, so modes and gradients stay as they are.
    """
    with TURN:
        training = [part for part in module.modules() if part.training and not learning]
        learnt = [p for p in module.parameters() if p.requires_grad and not learning]
        config = _text_config(module)
        without_pad = config is not None and getattr(config, "pad_token_id", pad) is None
        logger = logging.getLogger("transformers")
        try:
            if not learning:
                module.eval()
            for parameter in learnt:
                parameter.requires_grad_(False)
            if without_pad:
                config.pad_token_id = pad
            with _quiet(logger):
                yield
        finally:
            for part in training:
                part.training = True
            for parameter in learnt:
                parameter.requires_grad_(True)
            if without_pad:
                config.pad_token_id = None


@contextmanager
def as_they_were(parts: Sequence[nn.Module]) -> Iterator[None]:
    """Parts that exchange their attention for another kind where a batch is narrow get back what they had."""
    before = [(part, vars(part)["attention_type"], dict(part._modules)) for part in parts]
    try:
        yield
    finally:
        for part, kind, children in before:
            part.attention_type = kind
            part._modules.update(children)


@contextmanager
def without_traces(module: nn.Module) -> Iterator[None]:
    """Asked for states or attentions, the library hooks itself into a module for good, and notes it there: undone."""
    hooks = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks")
    before = [(part, set(vars(part)), [set(vars(part)[name]) for name in hooks]) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, hooked in before:
            for name, known in zip(hooks, hooked, strict=True):
                for key in set(vars(part)[name]) - known:
                    del vars(part)[name][key]
            for name in set(vars(part)) - attributes:
                delattr(part, name)


def _text_config(module: nn.Module) -> Any:
    config: Any = getattr(module, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    def keep(record: logging.LogRecord) -> bool:
        return _NOISE not in record.getMessage()

    for handler in logger.handlers:
        handler.addFilter(keep)
    try:
        yield
    finally:
        for handler in logger.handlers:
            handler.removeFilter(keep)


def turned(values: Tensor, shift: Tensor | None, sign: int, axis: int) -> Tensor:
    """An axis of places of (batch, ...), each text moved forwards by its `shift`, or back."""
    if shift is None:
        return values
    width = values.shape[axis]
    place = (torch.arange(width, device=values.device) + sign * shift.unsqueeze(1)) % width  # (batch, width)
    shape = [len(values), *[1] * (values.dim() - 1)]
    shape[axis] = width
    return values.gather(axis, place.view(shape).expand_as(values))
