"""The attention of a transformers model, read and replaced through the library's attention interface.

    with attention_calls(module, each):     # each(call) -> (output, weights), for every layer in turn
        module(...)

Whatever stands in the model's own file as `eager_attention_forward` computes the weights, so nothing of it is copied,
and with nothing replaced the logits are to the last bit those of `attn_implementation="eager"`. The mask function
must be registered, too: without it the library would hand over no mask, and padding would be attended to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from heedful.models.network import Edit

NAME = "heedful"
Attended = tuple[Tensor, Tensor]  # output (batch, to, heads, head dim), weights (batch, heads, to, from)


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One layer's call of its attention function."""

    layer: int  # counted by calls: layers can share one module, and some do not know their number
    module: nn.Module
    query: Tensor  # (batch, heads, to, head dim)
    key: Tensor  # (batch, heads of keys, from, head dim)
    value: Tensor  # (batch, heads of keys, from, head dim)
    mask: Tensor | None  # added to the scores
    options: dict[str, Any]

    @cached_property
    def own(self) -> Attended:
        """What the model itself would do."""
        eager = sys.modules[type(self.module).__module__].eager_attention_forward
        output, weights = eager(self.module, self.query, self.key, self.value, self.mask, **self.options)
        return output, weights

    def mix(self, weights: Tensor, value: Tensor | None = None) -> Tensor:
        """Values mixed by other weights (batch, heads, to, from): (batch, to, heads, head dim)."""
        value = self.value if value is None else value
        groups = weights.shape[1] // value.shape[1]  # of heads that share keys and values
        if groups > 1:
            value = value.repeat_interleave(groups, dim=1)
        return (weights.to(value.dtype) @ value).transpose(1, 2).contiguous()


Each = Callable[[AttentionCall], Attended]


@dataclass
class _Current:
    """Who listens. Forward passes of networks take turns (undisturbed.py), so there is one at a time."""

    each: Each | None = None
    layer: int = field(default=0)


_current = _Current()


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> Attended:
    if attention_mask is not None and attention_mask.dtype == torch.float64:
        # many models take the softmax in float32, where the least float64 is -inf: a row of padding, all of it masked,
        # would become NaN, and the layers above would spread it
        attention_mask = attention_mask.clamp(min=torch.finfo(torch.float32).min)
    call = AttentionCall(_current.layer, module, query, key, value, attention_mask, options)
    _current.layer += 1
    return call.own if _current.each is None else _current.each(call)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def attention_calls(module: nn.Module, each: Each) -> Iterator[None]:
    """For the time of one forward pass every layer's attention goes through `each`."""
    configs = list({id(c): c for c in _configs(module)}.values())
    before = [config._attn_implementation_internal for config in configs]
    listener = _current.each, _current.layer
    try:
        for config in configs:
            config._attn_implementation_internal = NAME
        _current.each, _current.layer = each, 0
        yield
    finally:
        _current.each, _current.layer = listener
        for config, implementation in zip(configs, before, strict=True):
            config._attn_implementation_internal = implementation


def _configs(module: nn.Module) -> Iterator[Any]:
    """The configuration of every part that has one, and what is nested in it."""
    waiting = [part.config for part in module.modules() if hasattr(part, "config")]
    while waiting:
        config = waiting.pop()
        if hasattr(config, "_attn_implementation_internal"):
            yield config
            nested = [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
            waiting += [each for each in nested if each is not None]


def keeping(seen: list[Tensor]) -> Each:
    """Every layer's weights into `seen`, before dropout: after it they would not sum to 1."""

    def each(call: AttentionCall) -> Attended:
        rate = float(call.options.get("dropout") or 0.0)
        if not (rate and call.module.training):
            output, weights = call.own
        else:
            _, weights = replace(call, options={**call.options, "dropout": 0.0}).own
            output = call.mix(functional.dropout(weights, rate))
        seen.append(weights)
        return output, weights

    return each


def editing(edit: Edit) -> Each:
    """Weights as `edit(layer, weights)` gives them; where it gives back the same tensor, nothing is replaced."""

    def each(call: AttentionCall) -> Attended:
        output, weights = call.own
        edited = edit(call.layer, weights)
        return (output, weights) if edited is weights else (call.mix(edited), edited)

    return each
