"""Words of a text, as in the paper: spaCy's blank English tokenizer, lower case, digits hidden.

Jain & Wallace 2019, section 3: words are split by spaCy, put in lower case, and a word that has a digit
becomes "qqq". White space is dropped. Offsets always point into the text as it was given.

spaCy takes a text one white-space separated chunk at a time, so the answer for a chunk can be remembered.
The one thing that looks beyond a chunk is its last pass over special cases, which matches *words*, such as
":" before ")", whether or not a blank is between them. Such a match changes nothing by itself, but it can
hide a real one beside it. Chunks that could be linked like this are kept in one piece, and the piece is
what is remembered: the result is spaCy's own, for every text but those with a chunk that is not written by people
(`places_to_cut`): spaCy takes signs off the ends of a chunk one at a time and looks at all of the rest each time, so
19,000 equals signs without a blank take minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.data.text.chunks import MOST_SIGNS, cut_long, places_to_cut
from heedful.errors import Mistake, one_of
from heedful.records import TokenizerName, Words

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer as SpacyTokenizer

Tokenizer = Callable[[str], Words]

DIGITS = "qqq"  # what a word with a digit becomes
MEMO_SIZE = 400_000  # pieces remembered, then begun anew; the 290,000 of IMDB's training reviews take 185 MB
TABLE = 0x10000  # characters with a place in our tables; those beyond (emoji) are neither space nor link
TOGETHER = 200_000  # characters
MEMO_LENGTH = 60  # longer pieces (addresses, ASCII art) hardly ever come back
AT_ONCE = 1_000_000  # squared lengths of the pieces of one call, in which other threads wait: .3 s at most


Split = tuple[tuple[str, ...], tuple[int, ...]]  # forms, and (start, end, start, end, ...) within the piece


def tokenizer(name: TokenizerName) -> Tokenizer:
    """The function that splits a text into words.

    `spacy`: as the paper does. `whitespace`: for text already tokenised. `words`: as `spacy`, without anything
    that is not a letter, digit or underscore, which is the form that the paper gives SST ("n't" is "n", "t").
    `words_and_digits`: the same, and digits are not hidden. The others are what the paper's code makes of a corpus:
    `words_and_signs` of 20 Newsgroups, `keras` of IMDB, `babi` of bAbI.
    """
    if name == "spacy":
        return MemoisedSpacy()
    if name == "words":
        return letters_only(MemoisedSpacy(), form)
    if name == "words_and_digits":
        return letters_only(MemoisedSpacy(), str.lower)
    if name == "words_and_signs":
        return words_and_signs(MemoisedSpacy())
    if name == "whitespace":
        return split_at_whitespace
    if name == "keras":
        return split_as_keras
    if name == "babi":
        return split_babi
    raise one_of("tokenizer", name, list(get_args(TokenizerName)))


def letters_only(split: Tokenizer, form: Callable[[str], str]) -> Tokenizer:
    """Each word of `split` cut at everything that is not a word character."""

    def cut(text: str) -> Words:
        spans = [
            (start + match.start(), start + match.end())
            for start, end in split(text).offsets.tolist()
            for match in re.finditer(r"\w+", text[start:end])
        ]
        offsets = np.array(spans, dtype=np.int32).reshape(-1, 2)
        return Words(text, tuple(form(text[start:end]) for start, end in spans), offsets)

    return cut


def words_and_signs(split: Tokenizer) -> Tokenizer:
    """Each word of `split` cut as in the code of Jain & Wallace for 20 Newsgroups: words stand between blanks, and the
    last of each run of signs and blanks is kept. So signs stay within a word ("n't" is "n", "'", "t"), before one ("'s"
    is "'", "s"), and at the end of the text; all others are followed by a blank and go."""

    def cut(text: str) -> Words:
        spans, forms = list[tuple[int, int]](), list[str]()
        words = split(text)
        last = len(words) - 1
        for at, (start, end) in enumerate(words.offsets.tolist()):
            if words.forms[at] == DIGITS:
                spans.append((start, end))
                forms.append(DIGITS)
                continue
            for match in re.finditer(r"\w+|\W+", text[start:end]):
                sign = not re.match(r"\w", match.group())
                if sign and start + match.end() == end and at < last:
                    continue
                begin = match.end() - 1 if sign else match.start()
                spans.append((start + begin, start + match.end()))
                forms.append(match.group()[-1] if sign else match.group().lower())
        return Words(text, tuple(forms), np.array(spans, dtype=np.int32).reshape(-1, 2))

    return cut


def of_matches(pattern: str, form: Callable[[str], str], text: str) -> Words:
    """The words that a pattern finds."""
    _codes(text)
    spans = [match.span() for match in re.finditer(pattern, text)]
    forms = tuple(form(text[start:end]) for start, end in spans)
    return Words(text, forms, np.array(spans, dtype=np.int32).reshape(-1, 2))


# What Keras reads as blanks; an apostrophe is not among them.
KERAS_SIGNS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'


def split_as_keras(text: str) -> Words:
    """As Keras's text preprocessing, in which IMDB is passed on: lower case, digits and apostrophes stay."""
    return of_matches(rf"[^\s{re.escape(KERAS_SIGNS)}]+", str.lower, text)


