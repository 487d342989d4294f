"""Counterfactuals as a person sees them: beside the original, with what certainty, as text, HTML and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from heedful.explainers.counterfactual.changes import Piece, pieces
from heedful.explainers.counterfactual.search import Reduced, Searched
from heedful.explanation.drawing import fragment, visible
from heedful.records import Words

SIGNS = {"same": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}  # as `git diff --word-diff` writes them
TAGS = {"same": "span", "gone": "del", "new": "ins"}


@dataclass(frozen=True, slots=True, eq=False)
class Counterfactuals:
    """What would have to be different in a text for another answer; or, `reduced`, how little of it is enough."""

    model: str
    words: Words  # of the text that is changed
    other: str | None  # the text beside it that stays, if there is one
    answer: str
    confidence: float
    searched: Searched | None = None
    reduced: Reduced | None = None

    def drawn(self, which: int) -> list[Piece]:
        """The text with the changes of one counterfactual."""
        assert self.searched is not None
        return pieces(self.words, self.searched.flips[which].changes)

    def certificate(self) -> str:
        """What is certain of the sizes, in a sentence."""
        if self.reduced is not None:
            return f"no shorter text was found by a beam of {self.reduced.width}; not every one was tried"
        s = self.searched
        assert s is not None
        if not s.flips:
            if s.complete:
                return f"no {_changes(s.complete, 'or fewer ')} of these kinds change the answer: all were tried"
            return "the answer did not change, and not every single change was tried: raise the budget"
        n = len(s.flips[0].changes)
        if s.smallest and n == 1:
            return "one change is enough"
        if s.smallest:
            return f"{_changes(n)} are the fewest: all sets of {n - 1} or fewer were tried"
        return f"{_changes(n)} are enough; sets of {s.complete + 1} were not all tried, so fewer may be, too"

    def lines(self) -> list[str]:
        """For a terminal."""
        told = [f"{visible(self.answer, 60)} {self.confidence:.3f}  {visible(self.words.text, 2000)}"]
        if self.other is not None:
            told.append(f"beside it: {visible(self.other, 2000)}")
        if self.reduced is not None:
            r = self.reduced
            told += [
                f"{visible(self.answer, 60)} {r.confidence:.3f}  {visible(r.text, 2000)}",
                f"{len(r.kept)} of {len(self.words)} words keep the answer; {self.certificate()}",
            ]
        if self.searched is not None:
            for i, flip in enumerate(self.searched.flips):
                text = "".join(f"{SIGNS[kind][0]}{piece}{SIGNS[kind][1]}" for kind, piece in _spaced(self.drawn(i)))
                told.append(f"{visible(flip.answer, 60)} {flip.confidence:.3f}  {visible(text, 2000)}")
            told.append(f"{self.certificate()} ({self.searched.texts:,} texts asked)")
        return told

    def show(self) -> None:
        """In the terminal."""
        print("\n".join(self.lines()))

    def html(self) -> str:
        rows = [_row(self.answer, self.confidence, [("same", self.words.text)])]
        if self.other is not None:
            rows.append(f'<div class="hf-quiet">beside it: <bdi>{escape(visible(self.other, 2000))}</bdi></div>')
        if self.reduced is not None:
            kept = set(self.reduced.kept)
            spans = self.words.offsets.tolist()
            drawn: list[Piece] = [
                ("same" if i in kept else "gone", f" {self.words.text[a:b]}") for i, (a, b) in enumerate(spans)
            ]
            rows.append(_row(self.answer, self.reduced.confidence, drawn))
            n = f"{len(kept)} of {len(self.words)} words keep the answer"
            rows.append(f'<div class="hf-quiet">{n}; {escape(self.certificate())}</div>')
        if self.searched is not None:
            flips = enumerate(self.searched.flips)
            rows += [_row(flip.answer, flip.confidence, _spaced(self.drawn(i))) for i, flip in flips]
            rows.append(f'<div class="hf-quiet">{escape(self.certificate())}</div>')
        return f'<div class="hf-example">{"".join(rows)}</div>'

    def to_html(self) -> str:
        return fragment(self.html())

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), ensure_ascii=False)

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "model": self.model,
            "text": self.words.text,
            "other": self.other,
            "answer": self.answer,
            "confidence": self.confidence,
            "certificate": self.certificate(),
        }
        if self.searched is not None:
            told |= {
                "smallest": self.searched.smallest,
                "all_tried_up_to": self.searched.complete,
                "texts_asked": self.searched.texts,
                "counterfactuals": [
                    {
                        "text": flip.text,
                        "answer": flip.answer,
                        "confidence": flip.confidence,
                        "changes": [{"kind": c.kind, "place": c.place, "word": c.word} for c in flip.changes],
                    }
                    for flip in self.searched.flips
                ],
            }
        if self.reduced is not None:
            told["reduced"] = {
                "text": self.reduced.text,
                "kept": list(self.reduced.kept),
                "confidence": self.reduced.confidence,
                "steps": [{"words": n, "confidence": p} for n, p in self.reduced.steps],
                "texts_asked": self.reduced.texts,
            }
        return told


def _spaced(drawn: Sequence[Piece]) -> list[Piece]:
    """Blanks before what is gone or new stand outside its signs."""
    found: list[Piece] = []
    for kind, text in drawn:
        bare = text.lstrip()
        if kind != "same" and len(bare) < len(text):
            found.append(("same", text[: len(text) - len(bare)]))
        found.append((kind, bare if kind != "same" else text))
    return found


def _row(answer: str, confidence: float, drawn: Sequence[Piece]) -> str:
    text = "".join(f"<{TAGS[kind]}>{escape(visible(piece, 2000))}</{TAGS[kind]}>" for kind, piece in drawn)
    said = f"<b><bdi>{escape(visible(answer, 60))}</bdi></b> {confidence:.3f}"
    return f'<div>{said}</div><div class="hf-text" dir="auto">{text}</div>'


def _changes(n: int, fewer: str = "") -> str:
    return f"{n} {fewer}change" + ("" if n == 1 else "s")
