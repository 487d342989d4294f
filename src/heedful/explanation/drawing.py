"""Scores drawn over the text they belong to: as HTML and in the terminal.

The strength of a colour is linear in |score|; the largest |score| of a drawing has the strongest. The
original spacing is kept, markup is escaped, and characters that could reorder, hide or command anything are
shown as visible signs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import Mistake
from heedful.records import Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


Scores = NDArray[np.float64]

UNKNOWN_SHOWN = 10  # unknown words that are named
LONGEST = 200  # characters of one word (or gap) that are drawn; the rest becomes an ellipsis
_VISIBLE = (
    {c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\t\n"}
    | {0x7F: "\u2421"}
    # C1 controls command terminals, bidi embeddings and overrides reorder what follows, and lone surrogates
    # cannot be written as UTF-8. Joiners and direction marks stay: emoji and real scripts need them.
    | {
        c: f"⟨{c:04X}⟩"
        for c in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
    }
)


def visible(text: str, longest: int = LONGEST) -> str:
    """`text` with control characters as signs, and cut after `longest` characters."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.translate(_VISIBLE)


def tell_unknown(words: Sequence[str]) -> str:
    """Which words a model does not know, in a sentence; empty where it knows all."""
    if not words:
        return ""
    named = ", ".join(repr(visible(word, 40)) for word in words[:UNKNOWN_SHOWN])
    more = f" and {len(words) - UNKNOWN_SHOWN} more" if len(words) > UNKNOWN_SHOWN else ""
    same = "; it reads the same in place of each, so their scores tell nothing about these words"
    return f"The model does not know {named}{more}{same if len(words) > 1 else ''}."


def checked(words: Words, scores: ArrayLike, signed: bool, what: str = "this heatmap") -> Scores:
    """`scores` as a new read-only float64 array, one finite number for each position of `words`."""
    array: Scores = np.array(scores, dtype=np.float64)
    if array.shape != (len(words),):
        raise Mistake(f"{what} has scores of shape {array.shape} for {len(words)} words: give one for each.")
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise Mistake(f"{what} has the score {array[bad]} at position {bad}: scores must be finite numbers.")
    if not signed and (array < 0).any():
        bad = int(np.flatnonzero(array < 0)[0])
        raise Mistake(f"{what} has the score {array[bad]} at position {bad}, but is declared unsigned.")
    array.flags.writeable = False
    return array


def number(score: float, signed: bool) -> str:
    return f"{score:+.3g}" if signed else f"{score:.3g}"


def strongest(scores: Scores, k: int) -> list[int]:
    """The `k` positions with the largest |score|, earlier positions first among equals."""
    return [int(i) for i in np.argsort(-np.abs(scores), kind="stable")[:k]]


def top_words(words: Words, scores: Scores, signed: bool, k: int = 5) -> str:
    """The strongest words with their numbers, for readers without colours and for screen readers.

    A word that comes more than once is told with its position; zeros are not told.
    """
    count = Counter(map(words.surface, range(len(words))))
    told = []
    for i in filter(scores.item, strongest(scores, k)):
        word = words.surface(i)
        where = f" (at {i})" if count[word] > 1 else ""
        one_line = visible(word, 40).replace("\n", "␊").replace("\t", "␉")
        told.append(f"{one_line}{where} {number(scores[i], signed)}")
    return " · ".join(told) or "all scores are 0"


def _pieces(words: Words) -> Iterator[tuple[str, list[int]]]:
    """The text cut into words, each with its positions, and gaps, with none.

    Byte-level tokenizers give several positions to one character: these share a piece.
    """
    cursor, i = 0, 0
    while i < len(words):
        start, end = words.offsets[i]
        positions = [i]
        while (i := i + 1) < len(words) and words.offsets[i, 0] < end:
            end = max(end, words.offsets[i, 1])
            positions.append(i)
        yield words.text[cursor:start], []
        yield words.text[start:end] or "∅", positions  # a position without text still shows its score
        cursor = end
    yield words.text[cursor:], []


