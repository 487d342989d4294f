"""Prompts whose answer stands in one sentence of a context: a planted fact among others of its kind.

    Ada lives in Oslo. Boris works as a baker. Carla lives in Lima. ... Question: where does Carla live?
    Answer: Carla lives in                                            -> Lima, and not Oslo

Of the sentence that answers every word is evidence. Among the others are facts of the same kind about other people,
one of which is what could be said instead, and other facts about the same person, so that neither the kind nor the name
alone gives the answer away. A fact can stand in two sentences, in other words: then each alone is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.data.formats.rows import Ledger, Raw, Spans
from heedful.data.prompts import SAID
from heedful.records import Saying

PEOPLE = (
    *("Maria", "Peter", "Anna", "David", "Laura", "Simon", "Julia", "Martin", "Clara", "Oscar", "Emma", "Victor"),
    *("Nina", "Felix", "Sarah", "Daniel", "Alice", "Henry", "Sophie", "George"),
)


@dataclass(frozen=True, slots=True)
class FactKind:
    """How a fact is said, in two ways, how it is asked for, and what it can be."""

    says: str
    again: str
    question: str
    begins: str
    values: tuple[str, ...]


KINDS = (
    FactKind(
        "{name} lives in {value}.",
        "The home of {name} is in {value}.",
        "Where does {name} live?",
        "{name} lives in",
        ("Paris", "London", "Rome", "Berlin", "Madrid", "Vienna", "Dublin", "Tokyo", "Boston", "Chicago"),
    ),
    FactKind(
        "{name} works as a {value}.",
        "By profession {name} is a {value}.",
        "What is the job of {name}?",
        "{name} works as a",
        ("baker", "teacher", "lawyer", "farmer", "painter", "doctor", "pilot", "singer", "nurse", "writer"),
    ),
    FactKind(
        "{name} plays the {value}.",
        "The instrument of {name} is the {value}.",
        "Which instrument does {name} play?",
        "{name} plays the",
        ("piano", "violin", "guitar", "flute", "drums", "trumpet", "harp", "cello"),
    ),
    FactKind(
        "{name} drinks {value}.",
        "At breakfast {name} always has {value}.",
        "What does {name} drink?",
        "{name} drinks",
        ("coffee", "tea", "milk", "water", "juice", "wine", "beer", "lemonade"),
    ),
    FactKind(
        "{name} has a {value}.",
        "The pet of {name} is a {value}.",
        "Which pet does {name} have?",
        "{name} has a",
        ("dog", "cat", "horse", "rabbit", "parrot", "turtle", "hamster", "snake"),
    ),
)
ASKS = "{context}\nQuestion: {question}\nAnswer: {begins}"
SENTENCES, RIVALS = 12, 3  # of a context; facts of the asked kind about others
TEXTS = 400


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A context as its sentences, which of them answer, and what is asked."""

    sentences: tuple[str, ...]
    planted: tuple[int, ...]
    question: str
    begins: str
    say: str
    instead: str

    @property
    def prompt(self) -> str:
        return ASKS.format(context=" ".join(self.sentences), question=self.question, begins=self.begins)

    @property
    def evidence(self) -> Spans:
        """Characters of the prompt."""
        starts = np.cumsum([0, *(len(one) + 1 for one in self.sentences)]).tolist()
        return tuple((starts[i], starts[i] + len(self.sentences[i])) for i in self.planted)


def planted_fact(rng: np.random.Generator, copies: int = 1, sentences: int = SENTENCES) -> PlantedFact:
    """One context, drawn."""
    asked, *kinds = (KINDS[i] for i in rng.permutation(len(KINDS)))
    name, *people = (PEOPLE[i] for i in rng.permutation(len(PEOPLE)))
    value, *others = (asked.values[i] for i in rng.permutation(len(asked.values)))

    def drawn(kind: FactKind, who: str) -> str:
        return kind.says.format(name=who, value=kind.values[rng.integers(len(kind.values))])

    facts = [asked.says.format(name=name, value=value), asked.again.format(name=name, value=value)][:copies]
    rivals = [asked.says.format(name=who, value=of) for who, of in zip(people, others[:RIVALS], strict=False)]
    own = [drawn(kind, name) for kind in kinds[:2]]
    rest = sentences - len(facts) - len(rivals) - len(own)
    others_of = people[RIVALS:]  # of more sentences than people each says several things
    about = (others_of[i % len(others_of)] for i in range(max(0, rest)))
    fill = [drawn(kinds[int(rng.integers(len(kinds)))], who) for who in about]
    every = [*facts, *rivals, *own, *fill]
    order = rng.permutation(len(every)).tolist()
    return PlantedFact(
        tuple(every[i] for i in order),
        tuple(sorted(order.index(i) for i in range(len(facts)))),
        asked.question.format(name=name),
        asked.begins.format(name=name),
        value,
        others[0],
    )


def read_facts(_folder: Path | None, _ledger: Ledger, seed: int, *, copies: int) -> Iterator[Raw]:
    """TEXTS prompts, all of the test split: nobody is trained on them."""
    name = "planted-facts" if copies == 1 else "planted-facts-twice"
    for number in range(1, TEXTS + 1):
        made = planted_fact(np.random.default_rng([seed, copies, number]), copies)
        saying = Saying(made.say, made.instead)
        yield Raw(f"{name}:{number}", made.prompt, SAID, "test", evidence=made.evidence, saying=saying)
