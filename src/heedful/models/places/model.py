"""What `heedful.load` returns of a model that answers at places: texts become examples, one for each question."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.data.prompts import ELSE
from heedful.errors import Mistake, short
from heedful.models.model import Model
from heedful.models.places.network import PlacesNetwork
from heedful.records import AtPlaces, Example


@dataclass(frozen=True, slots=True)
class Told:
    """What a person says of a question; None: what the model says itself."""

    target: str | None = None  # a label
    say: str | None = None  # what stands there: a word, or words of the passage
    instead: str | None = None  # a label, a word, or words of the passage
    word: str | int | None = None  # which word is asked about, as it is written, or its number from 1


@dataclass(frozen=True, slots=True)
class PlacesModel(Model):
    """An answer at a place is a label: each example asks whether the model gives this one, and not others."""

    network: PlacesNetwork

    @abstractmethod
    def ask(self, example: Example, told: Told) -> list[Example]:
        """The questions about one text."""

    def examples(self, texts: Sequence[str], queries: Sequence[str] | None = None) -> tuple[Example, ...]:
        """One question about each text: what the model is surest of."""
        return tuple(self.surest(example) for example in Model.examples(self, texts, queries))

    def surest(self, example: Example) -> Example:
        made = self.ask(example, Told())
        p = torch.cat([self.network(self.encode([one]).batch([0])).probabilities[:, 1] for one in made])
        return replace(made[int(p.argmax())], id=example.id)

    def questions(
        self, texts: Sequence[str], queries: Sequence[str] | None = None, told: Told | None = None
    ) -> list[Example]:
        """All questions about all texts."""
        asked = told or Told()
        return [one for example in Model.examples(self, texts, queries) for one in self.ask(example, asked)]

    @torch.no_grad()
    def logits(self, example: Example) -> Tensor:
        """Of every place of one text: (places, answers)."""
        found: Tensor = self.network.everywhere(self.encode([replace(example, asked=None)]).batch([0]))[0].float()
        if not torch.isfinite(found).all():
            raise Mistake(f"{self.name} gives logits that are not finite for {short(example.passage.text)}.")
        return found

    def refuse(self, told: Told, *names: str, why: str) -> None:
        """What makes no sense for such a model."""
        for name in names:
            if getattr(told, name) is not None:
                raise Mistake(f"{self.name} {why}: leave out {name}.")


def surest(model: Model, examples: Mapping[int, Example]) -> dict[int, Example]:
    """Texts of data as this model reads them, with one question about each. What data say of them is not used."""
    assert isinstance(model, PlacesModel)
    made = {}
    for place, example in examples.items():
        queries = None if example.query is None else [example.query.text]
        (one,) = model.examples([example.passage.text], queries)
        made[place] = replace(one, id=example.id)
    return made


def question(
    example: Example,
    places: Sequence[tuple[str, int]],
    this: Sequence[int],
    that: Sequence[int] | None,
    names: tuple[str | None, str],
    id: str,
) -> Example:
    """An example that asks this; `names` of that and of this."""
    asked = AtPlaces(
        tuple(places),  # type: ignore[arg-type]
        tuple(this),
        None if that is None else tuple(that),
        (names[0] or ELSE, names[1]),
    )
    return replace(example, id=id, asked=asked)
