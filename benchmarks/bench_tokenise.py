"""Reading and tokenising reviews, against spaCy alone: IMDB where HEEDFUL_DATA has it, else planted texts.

spaCy alone is its blank English tokenizer and a loop that takes the words and offsets out of its documents.
Both begin with nothing remembered; then both see the same texts again, as a second split or a second run
in the same process would.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

import spacy

from heedful.data.generated.planted import generate
from heedful.data.text.tokenise import form, tokenise_all, tokenizer

TEXTS = 2000


def imdb(place: Path) -> Iterator[str]:
    with gzip.open(place, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in islice(lines, TEXTS))


def main() -> None:
    place = Path(os.environ.get("HEEDFUL_DATA", "")) / "imdb" / "train.jsonl.gz"
    what = "IMDB reviews, reading included" if place.is_file() else "planted texts"
    made = [] if place.is_file() else [planted.text for planted in generate("majority", TEXTS, 0)]
    split, rival = tokenizer("spacy"), spacy.blank("en").tokenizer

    def texts() -> Iterable[str]:
        return made or imdb(place)

    def ours() -> list[tuple[str, ...]]:
        return [words.forms for words in tokenise_all(split, texts())]

    def spacy_alone() -> list[tuple[str, ...]]:
        documents = ([(t.text, t.idx) for t in rival(text) if not t.is_space] for text in texts())
        return [tuple(form(word) for word, _ in document) for document in documents]

    first: list[float] = []
    again: list[float] = []
    for times in (first, again):
        began = perf_counter()
        mine = ours()
        middle = perf_counter()
        assert mine == spacy_alone()
        times += [middle - began, perf_counter() - middle]
    rate = sum(map(len, mine)) / again[0] / 1000
    print(
        f"tokenise: {first[1] / first[0]:.1f} times faster than spaCy alone ({TEXTS} {what}; "
        f"{again[1] / again[0]:.1f} times when read again, {rate:.0f} thousand words a second)"
    )


if __name__ == "__main__":
    main()
