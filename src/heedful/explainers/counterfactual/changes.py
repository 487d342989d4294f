"""Changes of single words, and the text that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.models.black_box import gap_left
from heedful.records import Words

Kind = Literal["remove", "replace", "add"]
KINDS: tuple[Kind, ...] = ("remove", "replace", "add")
Piece = tuple[Literal["same", "gone", "new"], str]  # of a text drawn with its changes


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One word removed, replaced by another, or another put before it (`place` = how many words there are: at the
    end)."""

    place: int
    kind: Kind
    word: str = ""

    @property
    def slot(self) -> tuple[bool, int]:
        """Two changes of one slot cannot both be made: a place between words, or a word."""
        return self.kind == "add", self.place


def pieces(words: Words, changes: Sequence[Change]) -> list[Piece]:
    """The text with its changes, in order: what stays, what goes, what is new, each with the blanks before it."""
    at = {change.slot: change for change in changes}
    spans, text = words.offsets.tolist(), words.text
    found: list[Piece] = []
    last = -1  # the last word that stays, or was replaced
    written = False
    for i in range(len(spans) + 1):
        here = text[: spans[0][0]] if i == 0 else text[spans[i - 1][1] : spans[i][0]] if i < len(spans) else ""
        added, own = at.get((True, i)), at.get((False, i))
        if added is not None:
            found.append(("new", f"{' ' if written else ''}{added.word}"))
            here, written = here or " ", True
        if i == len(spans):
            break
        word = text[spans[i][0] : spans[i][1]]
        if own is not None and own.kind == "remove":
            found.append(("gone", f"{' ' if found else ''}{word}"))
            continue
        if last >= 0 and last < i - 1 and added is None:  # words between went
            gaps = [text[spans[k][1] : spans[k + 1][0]] for k in range(last, i)]
            here = gap_left(gaps, text[spans[last][1] - 1], text[spans[i][0]])
        elif last < 0 and i > 0 and not written:
            here = text[: spans[0][0]]
        if own is not None:
            found += [("gone", f"{' ' if found else ''}{word}"), ("new", here + as_written(own.word, word))]
        else:
            found.append(("same", here + word))
        last, written = i, True
    if last == len(spans) - 1:
        found.append(("same", text[spans[-1][1] :]))
    return [piece for piece in found if piece[1]]


def as_written(new: str, old: str) -> str:
    """With a capital where the old word has one."""
    return new[:1].upper() + new[1:] if old[:1].isupper() and not old[1:].isupper() else new


def changed_text(words: Words, changes: Sequence[Change]) -> str:
    """The text that the changes make."""
    return "".join(piece for kind, piece in pieces(words, changes) if kind != "gone")