def _drawn(words: Words, scores: ArrayLike, signed: bool, peak: float | None) -> Iterator[tuple[str, Sign, int, str]]:
    """For each piece: text, colour and level, and what hovering says (empty for gaps)."""
    array = checked(words, scores, signed)
    peak = peak if peak is not None else float(np.abs(array).max(initial=0.0))
    for piece, positions in _pieces(words):
        if not positions:
            yield visible(piece), "u", 0, ""
            continue
        # in units of the peak, so that huge scores cannot overflow
        score = sum(array[i] / peak for i in positions) if peak else 0.0
        sign: Sign = "u" if not signed else "p" if score > 0 else "n"
        notes = (f"position {i}: {number(array[i], signed)}" for i in positions)
        yield visible(piece), sign, round(min(abs(score), 1.0) * LEVELS), "; ".join(notes)


def html(words: Words, scores: ArrayLike, signed: bool, *, label: str = "", peak: float | None = None) -> str:
    """One heatmap as a <div>, to be put inside `fragment`.

    `label` is what a screen reader says before the strongest words; `peak` is the |score| of the strongest
    colour (default: the largest here), for several heatmaps on one scale.
    """
    spans = []
    for text, sign, level, note in _drawn(words, scores, signed, peak):
        style = f' class="hf-{sign}{level}"' if level else ""
        spans.append(f'<span{style} title="{note}">{escape(text)}</span>' if note else escape(text))
    top = top_words(words, checked(words, scores, signed), signed)
    spoken = escape(f"{label}: {top}" if label else top)
    return f'<div class="hf-text" role="group" dir="auto" aria-label="{spoken}">{"".join(spans)}</div>'