def split_babi(text: str) -> Words:
    """Words as they are written, and a full stop between two sentences; none at the end, and no question mark."""
    return of_matches(r"\w+|\.(?=\s*\w)", str, text)


def tokenise_all(split: Tokenizer, texts: Iterable[str]) -> Iterator[Words]:
    """`map(split, texts)`, faster: many short texts are taken together."""
    if not isinstance(split, MemoisedSpacy):
        yield from map(split, texts)
        return
    together: list[str] = []
    size = 0
    for text in texts:
        together.append(text)
        size += len(text)
        if size >= TOGETHER:
            yield from split.many(together)
            together, size = [], 0
    yield from split.many(together)


def form(surface: str) -> str:
    """What the vocabulary sees of a word: lower case, or "qqq" if it has a digit."""
    if surface.isalpha():  # the usual case, without a look at each character
        return surface.lower()
    return DIGITS if any(c.isdigit() for c in surface) else surface.lower()


def split_at_whitespace(text: str) -> Words:
    """`text.split()`, with offsets."""
    return of_matches(r"\S+", form, text)


class MemoisedSpacy:
    """spaCy's blank English tokenizer with a memory of the pieces it has seen."""

    def __init__(self) -> None:
        self.spacy = _blank_english()
        self._links = Links(self.spacy)
        self._memo: dict[str, Split] = {}

    def __call__(self, text: str) -> Words:
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[Words]:
        """The words of several texts. A line break is put between them, which nothing is matched across."""
        joined = "\n".join(texts)
        begins, ends = cut_long(joined, *self._links.pieces(_codes(joined)))
        pieces = [joined[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        splits = list(map(self._memo.get, pieces))
        if None in splits:
            new = self._learn({piece for piece, split in zip(pieces, splits, strict=True) if split is None})
            known = [split or new[piece] for piece, split in zip(pieces, splits, strict=True)]
        else:
            known = cast("list[Split]", splits)
        forms = tuple(chain.from_iterable([split[0] for split in known]))
        spans = list(chain.from_iterable([split[1] for split in known]))
        counts = np.array([len(split[0]) for split in known], dtype=np.intp)
        offsets = np.array(spans, dtype=np.int32).reshape(-1, 2) + np.repeat(begins, counts)[:, None]
        lengths = np.array([len(text) for text in texts], dtype=np.int32)
        starts = np.cumsum(lengths + 1, dtype=np.int32) - lengths - 1  # of each text in `joined`
        first = [*np.searchsorted(offsets[:, 0], starts).tolist(), len(forms)]  # word of each text
        return [
            Words(text, forms[i:j], offsets[i:j] - start)
            for text, start, (i, j) in zip(texts, starts, pairwise(first), strict=True)
        ]

    def _learn(self, pieces: set[str]) -> dict[str, Split]:
        """Ask spaCy for pieces not met before: in one call, or in several where they are long (`AT_ONCE`)."""
        new: dict[str, Split] = {}
        together: list[str] = []
        work = 0
        for piece in pieces:
            together.append(piece)
            work += len(piece) ** 2
            if work >= AT_ONCE:
                new |= self._ask(together)
                together, work = [], 0
        return new | self._ask(together) if together else new

    def _ask(self, pieces: Sequence[str]) -> dict[str, Split]:
        """Some pieces in one call.

        A line break between two pieces is a word of its own for spaCy, so nothing is matched across it.
        """
        joined = "\n".join(pieces)
        new: dict[str, Split] = {}
        forms: list[str] = []
        spans: list[int] = []
        begin = 0
        for start, length in [*self.spacy(joined).to_array(["IDX", "LENGTH"]).tolist(), (len(joined), 0)]:
            if length == 0 or joined[start] == "\n":
                new[joined[begin:start]] = tuple(forms), tuple(spans)
                forms, spans, begin = [], [], start + 1
            else:
                forms.append(form(joined[start : start + length]))
                spans += (start - begin, start - begin + length)
        if len(self._memo) + len(new) > MEMO_SIZE:
            self._memo.clear()
        self._memo.update((piece, split) for piece, split in new.items() if len(piece) <= MEMO_LENGTH)
        return new


class Links:
    """Blanks between two chunks across which a special case of spaCy could match.

    Special cases are matched as the words that spaCy makes of them without special cases. Two neighbours
    in such a list, one at the end of a chunk and one at the beginning of the next, could be matched across
    one blank (any other white space is itself a word and stops the match). We only compare the last
    character of the one and the first of the other: more pieces than need be are joined, none is missed.
    """

    def __init__(self, spacy: SpacyTokenizer) -> None:
        from spacy.tokenizer import Tokenizer as SpacyTokenizer

        plain = SpacyTokenizer(
            spacy.vocab,
            prefix_search=spacy.prefix_search,
            suffix_search=spacy.suffix_search,
            infix_finditer=spacy.infix_finditer,
            token_match=spacy.token_match,
            url_match=spacy.url_match,
        )
        after: dict[str, set[str]] = {}  # last character of a word -> first characters of the next
        for case in spacy.rules:
            for left, right in pairwise([token.text for token in plain(case)]):
                after.setdefault(left[-1], set()).add(right[0])
        # One bit for each different set of first characters: a pair is linked if both sides share a bit.
        groups = sorted({"".join(sorted(rights)) for rights in after.values()})
        self._left = np.zeros(TABLE, dtype=np.uint64)
        self._right = np.zeros(TABLE, dtype=np.uint64)
        for left, rights in after.items():
            self._left[ord(left)] = 1 << groups.index("".join(sorted(rights)))
        for bit, group in enumerate(groups):
            for right in group:
                self._right[ord(right)] |= np.uint64(1 << bit)
        self._space = np.array([chr(code).isspace() for code in range(TABLE)])

    def pieces(self, codes: NDArray[np.uint32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where each piece begins and ends."""
        codes = np.minimum(codes, TABLE - 1)
        space = np.concatenate(([True], self._space[codes], [True]))
        between = np.flatnonzero(codes[1:-1] == ord(" ")) + 1
        links = between[(self._left[codes[between - 1]] & self._right[codes[between + 1]]) != 0]
        space[links + 1] = False
        edges = np.flatnonzero(space[1:] != space[:-1]).astype(np.int32)
        return edges[::2], edges[1::2]


class MostWords:
    """How many words spaCy can make of a text at most: runs of letters, each other sign, and special cases.

    No rule of its English cuts within a run of letters but a special case that is nothing but letters.
    """

    def __init__(self) -> None:
        cases = _english().rules
        self._more = {case: len(words) - 1 for case, words in cases.items() if case.isalpha() and len(words) > 1}
        assert all(case.isascii() for case in self._more)
        self._letter = np.array([chr(code).isalpha() for code in range(TABLE)])
        self._space = np.array([chr(code).isspace() for code in range(TABLE)])

    def __call__(self, text: str) -> int:
        codes = np.minimum(_codes(text), TABLE - 1)
        letter = self._letter[codes]
        runs = int(letter[:1].sum()) + int((letter[1:] & ~letter[:-1]).sum())
        signs = len(codes) - int((letter | self._space[codes]).sum())
        more = self._more
        cut = len(places_to_cut(text)) if len(text) > MOST_SIGNS else 0
        return runs + signs + cut + sum([more[run] for run in re.findall(r"[A-Za-z]+", text) if run in more])


@cache
def most_words() -> MostWords:
    """One is enough: it remembers nothing of the texts."""
    return MostWords()


@cache
def _english() -> SpacyTokenizer:
    """`spacy.blank("en").tokenizer`, for its rules; it is never asked to split, so it does not grow."""
    import spacy
    from spacy.tokenizer import Tokenizer as SpacyTokenizer

    full = spacy.blank("en").tokenizer
    assert isinstance(full, SpacyTokenizer)
    return full


def _blank_english() -> SpacyTokenizer:
    """The same, without the shapes, flags and norms of words that we do not read."""
    from spacy.tokenizer import Tokenizer as SpacyTokenizer
    from spacy.vocab import Vocab

    full = _english()
    return SpacyTokenizer(
        Vocab(),
        rules=full.rules,
        prefix_search=full.prefix_search,
        suffix_search=full.suffix_search,
        infix_finditer=full.infix_finditer,
        token_match=full.token_match,
        url_match=full.url_match,
    )


def _codes(text: str) -> NDArray[np.uint32]:
    """The code points of a text. Half a surrogate pair is none, and no file can hold it."""
    try:
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    except UnicodeEncodeError as error:
        wrong = f"{text[error.start]!r} at character {error.start}"
        raise Mistake(f"a text has half of a surrogate pair ({wrong}); it must be valid Unicode.") from None
