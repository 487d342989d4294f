"""One forward pass of a module that generates, of which only the places that are asked about reach its output layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Each
from heedful.models.huggingface.forward import Forward, Inputs, undisturbed
from heedful.models.sequence import Side


class PlacesForward(Forward):
    """`at` gives what is read at some places: states before the output layer, or logits."""

    def __init__(self, module: nn.Module, pad: int, with_types: bool) -> None:
        super().__init__(module, pad, with_types)
        found = module.get_output_embeddings() if hasattr(module, "get_output_embeddings") else None  # type: ignore[operator]
        self.head: nn.Module | None = found if isinstance(found, nn.Module) else None
        self._cache: Any = None

    def __call__(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False) -> Tensor:
        """Logits of the token that comes after each sequence: (n, vocabulary)."""
        rows = torch.arange(len(inputs.present), device=inputs.present.device)
        last = inputs.present.sum(1, keepdim=True) - 1  # (n, 1)
        return self.at(inputs, side, rows, last, each, learning=learning)[:, 0]

    def attended(self, inputs: Inputs, side: Side) -> tuple[tuple[Tensor, ...], Tensor]:
        rows = torch.arange(len(inputs.present), device=inputs.present.device)
        last = inputs.present.sum(1, keepdim=True) - 1 + before(inputs.present, side).unsqueeze(1)
        with self._only(rows, last, []):
            output = self.output(inputs, side, output_attentions=True)
        return tuple(output.attentions or ()), self._picked(output, rows, last)[:, 0]

    def output(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False, **more: Any) -> Any:
        if self._cache is not None:
            more = {"past_key_values": self._cache, "use_cache": True, **more}
        return super().output(inputs, side, each, learning, **more)

    @contextmanager
    def after(self, cache: Any) -> Iterator[None]:
        """Meanwhile sequences go on after what a cache of transformers holds, and are put into it."""
        with undisturbed(self.module, self.pad):  # one at a time
            self._cache = cache
            try:
                yield
            finally:
                self._cache = None

    def at(
        self,
        inputs: Inputs,
        side: Side,
        rows: Tensor,
        places: Tensor,
        each: Each | None = None,
        *,
        states: bool = False,
        learning: bool = False,
    ) -> Tensor:
        """What is read at places (m, k) of the sequences `rows` (m,), counted from the first token.

        Logits (m, k, vocabulary); `states`: what the output layer reads there, (m, k, dim).
        """
        places = (places + before(inputs.present, side)[rows].unsqueeze(1)).clamp(min=0)
        seen: list[Tensor] = []
        with self._only(rows, places, seen, stop=states):
            output = self.output(inputs, side, each, learning)
        return seen[-1] if states else self._picked(output, rows, places)

    def _picked(self, output: Any, rows: Tensor, places: Tensor) -> Tensor:
        found = self.logits(output)
        if found.dim() != 3:
            raise Mistake(
                f"{type(self.module).__name__} gives logits of shape {tuple(found.shape)}: a language model gives "
                "(texts, places, vocabulary)."
            )
        return found if self.head is not None else found[rows.unsqueeze(1), places]

    @contextmanager
    def _only(self, rows: Tensor, places: Tensor, seen: list[Tensor], stop: bool = False) -> Iterator[None]:
        """Meanwhile the output layer reads these places alone; `stop`: no more than one of them."""
        if self.head is None:
            yield
            return

        def pick(part: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            picked = given[0][rows.unsqueeze(1), places]  # (m, k, dim)
            seen.append(picked)
            return (picked[:1, :1].detach() if stop else picked, *given[1:])

        with undisturbed(self.module, self.pad):
            handle = self.head.register_forward_pre_hook(pick)
            try:
                yield
            finally:
                handle.remove()


def before(present: Tensor, side: Side) -> Tensor:
    """How many places of padding stand before each sequence: (n,)."""
    return present.shape[1] - present.sum(1) if side == "left" else torch.zeros_like(present[:, 0], dtype=torch.long)
