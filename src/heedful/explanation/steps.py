"""A continuation explained token by token, as a matrix: rows are what was said, columns are what was read.

Each token that was said is an example of its own (`Explained`); those of one prompt make a matrix for each method.
What a token could not read, because it was said later, is not a number there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.explanation.drawing import fragment, visible
from heedful.explanation.matrices import heat_table
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
        """A table: hover over a number's cell to see it; colours as everywhere, against the largest of the row."""
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
        yield from (steps_of(group, a.method).html() for a in group[0].attributions)


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
