"""One example explained: the text, the prediction, and what each method says about every position.

Scores belong to positions, never to word types: the same word twice has two scores. Everything is checked
when it is made, so that what is shown, saved or tabulated is finite and belongs to its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Mistake, one_of
from heedful.explanation.attribution import Attribution
from heedful.explanation.columns import Cells, sum_cells
from heedful.explanation.drawing import checked, fragment, html, rich_text, strongest, tell_unknown, top_words, visible
from heedful.explanation.matrices import LayerMatrix, PairMatrix
from heedful.records import AnswerKind, Part, Words

if TYPE_CHECKING:
    from rich.console import Group


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """One example: its text, what the model predicted, and the attribution of each method."""

    id: str
    passage: Words
    labels: tuple[str, ...]
    probabilities: NDArray[np.float64]  # (labels,)
    attributions: tuple[Attribution, ...]
    query: Words | None = None
    truth: str | None = None  # the true label, where known
    word_index: Mapping[Part, Sequence[int]] = field(default_factory=dict)  # word of each sub-token, if split
    answers: AnswerKind = "one label"  # what `probabilities` are
    unknown: Mapping[Part, Sequence[int]] = field(default_factory=dict)  # positions of words the model does not know

    def __post_init__(self) -> None:
        index = {part: tuple(map(int, i)) for part, i in self.word_index.items()}
        object.__setattr__(self, "word_index", index)
        object.__setattr__(self, "unknown", {part: tuple(map(int, i)) for part, i in self.unknown.items()})
        for part, words in self.parts.items():
            if strange := [i for i in self.unknown.get(part, ()) if not 0 <= i < len(words)]:
                raise Mistake(f"example {self.id!r} has no word {strange[0]} in its {part} that could be unknown.")
            check_words(f"the {part} of example {self.id!r}", words, index.get(part))
        p = np.array(self.probabilities, dtype=np.float64)
        if p.shape != (len(self.labels),) or not is_answer(p, self.answers):
            what = {
                "one label": "probabilities of sum 1",
                "several labels": "probabilities",
                "numbers": "finite numbers",
                "next token": "probabilities of sum 1",
            }
            raise Mistake(f"example {self.id!r} needs {len(self.labels)} {what[self.answers]}, not {p}.")
        p.flags.writeable = False
        object.__setattr__(self, "probabilities", p)
        keys = [(a.method, a.target) for a in self.attributions]
        if not keys or len(set(keys)) < len(keys):
            raise Mistake(f"example {self.id!r} needs attributions of different method or target, not {keys}.")
        object.__setattr__(self, "attributions", tuple(map(self._checked, self.attributions)))

    def _checked(self, a: Attribution) -> Attribution:
        if a.target not in self.labels:
            raise one_of("label", a.target, list(self.labels))
        if not a.scores or not set(a.scores) <= set(self.parts):
            raise Mistake(f"{a.method} scores {[*a.scores]} of example {self.id!r}, which has {[*self.parts]}.")
        what = f"{a.method} on example {self.id!r}"
        parts = {part: words for part, words in self.parts.items() if part in a.scores}
        scores = {part: checked(words, a.scores[part], a.signed, what) for part, words in parts.items()}
        if a.special is not None and not (math.isfinite(a.special) and (a.signed or a.special >= 0)):
            raise Mistake(f"{what} has the score {a.special} for special tokens, which cannot be.")
        if a.spread is not None and not (math.isfinite(a.spread) and a.spread >= 0):
            raise Mistake(f"{what} has the spread {a.spread}, which cannot be.")
        if a.rest is not None and not math.isfinite(a.rest):
            raise Mistake(f"{what} has the score {a.rest} for what is not a token, which cannot be.")
        return replace(a, scores=scores, cells=checked_cells(a, sum(map(len, scores.values())), what))

    @classmethod
    def unchecked(cls, **fields: Any) -> Explained:
        """From columns, which are checked as a whole; arrays are shared with them."""
        made = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    @property
    def parts(self) -> dict[Part, Words]:
        parts: dict[Part, Words] = {"passage": self.passage}
        return parts if self.query is None else parts | {"query": self.query}

    def title_of(self, part: Part) -> str:
        """A part as a person calls it."""
        if self.answers != "next token":
            return part
        return "prompt" if part == "passage" else "said"

    @property
    def predicted(self) -> str:
        return self.labels[int(self.probabilities.argmax())]

    def attribution(self, method: str) -> Attribution:
        """The attribution of a method (the first, where it explains several targets)."""
        for a in self.attributions:
            if a.method == method:
                return a
        raise one_of("method", method, [a.method for a in self.attributions])

    def pairs(self, method: str) -> PairMatrix:
        """What every two words do together, by a method of interactions."""
        a = self.attribution(method)
        return PairMatrix.of(a, self._scored_words(a), [len(s) for s in a.scores.values()])

    def layers(self, method: str) -> LayerMatrix:
        """What each word does in each layer, by a method that looks into layers."""
        a = self.attribution(method)
        return LayerMatrix.of(a, self._scored_words(a))

    def _scored_words(self, a: Attribution) -> tuple[str, ...]:
        return tuple(self.parts[p].surface(i) for p in a.scores for i in range(len(self.parts[p])))

    def by_word(self) -> Explained:
        """Scores of sub-tokens summed to words."""
        first = {part: np.flatnonzero(np.diff(i, prepend=-1)) for part, i in self.word_index.items()}
        parts = {p: _joined(words, first[p]) if p in first else words for p, words in self.parts.items()}

        def summed(a: Attribution) -> Attribution:
            scores = {p: np.add.reduceat(s, first[p]) if p in first else s for p, s in a.scores.items()}
            n_before, word = 0, [np.empty(0, np.int64)]  # the word of each score
            for p, s in a.scores.items():
                places = np.arange(len(s))
                word.append(n_before + (np.searchsorted(first[p], places, "right") - 1 if p in first else places))
                n_before += len(scores[p])
            number = np.append(np.concatenate(word), -1)  # -1 stays
            moved = replace(a.cells, i=number[a.cells.i], j=number[a.cells.j])
            return replace(a, scores=scores, cells=sum_cells(np.zeros(len(moved), np.int64), moved)[0])

        unknown = {
            p: tuple(dict.fromkeys((np.searchsorted(first[p], i, "right") - 1).tolist() for i in places))
            if p in first
            else places
            for p, places in self.unknown.items()
        }
        attributions = tuple(map(summed, self.attributions))
        return replace(self, **parts, attributions=attributions, word_index={}, unknown=unknown)  # type: ignore[arg-type]

    def _heading(self) -> list[str]:
        likely = [f"{self.labels[i]} {self.probabilities[i]:.3f}" for i in strongest(self.probabilities, 5)]
        truth = [] if self.truth is None else [f"true: {self.truth}"]
        return [visible(text) for text in (*likely, *truth, self.id)]

    def unknown_words(self) -> tuple[str, ...]:
        """The words that the model does not know, as they stand in the text, each once."""
        found = (self.parts[part].surface(i) for part, places in self.unknown.items() for i in places)
        return tuple(dict.fromkeys(found))

    def about_unknown(self) -> str:
        return tell_unknown(self.unknown_words())

    def _unexplained(self) -> list[str]:
        """The parts that no method scores: a reader needs them to understand the others."""
        scored = {part for a in self.attributions for part in a.scores}
        return [
            f"{self.title_of(part)}: {visible(w.text, 2000)}" for part, w in self.parts.items() if part not in scored
        ]

    def html(self) -> str:
        """This example as HTML, to be put inside `colours.fragment`."""
        first, *rest = (f"<bdi>{escape(text)}</bdi>" for text in self._heading())
        rows = [f'<div><b>{first}</b> <span class="hf-quiet">· {" · ".join(rest)}</span></div>']
        rows += [f'<div class="hf-text" dir="auto">{escape(text)}</div>' for text in self._unexplained()]
        if strange := self.about_unknown():
            rows.append(f'<div class="hf-quiet"><bdi>{escape(strange)}</bdi></div>')
        for a in self.attributions:
            about = escape(visible(", ".join(filter(None, (a.kind, f"for {a.target}", a.removal)))))
            title = f'<b>{escape(visible(a.method))}</b> <span class="hf-quiet"><bdi>{about}</bdi></span>'
            rows.append(f"<div>{title}</div>")
            for part, scores in a.scores.items():
                if self.query:
                    rows.append(f'<div class="hf-quiet">{self.title_of(part)}</div>')
                label = visible(f"{a.method}, {a.kind} of the {self.title_of(part)} for {a.target}")
                rows.append(html(self.parts[part], scores, a.signed, label=label, peak=a.peak))
            if a.axes == "pairs":
                rows.append(self.pairs(a.method).html())
            elif a.axes == "layers":
                rows.append(self.layers(a.method).html())
            for line in filter(None, (*a.notes(), str(a.check) if a.check else "")):
                rows.append(f'<div class="hf-quiet">{escape(visible(line, 2000))}</div>')
        return f'<div class="hf-example">{"".join(rows)}</div>'

    def _repr_html_(self) -> str:
        return fragment(self.html())

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        first, *rest = self._heading()
        heading = Text(first, "bold").append("  " + "  ".join(rest), "not bold")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(max_width=24)
        grid.add_column(overflow="fold")
        for a in self.attributions:
            cell = Text()
            for part, scores in a.scores.items():
                cell += rich_text(self.parts[part], scores, a.signed, peak=a.peak)
                named = f"{self.title_of(part)}: " if self.query else ""
                cell.append(f"\n{named}{top_words(self.parts[part], scores, a.signed)}\n", "dim")
            if a.axes:
                matrix = self.pairs(a.method) if a.axes == "pairs" else self.layers(a.method)
                cell.append("\n".join(matrix.lines()) + "\n")
            for note in a.notes():
                cell.append(note + "\n", "dim")
            if a.check:
                cell.append(visible(str(a.check), 2000) + "\n", "dim" if a.check.ok else "bold")
            target = None if a.target == self.predicted else f"for {a.target}"
            about = visible("\n".join(filter(None, (a.kind, target, a.removal))))
            grid.add_row(Text.assemble((visible(a.method), "bold"), ("\n" + about, "dim")), cell)
        strange = [Text(said, "bold")] if (said := self.about_unknown()) else []
        return Group(heading, *map(Text, self._unexplained()), *strange, Text(), grid)


def is_answer(p: NDArray[np.float64], answers: AnswerKind) -> bool:
    """Whether a model can say this of its labels (labels,)."""
    if answers == "numbers":
        return bool(np.isfinite(p).all())
    return bool((p >= 0).all()) and bool(
        (p <= 1 + 1e-3).all() if answers == "several labels" else abs(p.sum() - 1) < 1e-3
    )


def checked_cells(a: Attribution, n_scores: int, what: str) -> Cells:
    """The cells themselves, if they belong to the scores: their axes are there, and each place once, in order."""
    c = a.cells
    if not c.layer.shape == c.i.shape == c.j.shape == c.score.shape or c.score.ndim != 1:
        raise Mistake(f"{what} has cells whose columns differ in length.")
    if len(c) == 0:
        return c
    if not a.axes:
        raise Mistake(f"{what} has cells, and names no axes for them: 'pairs' or 'layers'.")
    pairs = a.axes == "pairs"
    there = (c.j >= c.i) & (c.layer == -1) if pairs else (c.j == -1) & (c.layer >= 0)
    if not (there & (c.i >= 0) & (np.maximum(c.i, c.j) < n_scores)).all():
        raise Mistake(f"{what} has cells that are not {a.axes} of its {n_scores} positions.")
    key = np.stack([c.layer, c.i, c.j]).astype(np.int64)
    if not np.array_equal(np.lexsort(key[::-1]), np.arange(len(c))) or (np.diff(key) == 0).all(0).any():
        raise Mistake(f"{what} has cells that are not in ascending order, or two for one place.")
    if not np.isfinite(c.score).all() or (not a.signed and (c.score < 0).any()):
        raise Mistake(f"{what} has a cell that is not a finite number, or below 0 and declared unsigned.")
    return c


def check_words(what: str, words: Words, index: Sequence[int] | None) -> None:
    """The words are there, in the order of the text and inside it, and a file can hold them."""
    if not isinstance(words.text, str):
        raise Mistake(f"{what} is not a text (str) but {words.text!r}.")
    n, offsets = len(words), np.asarray(words.offsets)
    if n == 0:
        raise Mistake(f"{what} has no words: there is nothing to explain.")
    ordered = offsets.shape == (n, 2) and bool(
        (offsets[:, 0] <= offsets[:, 1]).all()
        and (np.diff(offsets[:, 0]) >= 0).all()
        and offsets[0, 0] >= 0
        and offsets[:, 1].max() <= len(words.text)
    )
    if not ordered:
        raise Mistake(f"{what} needs a start and end inside the text for each of its {n} words, in order.")
    try:
        words.text.encode()
    except UnicodeEncodeError as error:
        raise Mistake(f"{what} is not valid Unicode: character {error.start} is half of a pair.") from None
    if index is not None and (len(index) != n or index[0] < 0 or (np.diff(index) < 0).any()):
        raise Mistake(f"{what} needs an ascending word index for each of its {n} sub-tokens.")


def _joined(words: Words, first: NDArray[np.intp]) -> Words:
    """Sub-tokens joined to words that begin at the positions `first`."""
    start, end = words.offsets[first, 0], np.maximum.reduceat(words.offsets[:, 1], first)
    forms = tuple(words.text[a:b] for a, b in zip(start, end, strict=True))
    return Words(words.text, forms, np.stack([start, end], axis=1))
