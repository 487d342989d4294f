"""What a row says about the words that decide its label, as stretches of characters of its text.

In one's own files the evidence is JSON (or a list, where the format has lists), one of
    [[3, 9], [20, 31]]    characters of the text, end exclusive
    [0, 4]                words of text.split(), from 0
    ["not", "worth it"]   strings; every place where they stand in the text

Nothing is rounded, cut or dropped: what marks no word of the text is a `ValueError` that says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from heedful.data.formats.rows import Spans, word_spans
from heedful.errors import short


def evidence_spans(value: Any, text: str) -> Spans | None:
    """The three forms described above; None where the row has no evidence."""
    if isinstance(value, str):
        value = _decode(value) if value.strip() else None
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError(f"a list is needed, not {short(value)}")
    words: list[tuple[int, int]] | None = None
    spans: list[tuple[int, int]] = []
    for item in value:
        if isinstance(item, str):
            spans += places_of(item, text)
        elif isinstance(item, list | tuple):
            spans.append(character_span(item, text))
        else:
            words = word_spans(text) if words is None else words
            spans.append(words[place_of(item, len(words))])
    return tuple(spans)


def _decode(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(f"a list in JSON is needed, not {short(value)}") from None


def places_of(string: str, text: str) -> Iterator[tuple[int, int]]:
    """Every place where the string stands in the text; at least one."""
    if not string.strip():
        raise ValueError("an empty string marks no word")
    if string not in text:
        raise ValueError(f"{short(string)} does not stand in the text")
    return (match.span() for match in re.finditer(re.escape(string), text))


def character_span(pair: Any, text: str) -> tuple[int, int]:
    """[start, end] of characters that are there, and not only white space."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise ValueError(f"{short(pair)} is not a pair of start and end")
    start, end = (place_of(number, len(text) + 1) for number in pair)
    if not text[start:end].strip():
        raise ValueError(f"the characters {start} to {end} hold no word")
    return start, end


def place_of(number: Any, size: int) -> int:
    """A place from 0 in a list of so many. Python would count a negative one from the end, and take True for 1."""
    if isinstance(number, float) and number.is_integer():  # how some tables keep whole numbers
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{short(number)} is not a whole number")
    if not 0 <= number < size:
        raise ValueError(f"{short(number)} is outside of the text, which is counted from 0")
    return number
