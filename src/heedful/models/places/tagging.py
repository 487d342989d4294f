"""Token classification: which words made this one a person's name.

A word has the label of its first piece. Neighbouring words of one entity (B-PER, I-PER) are one question, about all
of them: does each have its label?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from heedful.errors import Mistake, one_of, short
from heedful.models.places.model import PlacesModel, Told, question
from heedful.models.places.text import first_tokens
from heedful.records import Example, Part

OUTSIDE = "O"
PASSAGE: Part = "passage"


@dataclass(frozen=True, slots=True)
class Entity:
    """Neighbouring words with labels of one kind."""

    words: tuple[int, ...]
    labels: tuple[int, ...]
    kind: str  # PER


@dataclass(frozen=True, slots=True)
class Tagger(PlacesModel):
    tags: tuple[str, ...] = field(default=())  # what a word can be, in the order of the logits

    def ask(self, example: Example, told: Told) -> list[Example]:
        self.refuse(told, "say", why="labels words that are there (word, target, instead)")
        logits, tokens = self.logits(example), self._tokens(example)
        if told.word is not None:
            words: Sequence[int] = (word_named(example, told.word),)
            if tokens[words[0]] is None:
                raise Mistake(f"the tokenizer leaves nothing of the word {told.word!r}: it has no label.")
            found = next((one for one in self.entities(logits, tokens) if words[0] in one.words), None)
            entities = [found or self._single(words[0], logits, tokens)]
        else:
            entities = self.entities(logits, tokens)
            if told.target is not None:
                kind = self._tag_of(told.target)[1]
                entities = [one for one in entities if one.kind == kind]
            if not entities:
                entities = [self._nearest(logits, tokens, told.target)]
        return [self._question(example, one, tokens, told) for one in entities]

    def _question(self, example: Example, entity: Entity, tokens: list[int | None], told: Told) -> Example:
        places = [(PASSAGE, token) for word in entity.words if (token := tokens[word]) is not None]
        this, kind = entity.labels, entity.kind
        if told.target is not None:
            this, kind = self._labels_of(told.target, len(places)), told.target
        that = None if told.instead is None else self._labels_of(told.instead, len(places))
        if that == this:
            raise Mistake(f"the model is asked why it says {kind!r} and not {told.instead!r}: give two that differ.")
        text = " ".join(example.passage.surface(word) for word in entity.words)
        names = (told.instead or f"not {kind}", kind)
        return question(example, places, this, that, names, f"{example.id}, {text}")

    def entities(self, logits: Tensor, tokens: list[int | None]) -> list[Entity]:
        """Those that the model finds, from left to right."""
        return list(self._grouped(logits, tokens))

    def _grouped(self, logits: Tensor, tokens: list[int | None]) -> Iterator[Entity]:
        words: list[int] = []
        labels: list[int] = []
        kind = OUTSIDE
        for word, token in enumerate(tokens):
            label = self._outside if token is None else int(logits[token].argmax())
            begins, of = split_tag(self.tags[label])
            if words and (of != kind or begins):
                yield Entity(tuple(words), tuple(labels), kind)
                words, labels = [], []
            if of != OUTSIDE:
                words, labels = [*words, word], [*labels, label]
            kind = of
        if words:
            yield Entity(tuple(words), tuple(labels), kind)

    def _single(self, word: int, logits: Tensor, tokens: list[int | None]) -> Entity:
        token = tokens[word]
        assert token is not None
        label = int(logits[token].argmax())
        return Entity((word,), (label,), split_tag(self.tags[label])[1])

    def _nearest(self, logits: Tensor, tokens: list[int | None], target: str | None) -> Entity:
        """Where the model finds nothing: the word that is nearest to being something (or `target`), as it is."""
        p = logits.softmax(-1)
        wanted = [self._labels_of(target, 1)[0]] if target is not None else self._others
        there = [word for word, token in enumerate(tokens) if token is not None]
        best = max(there, key=lambda word: float(p[tokens[word]][wanted].sum()))
        return self._single(best, logits, tokens)

    def _tokens(self, example: Example) -> list[int | None]:
        return first_tokens(self.text.encode([example.passage], "passage"), len(example.passage))

    @property
    def _outside(self) -> int:
        return self.tags.index(OUTSIDE) if OUTSIDE in self.tags else 0

    @property
    def _others(self) -> list[int]:
        return [i for i, tag in enumerate(self.tags) if tag != OUTSIDE] or [0]

    def _labels_of(self, name: str, n: int) -> tuple[int, ...]:
        """A label of the model at every word, or the labels of an entity of that kind."""
        if name in self.tags:
            kind = split_tag(name)[1]
            inside = f"I-{kind}"
            rest = self.tags.index(inside if name == f"B-{kind}" and inside in self.tags else name)
            return (self.tags.index(name), *[rest] * (n - 1))
        begin, inside = f"B-{name}", f"I-{name}"
        first = next((tag for tag in (begin, inside) if tag in self.tags), None)
        if first is None:
            raise one_of("label", name, self._names)
        rest = self.tags.index(inside if inside in self.tags else first)
        return (self.tags.index(first), *[rest] * (n - 1))

    def _tag_of(self, name: str) -> tuple[bool, str]:
        self._labels_of(name, 1)
        return split_tag(name) if name in self.tags else (False, name)

    @property
    def _names(self) -> list[str]:
        return [*dict.fromkeys([*self.tags, *(split_tag(tag)[1] for tag in self.tags)])]


def split_tag(tag: str) -> tuple[bool, str]:
    """Whether a label begins an entity, and of which kind: B-PER, I-PER, E-PER, S-PER and U-PER are of PER."""
    head, dash, kind = tag.partition("-")
    return (head in ("B", "S", "U"), kind) if dash and head in "BIESUL" and len(head) == 1 else (False, tag)


def word_named(example: Example, word: str | int) -> int:
    """The place of a word as it is written, or of its number, counted from 1."""
    words = [example.passage.surface(i) for i in range(len(example.passage))]
    if isinstance(word, str):
        found = [i for i, one in enumerate(words) if one == word]
        found = found or [i for i, one in enumerate(words) if one.lower() == word.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = " or ".join(str(i + 1) for i in found)
            raise Mistake(f"{word!r} stands {len(found)} times in the text: say which by its number, word={numbers}.")
        if not word.isdigit():
            raise Mistake(f"{short(word)} is not a word of the text. Its words are: {', '.join(words[:30])}.")
        word = int(word)
    if not 1 <= word <= len(words):
        raise Mistake(f"word={word}: the text has the words 1 to {len(words)}.")
    return word - 1
