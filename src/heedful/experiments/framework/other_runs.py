"""The other runs that an experiment compares with: models that were trained for it, or shared with other experiments.

An experiment names them (`Takes.runs`) by configurations; the engine trains what is missing, and hands them over
as `OtherRun`s. None is loaded before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.config import RunConfig
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.data.text.batching import Ints
    from heedful.models.model import Model
    from heedful.models.network import Network
    from heedful.records import Batch, Example


def require_others(others: Mapping[str, OtherRun], experiment: str) -> None:
    """Refuse a model in memory, and given texts: nobody could train the models that stand beside it."""
    if not others:
        raise Mistake(
            f"{experiment} compares with models trained on the same data: give a run folder "
            "and its data, or a corpus or file, not a model in memory or texts."
        )


@dataclass(frozen=True)
class OtherRun:
    """A finished run beside the one that is asked, with the texts of its own data at the places that are asked about.

    Where its data are the same, so are the texts; where they are edited, they are its edited texts.
    """

    name: str  # of its folder
    config: RunConfig
    performance: Mapping[str, Any]  # scores of its test split, as its folder has them
    load: Callable[[], Model]
    read: Callable[[], Mapping[int, Example]]  # by place

    @cached_property
    def model(self) -> Model:
        return self.load()

    @property
    def network(self) -> Network:
        return self.model.network

    @cached_property
    def _texts(self) -> Mapping[int, Example]:
        return self.read()

    def batch(self, places: Ints) -> Batch:
        """The texts at these places, in that order, as this model reads them."""
        examples = [self._texts[int(place)] for place in places]
        return self.model.encode(examples).batch(np.arange(len(examples)))
