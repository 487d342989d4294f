"""The user's module is asked, never changed: what a forward pass needs otherwise is put back, also after an error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from torch import nn

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
def without_traces(module: nn.Module) -> Iterator[None]:
    """Asked for states or attentions, the library hooks itself into a module for good, and notes it there: undone."""
    hooks = (
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
    )
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
