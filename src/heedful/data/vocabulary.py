"""The words a model knows, numbered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from heedful.errors import Mistake
from heedful.records import Words

PAD, UNK, START, END = 0, 1, 2, 3
MARKERS = ("<pad>", "<unk>", "<s>", "</s>")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`words[i]` is the word with id i; the first four are markers, which no word of a text can be.

    A text that holds "<pad>" itself gets the id of an unknown word for it.
    """

    words: tuple[str, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.words[: len(MARKERS)] != MARKERS:
            raise Mistake(f"a vocabulary begins with {', '.join(MARKERS)}, not {list(self.words[:4])}.")
        index = {word: i for i, word in enumerate(self.words)}
        if len(index) != len(self.words):
            twice = next(word for i, word in enumerate(self.words) if index[word] != i)
            raise Mistake(f"a vocabulary has each word once, and this one has {twice!r} twice.")
        for marker in MARKERS:
            del index[marker]
        object.__setattr__(self, "_index", index)

    @classmethod
    def build(cls, texts: Iterable[Words], min_df: int = 1) -> Vocabulary:
        """The words that occur in at least `min_df` texts: the most frequent first, ties by alphabet."""
        df: Counter[str] = Counter()
        for text in texts:
            df.update(set(text.forms))
        for marker in MARKERS:
            df.pop(marker, None)
        kept = sorted((-n, word) for word, n in df.items() if n >= min_df)
        return cls((*MARKERS, *(word for _, word in kept)))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def ids(self, words: Words | Iterable[str]) -> list[int]:
        """The id of each word; UNK where it is not known. Markers are not added."""
        get = self._index.get
        return [get(form, UNK) for form in (words.forms if isinstance(words, Words) else words)]

    def to_json(self) -> str:
        """A plain list of words, one on a line."""
        return json.dumps(list(self.words), ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """The vocabulary that `to_json` wrote."""
        try:
            words = json.loads(text)
        except json.JSONDecodeError as error:
            raise Mistake(f"a vocabulary is a JSON list of words, and this is not JSON: {error}.") from None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Mistake("a vocabulary is a JSON list of words, and this is something else.")
        return cls(tuple(words))