def rich_text(words: Words, scores: ArrayLike, signed: bool, *, peak: float | None = None) -> Text:
    """One heatmap for the terminal; words near zero keep the terminal's own colours."""
    from rich.style import Style
    from rich.text import Text

    drawn = Text()
    for text, sign, level, _ in _drawn(words, scores, signed, peak):
        shade = Style(color=INK["dark"], bgcolor=colour(sign, level, "dark"), underline=sign == "n")
        drawn.append(text, shade if level else None)
    return drawn


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two heatmaps of one text on one scale, with the change Δŷ (Jain & Wallace 2019, appendix C)."""

    words: Words
    first: Scores
    second: Scores
    delta: float
    names: tuple[str, str] = ("original", "adversarial")
    signed: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        if not np.isfinite(self.delta):
            raise Mistake(f"the change Δŷ of this pair is {self.delta}: it must be a finite number.")

    def halves(self) -> Iterator[tuple[str, Scores, float]]:
        """(name, scores, peak) of each: both are drawn up to the same peak."""
        both = [checked(self.words, scores, self.signed) for scores in (self.first, self.second)]
        peak = float(np.abs(both).max(initial=0.0))
        return ((visible(name), scores, peak) for name, scores in zip(self.names, both, strict=True))

    def html(self) -> str:
        """One above the other, to be put inside `fragment`."""
        halves = (
            f'<div class="hf-quiet">{escape(name)}</div>' + html(self.words, scores, self.signed, label=name, peak=peak)
            for name, scores, peak in self.halves()
        )
        title = f"<div>{escape(visible(self.title))}</div>" if self.title else ""
        delta = f'<div class="hf-quiet">Δŷ = {self.delta:.4g}</div>'
        return f'<div class="hf-example">{title}{"".join(halves)}{delta}</div>'

    def _repr_html_(self) -> str:
        return fragment(self.html())

    def to_json(self) -> dict[str, Any]:
        weights = {name: scores.tolist() for name, scores, _ in self.halves()}
        words = list(self.words.forms)
        return {"text": self.words.text, "words": words, **weights, "delta_y": self.delta, "title": self.title}

    def __rich__(self) -> Table:
        """Side by side, the strongest words with their numbers below."""
        from rich.table import Table
        from rich.text import Text

        title = Text(visible(self.title)) if self.title else None
        delta = Text(f"Δŷ = {self.delta:.4g}")
        table = Table(
            box=None, padding=(0, 2), title=title, title_justify="left", caption=delta, caption_justify="left"
        )
        columns = []
        for name, scores, peak in self.halves():
            table.add_column(Text(name), ratio=1)
            drawn = rich_text(self.words, scores, self.signed, peak=peak)
            columns.append(drawn.append(f"\n\n{top_words(self.words, scores, self.signed)}"))
        table.add_row(*columns)
        return table


@dataclass(frozen=True, slots=True)
class Pairs:
    """Several pairs, to be shown in the terminal, in a notebook and as HTML."""

    pairs: tuple[Pair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __getitem__(self, place: int) -> Pair:
        return self.pairs[place]

    def show(self, console: Console | None = None) -> None:
        """Print every pair, with room between them."""
        from rich.console import Console

        console = console or Console()
        for pair in self.pairs:
            console.print(pair)
            console.print()

    def to_html(self) -> str:
        """One self-contained HTML fragment, without script."""
        return fragment("".join(pair.html() for pair in self.pairs))

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_json(self) -> str:
        """The texts, their words and both weights of each word."""
        return json.dumps([pair.to_json() for pair in self.pairs], ensure_ascii=False, allow_nan=False)


# The colours of scores, and the stylesheet that HTML fragments carry.
#
# Signed scores are blue (for the target) and orange with a dotted underline (against it), two colours that
# people with any common colour blindness can tell apart; scores without a sign are purple. Each colour has
# `LEVELS` strengths on a light and on a dark surface. Text on every one of them has a contrast of at least
# 4.5 : 1 (WCAG 2.2, 1.4.3), which the tests compute.


Scheme = Literal["light", "dark"]
Sign = Literal["p", "n", "u"]  # positive, negative, unsigned

LEVELS = 8
SURFACE: dict[Scheme, str] = {"light": "#ffffff", "dark": "#1b1b1b"}
INK: dict[Scheme, str] = {"light": "#111111", "dark": "#f5f5f5"}
QUIET: dict[Scheme, str] = {"light": "#595959", "dark": "#b4b4b4"}
STRONGEST: dict[Sign, dict[Scheme, str]] = {
    "p": {"light": "#4a9ae0", "dark": "#1565b0"},
    "n": {"light": "#f59b1d", "dark": "#a85400"},
    "u": {"light": "#b58be8", "dark": "#7a3fb8"},
}
LEGEND: dict[Sign, str] = {"p": "for the target", "n": "against it", "u": "matters, without direction"}


def colour(sign: Sign, level: int, scheme: Scheme) -> str:
    """Background of a word: `level` / `LEVELS` of the way from the surface to the strongest colour."""
    low, high = SURFACE[scheme], STRONGEST[sign][scheme]
    channels = ((int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * level / LEVELS):02x}" for a, b in channels)


def _rules(scheme: Scheme) -> str:
    shades = (
        f".heedful .hf-{sign}{level}{{background:{colour(sign, level, scheme)};color:{INK[scheme]}}}"
        for sign in STRONGEST
        for level in range(1, LEVELS + 1)
    )
    root = f".heedful{{background:{SURFACE[scheme]};color:{INK[scheme]}}}"
    return root + f".heedful .hf-quiet{{color:{QUIET[scheme]}}}" + "".join(shades)


STYLE = (
    ".heedful{font:15px/1.6 system-ui,sans-serif;padding:.5em .8em;text-align:start;"
    "forced-color-adjust:none;print-color-adjust:exact}"
    ".heedful .hf-text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:.1em 0 .3em}"
    ".heedful .hf-quiet{font-size:.85em}.heedful .hf-example{margin:.4em 0 1.2em}"
    ".heedful .hf-text span{border-radius:.2em}"
    ".heedful [class^=hf-n]{text-decoration:underline dotted}"
    ".heedful .hf-scroll{overflow-x:auto}.heedful .hf-steps{border-collapse:separate;border-spacing:1px}"
    ".heedful .hf-steps caption{text-align:start;font-size:.85em}.heedful .hf-steps td{min-width:1.4em;height:1.4em}"
    ".heedful .hf-steps th{font-weight:400;text-align:end;white-space:pre}.heedful .hf-steps small{opacity:.8}"
    ".heedful .hf-steps th[scope=col]{writing-mode:vertical-rl;transform:rotate(180deg);text-align:start}"
    ".heedful .hf-said{font-style:italic}"
    + _rules("light")
    + f"@media screen and (prefers-color-scheme:dark){{{_rules('dark')}}}"
)


def fragment(body: str) -> str:
    """`body` with its colours: self-contained, without script, light or dark as the reader's screen is."""
    return f'<div class="heedful"><style>{STYLE}</style>{body}</div>'


def page(body: str) -> str:
    """A fragment as an HTML page of its own."""
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f"{head}<title>heedful</title>{body}"
