"""A continuation explained token by token, as a matrix: rows are what was said, columns are what was read.

Each token that was said is an example of its own (`Explained`); those of one prompt make a matrix for each method.
What a token could not read, because it was said later, is not a number there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.explanation.drawing import LEVELS, fragment, visible
from heedful.explanation.matrices import heat_table, sign_of
from heedful.explanation.record import Explained

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class StepMatrix:
    """What one method says of a continuation. `scores[i, j]`: how much word j made the model say token i."""

    method: str
    signed: bool
    said: tuple[str, ...]  # tokens, with the blank that they begin with
    probabilities: NDArray[np.float64]  # (said,) of each
    read: tuple[str, ...]  # words of the prompt, then words that had been said
    n_prompt: int  # how many of these are words of the prompt
    scores: NDArray[np.float64]  # (said, read); nan where a token could not read a word
    told_from: tuple[str, ...] = ()  # (said,) what each token is told from

    def to_pandas(self) -> pd.DataFrame:
        """The matrix with its words; equal words are numbered by nobody: look at places, not names."""
        import pandas as pd

        return pd.DataFrame(self.scores, index=list(self.said), columns=list(self.read))

    @property
    def sums(self) -> NDArray[np.float64]:
        """Of each word, over everything that was said: (read,)."""
        sums: NDArray[np.float64] = np.nansum(self.scores, axis=0)
        return sums

    def sources(self, token: int, k: int = 3) -> list[tuple[int, float]]:
        """The words that made the model say a token most: (place, score), the strongest first."""
        row = self.scores[token]
        order = [int(i) for i in np.argsort(-np.nan_to_num(row, nan=-np.inf), kind="stable") if row[i] > 0]
        return [(i, float(row[i])) for i in order[:k]]

    def html(self) -> str:
        """The words that were said, of which each shows its sources; under them, folded where they
        are there, the matrix: hover over a field to see its number."""
        words, matrix = continuation_html(self), self._matrix_html()
        return f"{words}<details><summary>as a matrix</summary>{matrix}</details>" if words else matrix

    def _matrix_html(self) -> str:
        """Colours as everywhere, against the largest of the row."""
        name = visible(self.method)
        return heat_table(
            f"{name}: what was said, by what was read",
            f"{name}: each row is a token that was said, with its probability; each column a word that was read",
            [(word, j >= self.n_prompt) for j, word in enumerate(self.read)],
            [(token, f"{p:.2f}") for token, p in zip(self.said, self.probabilities, strict=True)],
            self.scores,
            self.signed,
        )

    def _repr_html_(self) -> str:
        return fragment(self.html())


def steps_of(examples: Sequence[Explained], method: str) -> StepMatrix:
    """The matrix of examples that are the tokens of one continuation, in their order."""
    if not examples or any(e.answers != "next token" for e in examples):
        raise Mistake("only what a model said token by token has steps: explain a language model.")
    whole = [e.by_word() for e in examples]
    passage = whole[0].passage
    if any(e.passage.text != passage.text for e in whole):
        raise Mistake("these tokens were said after different prompts: take those of one prompt.")
    last = max(whole, key=lambda e: 0 if e.query is None else len(e.query))
    after = () if last.query is None else tuple(last.query.surface(i) for i in range(len(last.query)))
    read = (*(passage.surface(i) for i in range(len(passage))), *after)
    scores = np.full((len(whole), len(read)), np.nan)
    for row, e in zip(scores, whole, strict=True):
        flat = e.attribution(method).flat()
        row[: len(flat)] = flat
    first = whole[0].attribution(method)
    return StepMatrix(
        method,
        first.signed,
        tuple(e.attribution(method).target for e in whole),
        np.array([e.probabilities[e.labels.index(e.attribution(method).target)] for e in whole]),
        read,
        len(passage),
        scores,
        tuple(next(label for label in e.labels if label != e.attribution(method).target) for e in whole),
    )


def of_one_prompt(examples: Sequence[Explained]) -> list[list[Explained]]:
    """Examples that follow one another after one prompt, together."""
    groups: list[list[Explained]] = []
    for e in examples:
        before = groups[-1][-1] if groups and e.answers == "next token" else None
        if before is not None and before.passage.text == e.passage.text and _length(e) > _length(before):
            groups[-1].append(e)
        else:
            groups.append([e])
    return groups


def _length(e: Explained) -> int:
    return 0 if e.query is None else len(e.query.text)


def shown_html(examples: Sequence[Explained]) -> Iterator[str]:
    """Every example as HTML; a continuation of several tokens as a matrix for each method."""
    for group in of_one_prompt(examples):
        if len(group) == 1:
            yield group[0].html()
            continue
        yield f'<div class="hf-text" dir="auto">{escape(visible(group[0].passage.text, 2000))}</div>'
        for a in group[0].attributions:
            yield steps_of(group, a.method).html()


def told(group: Sequence[Explained], k: int = 4) -> Iterator[str]:
    """A continuation in lines: each token with its probability, and the words that speak for it most."""
    yield visible(group[0].passage.text, 2000)
    for a in group[0].attributions:
        steps = steps_of(group, a.method)
        yield ""
        yield f"{a.method}: each token that was said, its probability, and the words that speak for it most"
        width = max(len(visible(token)) for token in steps.said)
        for i, (token, p) in enumerate(zip(steps.said, steps.probabilities, strict=True)):
            sources = " · ".join(f"{visible(steps.read[j])} {score:+.3g}" for j, score in steps.sources(i, k))
            yield f"  {visible(token):{width}}  {p:.2f}  {sources or 'no word speaks for it'}"
        failed = [e.id for e in group if (c := e.attribution(a.method).check) is not None and not c.ok]
        if failed:
            yield f"  its own check failed for {len(failed)} of {len(group)} tokens: {', '.join(failed[:3])}"


# A continuation as it is read: rest on a word that was said and its sources light up, click it and they stay.
#
# Without script, so that it works in notebooks, mails and files: words said are the labels of radio buttons, and what
# is lit up is chosen by a style. Arrow keys move from word to word. The first choice is all words together.


MOST = 20_000  # coloured words of a page; of a longer continuation the matrix alone is drawn
STYLE = (
    ".heedful .hf-said-words{display:flex;flex-wrap:wrap;gap:.15em .1em;position:relative;margin:.3em 0 1em}"
    ".heedful .hf-said-words>input{position:absolute;opacity:0;pointer-events:none}"
    ".heedful .hf-said-words>label{cursor:pointer;padding:.1em .3em;min-width:1.6em;min-height:1.5em;"
    "border-bottom:3px solid transparent;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:.2em}"
    ".heedful .hf-said-words>label small{display:block;opacity:.8;line-height:1.1;white-space:nowrap}"
    ".heedful .hf-said-words>input:checked+label{border-bottom-color:currentColor}"
    ".heedful .hf-said-words>input:focus-visible+label{outline:2px solid currentColor;outline-offset:1px}"
    ".heedful .hf-said-words>.hf-sources{display:none;order:1;flex:0 0 100%}"
    ".heedful .hf-said-words>input:checked+label+.hf-sources{display:block}"
    ".heedful .hf-said-words:has(>label:hover)>input:checked+label+.hf-sources{display:none}"
    ".heedful .hf-said-words>input+label:hover+.hf-sources{display:block!important}"
)


def continuation_html(steps: StepMatrix) -> str:
    """What was said, word by word with probability and surprisal; of each the words that were read, in colours."""
    if steps.scores.size > MOST:
        return ""
    group = (
        "hf"
        + hashlib.blake2b(
            repr((steps.method, steps.said, steps.read, steps.scores.tobytes())).encode(), digest_size=8
        ).hexdigest()
    )
    sums = steps.sums
    every = _choice(group, 0, "all words", "their sum", "", _sources(steps, sums, len(steps.read)), True)
    words = (
        _choice(
            group,
            i + 1,
            token,
            f"{p:.2f} · {surprisal(p)} bit",
            f"probability {p:.3g}, surprisal {surprisal(p)} bit, not {against}" if against else "",
            _sources(steps, steps.scores[i], int((~np.isnan(steps.scores[i])).sum())),
        )
        for i, (token, p, against) in enumerate(
            zip(steps.said, steps.probabilities.tolist(), steps.told_from, strict=True)
        )
    )
    name = escape(visible(steps.method))
    return (
        f"<style>{STYLE}</style>"
        f'<div class="hf-quiet">{name}: rest on a word that was said to see which words made the model say it; '
        "click it, and it stays. Under each word its probability and its surprisal.</div>"
        f'<div class="hf-said-words" role="radiogroup" aria-label="{name}: words that were said">'
        f"{every}{''.join(words)}</div>"
    )


def surprisal(p: float) -> str:
    """In bits: -log2 p."""
    return "∞" if p <= 0 else f"{abs(math.log2(p)):.1f}"


def _choice(group: str, number: int, word: str, remark: str, title: str, sources: str, first: bool = False) -> str:
    told = f' title="{escape(visible(title, 400))}"' if title else ""
    return (
        f'<input type="radio" name="{group}" id="{group}-{number}"{" checked" if first else ""}>'
        f'<label for="{group}-{number}"{told}><bdi>{escape(visible(word))}</bdi><small>{escape(remark)}</small></label>'
        f'<div class="hf-sources hf-text" dir="auto">{sources}</div>'
    )


def _sources(steps: StepMatrix, scores: NDArray[np.float64], n: int) -> str:
    """The words that could be read, each in the colour of its score, against the largest of them."""
    peak = float(np.nanmax(np.abs(scores), initial=0.0)) or 1.0
    return "".join(_words(steps, scores, n, peak))


def _words(steps: StepMatrix, scores: NDArray[np.float64], n: int, peak: float) -> Iterator[str]:
    for j in range(n):
        if j == steps.n_prompt:
            yield ' <span class="hf-quiet">→</span>'
        value = float(np.nan_to_num(scores[j]))
        level = round(LEVELS * min(1.0, abs(value) / peak))
        shade = f' class="hf-{sign_of(value, steps.signed)}{level}"' if level else ""
        word = escape(visible(steps.read[j].strip() or steps.read[j]))
        yield f'{" " if j else ""}<span{shade} title="{value:.4g}"><bdi>{word}</bdi></span>'
