"""The world of bAbI tasks 1, 2 and 3 (Weston et al. 2015), simulated: stories and questions from a seed.

Written from what the published stories show, not from their generator. Read off the 10,000 + 1,000
questions of each task, and true of every one of them unless a number is given:

- Four people, six places, three objects, each somewhere at the start, which the story does not tell.
- A statement: a person and one of go, get, drop are drawn until it can be done. One cannot go where one
  is, get what is not at hand, or drop what one does not hold. (TaskType 1 has only go.)
- After every second statement a question is asked if one can be. A statement is drawn from the last five;
  task 1 asks where its person is, tasks 2 and 3 where its object is or was. A story has five questions.
- TaskType 2 asks about an object whose last get or drop is among those five: it was dropped by someone whose
  place had been told, or its holder went somewhere since. Supporting: that statement, and the holder's move.
- TaskType 3 asks where an object was before a place to which it was carried, by one who got it and went to at
  least two places with it. If the place was visited more than once, its last visit is meant.
  Supporting: the last get or drop, the move to the place, the move before that.
- "there" ends one in five statements of a drop, and of a get in task 3; in task 2 every get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from heedful.errors import Mistake

PEOPLE = ("Daniel", "John", "Mary", "Sandra")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
OBJECTS = ("apple", "football", "milk")
VERBS = {
    "go": ("went to", "went back to", "moved to", "journeyed to", "travelled to"),
    "get": ("got", "took", "grabbed", "picked up"),
    "drop": ("dropped", "left", "discarded", "put down"),
}
QUESTIONS = 5  # in a story
RECENT = 5  # statements about which is asked

Deed = Literal["go", "get", "drop"]


@dataclass(frozen=True, slots=True)
class Story:
    """A question about the statements before it. `supporting` are the statements that give the answer."""

    statements: tuple[str, ...]
    question: str
    answer: str
    supporting: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join(self.statements)

    @property
    def evidence(self) -> tuple[tuple[int, int], ...]:
        """Where the supporting statements stand in `text`: start and end (exclusive) in characters."""
        begins = np.cumsum([0, *(len(statement) + 1 for statement in self.statements)]).tolist()
        return tuple((begins[i], begins[i] + len(self.statements[i])) for i in sorted(self.supporting))


def generate(task: int, n: int, seed: int) -> Iterator[Story]:
    """`n` questions of task 1, 2 or 3, five to a story. The same seed gives the same stories."""
    if task not in (1, 2, 3):
        raise Mistake(f"bAbI tasks 1, 2 and 3 can be generated, not {task}.")
    rng = np.random.default_rng([seed, task])
    given = 0
    while given < n:
        for story in _story(task, rng):
            if given == n:
                return
            yield story
            given += 1


@dataclass(frozen=True, slots=True)
class Event:
    """One statement. `thing` is the place one goes to or the object one gets or drops."""

    person: str
    deed: Deed
    thing: str
    text: str


@dataclass(slots=True)
class World:
    """Where everybody and everything is; an object that is held is where its holder is."""

    place: dict[str, str]
    holder: dict[str, str] = field(default_factory=dict)

    @classmethod
    def random(cls, rng: np.random.Generator) -> World:
        return cls({one: _pick(PLACES, rng) for one in (*PEOPLE, *OBJECTS)})

    def step(self, task: int, rng: np.random.Generator) -> Event:
        """Draw until something can be done, and do it."""
        while True:
            person = _pick(PEOPLE, rng)
            deed = cast(Deed, "go" if task == 1 else _pick(tuple(VERBS), rng))
            options = self.options(person, deed)
            thing = _pick(options, rng) if options else None
            if thing is not None and thing != self.place[person]:
                self.act(person, deed, thing)
                return Event(person, deed, thing, _statement(person, deed, thing, task, rng))

    def options(self, person: str, deed: Deed) -> tuple[str, ...]:
        if deed == "go":
            return PLACES
        if deed == "drop":
            return tuple(thing for thing in OBJECTS if self.holder.get(thing) == person)
        here = self.place[person]
        return tuple(thing for thing in OBJECTS if thing not in self.holder and self.place[thing] == here)

    def act(self, person: str, deed: Deed, thing: str) -> None:
        if deed == "go":
            self.place[person] = thing
        elif deed == "get":
            self.holder[thing] = person
        else:
            del self.holder[thing]
            self.place[thing] = self.place[person]


def _story(task: int, rng: np.random.Generator) -> Iterator[Story]:
    ask = {1: _ask_person, 2: _ask_object, 3: _ask_before}[task]
    world, told = World.random(rng), list[Event]()
    asked = 0
    while asked < QUESTIONS:
        told += [world.step(task, rng), world.step(task, rng)]
        recent = told[-RECENT:]
        for i in rng.permutation(len(recent)):
            if found := ask(recent[i], told, rng):
                yield Story(tuple(event.text for event in told), *found)
                asked += 1
                break


Location = tuple[str, str, tuple[int, ...]]  # question, answer, supporting


def _ask_person(about: Event, told: list[Event], _: np.random.Generator) -> Location | None:
    move = _last_move(told, about.person, len(told))
    assert move is not None
    return f"Where is {about.person}?", told[move].thing, (move,)


def _ask_object(about: Event, told: list[Event], _: np.random.Generator) -> Location | None:
    if about.deed == "go":
        return None
    last = _last_handling(told, about.thing)
    dropped = told[last].deed == "drop"
    move = _last_move(told, told[last].person, last if dropped else len(told))
    if move is None or not (dropped or move > last):
        return None
    return f"Where is the {about.thing}?", told[move].thing, (last, move)


def _ask_before(about: Event, told: list[Event], rng: np.random.Generator) -> Location | None:
    if about.deed == "go":
        return None
    last = _last_handling(told, about.thing)
    dropped = told[last].deed == "drop"
    got = _last_handling(told, about.thing, "get")
    end = last if dropped else len(told)
    carried = [i for i in range(got, end) if told[i].person == told[got].person and told[i].deed == "go"]
    places = [told[i].thing for i in carried]
    last_visits = [j for j in range(1, len(places)) if places[j] not in places[j + 1 :]]
    if not last_visits:
        return None
    j = last_visits[int(rng.integers(len(last_visits)))]
    before = carried[j - 1]
    question = f"Where was the {about.thing} before the {places[j]}?"
    return question, told[before].thing, (last, carried[j], before)


def _last_move(told: list[Event], person: str, end: int) -> int | None:
    """The last statement before `end` that says where the person went."""
    moves = (i for i in reversed(range(end)) if told[i].person == person and told[i].deed == "go")
    return next(moves, None)


def _last_handling(told: list[Event], thing: str, deed: Deed | None = None) -> int:
    """The last statement that says what was done (this deed) with the thing."""
    every = reversed(range(len(told)))
    return next(i for i in every if told[i].thing == thing and (deed is None or told[i].deed == deed))


def _statement(person: str, deed: Deed, thing: str, task: int, rng: np.random.Generator) -> str:
    verb = _pick(VERBS[deed], rng)
    always = deed == "get" and task == 2
    there = deed != "go" and (rng.random() < 0.2 or always)
    return f"{person} {verb} the {thing}{' there' if there else ''}."


def _pick(options: tuple[str, ...], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]
