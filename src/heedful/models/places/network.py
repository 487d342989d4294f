"""A model of transformers that answers at places of a text, as a `Network`: a question about one place has two answers.

Where a question is about is marked on the tokens (`Tokens.places`), so it moves with them when words before it are
deleted, and the logits of an edited text are read where the place is then.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Each
from heedful.models.huggingface.forward import Forward, Inputs
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.probe import Probe
from heedful.models.link import LOG_ODDS, Link
from heedful.models.network import Edit, Output, Reads
from heedful.models.places.readout import answer
from heedful.models.sequence import Side, SpecialTokens, parts, sequences
from heedful.records import Batch, Tokens


class EveryPlace(Forward):
    """`everywhere` gives the logits of all places; asked without a question, those of a text's last token."""

    def __call__(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False) -> Tensor:
        return self._last(self.everywhere(inputs, side, each), inputs, side)

    def everywhere(self, inputs: Inputs, side: Side, each: Each | None = None) -> Tensor:
        """(n, width, outputs); of a model that marks an answer the outputs are its beginning and its end."""
        return self.logits(self.output(inputs, side, each))

    def logits(self, output: Any) -> Tensor:
        starts, ends = getattr(output, "start_logits", None), getattr(output, "end_logits", None)
        found = super().logits(output) if starts is None or ends is None else torch.stack([starts, ends], dim=2)
        if found.dim() != 3:
            raise Mistake(
                f"{type(self.module).__name__} gives logits of shape {tuple(found.shape)}: a model that answers at "
                "places of a text gives (texts, places, answers)."
            )
        return found

    def attended(self, inputs: Inputs, side: Side) -> tuple[tuple[Tensor, ...], Tensor]:
        output = self.output(inputs, side, output_attentions=True)
        return tuple(output.attentions or ()), self._last(self.logits(output), inputs, side)

    def _last(self, logits: Tensor, inputs: Inputs, side: Side) -> Tensor:
        length = inputs.present.sum(1)  # (n,)
        last = length - 1 if side == "right" else torch.full_like(length, logits.shape[1] - 1)
        return logits[torch.arange(len(logits), device=logits.device), last]


class PlacesNetwork(HuggingFaceNetwork):
    """`network(batch)` answers `batch.asked`, log-odds of `this` against `that`."""

    reader = EveryPlace
    forward: EveryPlace

    def __init__(
        self,
        module: nn.Module,
        probe: Probe,
        *,
        frame: SpecialTokens,
        limit: int | None = None,
        types: tuple[int, int] | None = None,
        has_query: bool = False,
    ) -> None:
        super().__init__(
            module, LOG_ODDS, 2, probe, frame=frame, limit=limit, types=types, has_query=has_query, long="refuse"
        )

    @property
    def reads(self) -> Reads:
        return "asked"

    @property
    def can(self) -> frozenset[str]:
        """A word that is shut out of attention keeps the state that its own label is read from."""
        return super().can - {"hides_words"}

    def _check_outputs(self, link: Link, n_labels: int) -> None:
        """One for each answer that a place can have, of which a question makes one."""

    @torch.no_grad()
    def everywhere(self, batch: Batch) -> Tensor:
        """Logits of all places, those of a query after those of the passage: (batch, width, answers)."""
        _, inputs = self._whole(batch)
        if self.abilities.padding is None and len(batch) > 1:
            raise Mistake(f"{self._name} cannot be padded: read one text at a time.")
        return self.forward.everywhere(inputs, self._side)

    def _answer(self, inputs: Inputs, batch: Batch, which: Tensor | None = None, each: Each | None = None) -> Tensor:
        if batch.asked is None:
            return self.forward(inputs, self._side, each)
        logits = self.forward.everywhere(inputs, self._side, each)  # (n, width, answers)
        asked = batch.asked if which is None else batch.asked.rows(which)
        return answer(logits, self._marks(batch, which, logits.shape[1]), asked, self._among(batch, which, logits))

    def _marks(self, batch: Batch, which: Tensor | None, width: int) -> Tensor:
        """The places of each question, where the sequences have them: (n, width)."""
        return self._taken(batch, [_places(part) for part in parts(batch)], which, width)

    def _among(self, batch: Batch, which: Tensor | None, logits: Tensor) -> Tensor | None:
        """Places that an answer can be at, of models whose answers are places."""
        return None

    def _taken(self, batch: Batch, values: list[Tensor], which: Tensor | None, width: int) -> Tensor:
        """Values at the tokens of the parts, at the places of the sequences `which`: (n, width)."""
        found = sequences(batch, side=self._side)
        both = found.take(values[0], values[1] if len(values) > 1 else None) * found.present
        some = both if which is None else both[which]
        return some[:, :width] if self._side == "right" else some[:, some.shape[1] - width :]


class SpansNetwork(PlacesNetwork):
    """A model that marks where in a passage the answer to a question begins and where it ends.

    Such models are trained with the question before the passage; here the passage comes first, as everywhere. So the
    parts change places on the way in, and what is read of attention and states changes them back.
    """

    def __call__(
        self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None, edit: Edit | None = None
    ) -> Output:
        if edit is not None:
            own = edit

            def edit(layer: int, weights: Tensor) -> Tensor:
                seen = _swapped(weights, batch, (-2, -1))
                edited = own(layer, seen)
                return weights if edited is seen else _swapped(edited, turned(batch), (-2, -1))

        return super().__call__(turned(batch), x=x_query, x_query=x, edit=edit)

    @torch.no_grad()
    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        return _swapped(super().attentions(turned(batch), layer), batch, (-2, -1))

    @torch.no_grad()
    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        return _swapped(super().states(turned(batch), edit=edit), batch, (-2,))

    @torch.no_grad()
    def everywhere(self, batch: Batch) -> Tensor:
        return _swapped(super().everywhere(turned(batch)), batch, (1,))

    def _among(self, batch: Batch, which: Tensor | None, logits: Tensor) -> Tensor | None:
        """The words of the passage, which is the second part here, and the first token of all: there is no answer."""
        assert batch.query is not None
        first = torch.zeros_like(batch.passage.present)
        first[:, 0] = ~batch.passage.mask[:, 0]
        words = batch.query.mask.long()
        within = (words.cumsum(1) > 0) & (words.flip(1).cumsum(1).flip(1) > 0)  # with pieces that are blanks alone
        return self._taken(batch, [first.long(), within.long()], which, logits.shape[1]) > 0


def turned(batch: Batch) -> Batch:
    """Passage and query in each other's place."""
    if batch.query is None:
        return batch
    return Batch(batch.query, batch.passage, asked=batch.asked)


def _swapped(values: Tensor, batch: Batch, axes: tuple[int, ...]) -> Tensor:
    """Axes of places on which the query stands before the passage, with the passage before the query."""
    if batch.query is None:
        return values
    p, q = (part.present.sum(1, keepdim=True) for part in (batch.passage, batch.query))  # (batch, 1)
    width = values.shape[axes[0]]
    place = torch.arange(width, device=values.device)  # (width,)
    origin = torch.where(place < p, place + q, torch.where(place < p + q, place - p, place))  # (batch, width)
    for axis in axes:
        shape = [len(values), *[1] * (values.dim() - 1)]
        shape[axis] = width
        values = values.gather(axis, origin.view(shape).expand_as(values))
    return values


def _places(tokens: Tokens) -> Tensor:
    return torch.zeros_like(tokens.ids) if tokens.places is None else tokens.places
