"""Scores of two axes as a person sees them: what every two words do together, and what each word does in each layer.

Views of an `Attribution`'s cells; a table of coloured fields, and arcs over the text for the strongest pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.explanation.attribution import Attribution
from heedful.explanation.drawing import LEVELS, STRONGEST, Sign, fragment, number, visible
from heedful.records import Axes

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
WIDEST = 60  # words of a matrix that is drawn; a longer text shows its arcs
ARCS = 8  # pairs that are drawn as arcs
LETTER = 8.4  # width of a letter under arcs, which stand at places that no script measures


def heat_table(
    label: str,
    caption: str,
    columns: Sequence[tuple[str, bool]],
    rows: Sequence[tuple[str, str]],
    scores: Floats,
    signed: bool,
    peak: float | None = None,
) -> str:
    """Coloured fields, up to `peak`, or each row up to its own largest |score|; hover to see a number. `columns` are
    words, each with whether the model said it; `rows` are words, each with a small remark. NaN: there is nothing."""
    head = "".join(
        f'<th scope="col" class="{"hf-said" if said else ""}"><bdi>{escape(visible(word))}</bdi></th>'
        for word, said in columns
    )
    body = []
    for (word, remark), values in zip(rows, scores, strict=True):
        small = f" <small>{escape(remark)}</small>" if remark else ""
        body.append(
            f'<tr><th scope="row"><bdi>{escape(visible(word))}</bdi>{small}</th>'
            f"{''.join(_fields(values, signed, peak))}</tr>"
        )
    name = escape(visible(label))
    return (
        f'<div class="hf-scroll" tabindex="0" role="region" aria-label="{name}">'
        f'<table class="hf-steps"><caption>{escape(visible(caption, 2000))}</caption>'
        f"<tr><td></td>{head}</tr>{''.join(body)}</table></div>"
    )


def _fields(values: Floats, signed: bool, peak: float | None) -> Iterator[str]:
    """Of one row."""
    peak = peak or float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    for value in values:
        if np.isnan(value):
            yield "<td></td>"
            continue
        level = round(LEVELS * min(1.0, abs(value) / peak))
        shade = f' class="hf-{sign_of(value, signed)}{level}"' if level else ""
        yield f'<td{shade} title="{value:.4g}"></td>'


def sign_of(score: float, signed: bool) -> Sign:
    return "u" if not signed else "p" if score >= 0 else "n"


def _check_axes(a: Attribution, axes: Axes, needed: str) -> None:
    if a.axes != axes:
        raise Mistake(f"{a.method} does not say {needed}: its scores are of single words.")


@dataclass(frozen=True, slots=True, eq=False)
class PairMatrix:
    """What every two words do together, `scores[i, j]` = `scores[j, i]`, and on the diagonal what each does by itself.

    A pair counts once: the upper triangle with the diagonal is everything.
    """

    method: str
    signed: bool
    words: tuple[str, ...]  # of all parts that are explained, one after the other
    lengths: tuple[int, ...]  # of each part
    scores: Floats  # (words, words)

    @classmethod
    def of(cls, a: Attribution, words: Sequence[str], lengths: Sequence[int]) -> PairMatrix:
        _check_axes(a, "pairs", "what pairs of words do together")
        scores = np.zeros((len(words), len(words)))
        scores[a.cells.i, a.cells.j] = scores[a.cells.j, a.cells.i] = a.cells.score
        return cls(a.method, a.signed, tuple(words), tuple(lengths), scores)

    def to_pandas(self) -> pd.DataFrame:
        """The matrix with its words; equal words are numbered by nobody: look at places, not names."""
        import pandas as pd

        return pd.DataFrame(self.scores, index=list(self.words), columns=list(self.words))

    def top(self, k: int = 5, *, across: bool = False) -> list[tuple[int, int, float]]:
        """The `k` pairs of different words with the largest |score|: (i, j, score), the strongest first.

        `across`: only of a word of the first text and one of the second.
        """
        i, j = np.triu_indices(len(self.words), 1)
        if across:
            first = self.lengths[0]
            i, j = (places[(i < first) & (j >= first)] for places in (i, j))
        scores = self.scores[i, j]
        order = np.argsort(-np.abs(scores), kind="stable")[:k]
        return [(int(i[o]), int(j[o]), float(scores[o])) for o in order if scores[o]]

    def lines(self, k: int = 5) -> Iterator[str]:
        """The strongest pairs in a line; those between two texts in another."""

        def told(pairs: list[tuple[int, int, float]]) -> str:
            one = (
                f"{visible(self.words[i], 40)} … {visible(self.words[j], 40)} {number(score, self.signed)}"
                for i, j, score in pairs
            )
            return " · ".join(one) or "no two words do anything together"

        yield f"together: {told(self.top(k))}"
        if len(self.lengths) > 1:
            yield f"between the texts: {told(self.top(k, across=True))}"

    def html(self) -> str:
        """Arcs over the text for the strongest pairs, and the matrix."""
        told = "".join(f'<div class="hf-quiet">{escape(line)}</div>' for line in self.lines())
        if len(self.words) > WIDEST:
            return f"{self._arcs()}{told}"
        caption = "each field is what two words do together; on the diagonal what a word does by itself"
        columns, rows = [(word, False) for word in self.words], [(word, "") for word in self.words]
        peak = float(np.abs(self.scores).max(initial=0.0))
        table = heat_table(f"{self.method}: every two words", caption, columns, rows, self.scores, self.signed, peak)
        return f"{self._arcs()}{told}<details><summary>every two words</summary>{table}</details>"

    def _arcs(self) -> str:
        """The text in one line, and an arc for each of the strongest pairs: as thick as its |score|."""
        pairs = self.top(ARCS)
        if not pairs:
            return ""
        shown = [visible(word, 20) for word in self.words]
        if len(self.lengths) > 1:
            shown[self.lengths[0]] = "‖ " + shown[self.lengths[0]]
        ends = np.cumsum([len(word) + 1 for word in shown])
        middle = (ends - [1 + len(word) / 2 for word in shown]) * LETTER
        peak, tall = abs(pairs[0][2]), 0.0
        drawn = []
        for i, j, score in reversed(pairs):  # the strongest on top
            rise = 14 + 26 * np.log1p(abs(middle[j] - middle[i]) / 40)
            tall = max(tall, rise)
            sign = sign_of(score, self.signed)
            dashes = ' stroke-dasharray="5 3"' if sign == "n" else ""
            title = f"{shown[i]} … {shown[j]}: {number(score, self.signed)}"
            drawn.append(
                f'<path d="M{middle[i]:.0f} 0C{middle[i]:.0f} {-rise:.0f} {middle[j]:.0f} {-rise:.0f} '
                f'{middle[j]:.0f} 0" fill="none" stroke="{STRONGEST[sign]["light"]}" '
                f'stroke-width="{1 + 4 * abs(score) / peak:.1f}"{dashes}><title>{escape(title)}</title></path>'
            )
        starts = (ends - [len(word) + 1 for word in shown]) * LETTER
        text = "".join(
            f'<text x="{x:.0f}" y="18" textLength="{len(word) * LETTER:.0f}">{escape(word)}</text>'
            for x, word in zip(starts, shown, strict=True)
            if word
        )
        width, top = ends[-1] * LETTER, 0.8 * tall + 6
        spoken = escape(f"{self.method}: {next(self.lines(ARCS))}")
        return (
            f'<div class="hf-scroll" tabindex="0"><svg role="img" aria-label="{spoken}" width="{width:.0f}" '
            f'height="{top + 26:.0f}" viewBox="0 {-top:.0f} {width:.0f} {top + 26:.0f}" '
            f'font-family="monospace" font-size="14" fill="currentColor">{"".join(drawn)}{text}</svg></div>'
        )

    def _repr_html_(self) -> str:
        return fragment(self.html())


@dataclass(frozen=True, slots=True, eq=False)
class LayerMatrix:
    """What each word does in each layer: `scores[layer, i]`."""

    method: str
    signed: bool
    words: tuple[str, ...]
    scores: Floats  # (layers, words)

    @classmethod
    def of(cls, a: Attribution, words: Sequence[str]) -> LayerMatrix:
        _check_axes(a, "layers", "what words do in each layer")
        scores = np.zeros((int(a.cells.layer.max(initial=-1)) + 1, len(words)))
        scores[a.cells.layer, a.cells.i] = a.cells.score
        return cls(a.method, a.signed, tuple(words), scores)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each layer, one column for each word."""
        import pandas as pd

        return pd.DataFrame(self.scores, columns=list(self.words))

    def lines(self, k: int = 3) -> Iterator[str]:
        """Of each layer the words with the largest |score|."""
        for layer, row in enumerate(self.scores):
            order = [i for i in np.argsort(-np.abs(row), kind="stable")[:k] if row[i]]
            told = " · ".join(f"{visible(self.words[i], 40)} {number(row[i], self.signed)}" for i in order)
            yield f"layer {layer}: {told or 'nothing'}"

    def html(self) -> str:
        """A table of layers by words."""
        rows = [(f"layer {layer}", "") for layer in range(len(self.scores))]
        caption = "each row is a layer, each column a word"
        columns = [(word, False) for word in self.words]
        return heat_table(f"{self.method}: every word in every layer", caption, columns, rows, self.scores, self.signed)

    def _repr_html_(self) -> str:
        return fragment(self.html())
