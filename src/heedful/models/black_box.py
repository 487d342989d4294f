"""The smallest model: a function from texts to probabilities. Nothing is known of its inside.

Its tokens are the words of the text as it was written, so a word is deleted from the string itself, or replaced in it,
and blanks stay right: where words go, one blank is left between what stays, if there was one. A token is a word at its
place in one text; a batch carries the texts that its tokens are of, so that the network can write them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from unicodedata import category

import numpy as np
import torch
from torch import Tensor

from heedful.data.corpora.labels import check_names
from heedful.data.text.batching import Texts
from heedful.data.text.tokenise import Tokenizer, tokenizer
from heedful.data.text.units import Units
from heedful.errors import Mistake, one_of, short
from heedful.models.link import IDENTITY, SIGMOIDS, SOFTMAX, Link
from heedful.models.model import Model
from heedful.models.network import Output
from heedful.records import Batch, Part, Reserved, Tokens, Words

Problem = Literal["single_label_classification", "multi_label_classification", "regression"]
LINKS: dict[str, Link] = {
    "single_label_classification": SOFTMAX,
    "multi_label_classification": SIGMOIDS,
    "regression": IDENTITY,
}
PAD, MASK = 0, 1  # token ids; those of words are above
PLACES = 20  # bits of a token id that say at which place of its text the word is
NUMBERS = 5  # bytes that say which text; so every id, times four, is a whole number of 64 bits
OPENING, CLOSING = ("Ps", "Pi"), ("Pe", "Pf", "Po")  # kinds of punctuation, as Unicode has them
LEAST = 1e-12  # a probability of 0 has no logarithm: it counts as this
SUM = 1e-3  # how far from 1 the probabilities of a text may sum
# How far answers to one text may lie apart, as a share of the largest: more than rounding in 16 bits. Tried once.
APART, TRIED = 5e-3, 8


@dataclass(frozen=True, slots=True)
class OfStrings(Reserved):
    """With the texts that were encoded together, by the id of their first word: they live as long as their batches."""

    texts: Mapping[int, Words] = field(default_factory=dict)


class StringEncoder:
    """Words of texts, each with a number of its own. Equal texts have equal numbers, today and tomorrow."""

    reserved = Reserved(pad=PAD, unknown=None, mask=MASK)

    @cached_property
    def _split(self) -> Tokenizer:
        return tokenizer("spacy")

    def split(self, text: str) -> Words:
        return self._split(text)

    def encode(self, texts: Sequence[Words], part: Part = "passage") -> Texts:
        known: dict[int, Words] = {}
        for given in texts:
            if isinstance(given, Units):
                given.whole()
        begins = [number_of(words, known) for words in texts]
        lengths = np.array([len(words) for words in texts], dtype=np.int64)
        flat = [np.arange(begin, begin + n) for begin, n in zip(begins, lengths.tolist(), strict=True)]
        ids = np.concatenate(flat) if flat else np.zeros(0, np.int64)
        words = np.ones(len(ids), dtype=np.bool_)
        reserved = OfStrings(PAD, None, MASK, known)
        return Texts(ids, lengths, np.cumsum(lengths) - lengths, words, reserved=reserved)

    def pieces(self, words: Words, part: Part = "passage") -> Words:
        return words

    def knows(self, words: Words) -> list[bool]:
        return [True] * len(words)

    def names(self, ids: Sequence[int]) -> list[str]:
        """By their places: the texts live with their batches."""
        return ["[MASK]" if i == MASK else f"word {i % (1 << PLACES) + 1}" for i in ids]


def number_of(words: Words, known: dict[int, Words]) -> int:
    """The id of a text's first word, from the text itself: the same whatever else is encoded with it."""
    content = words.text.encode(errors="surrogatepass") + words.offsets.tobytes()
    digest = hashlib.blake2b(content, digest_size=NUMBERS).digest()
    begin = (1 + int.from_bytes(digest)) << PLACES
    while known.setdefault(begin, words) != words:  # another text has this number, once in 2^40 times
        begin += 1 << PLACES
    return begin


def write(texts: Mapping[int, Words], ids: list[int], mask: str) -> str:
    """The string that these tokens are: of one text, some words deleted, some replaced by `mask`."""
    own = next((i for i in ids if i > MASK), None)
    if own is None:  # nothing is left of the text that could tell which it was
        return " ".join([mask] * len(ids))
    begin = own >> PLACES << PLACES
    words = texts[begin]
    # words are deleted or replaced, never both: where some are replaced, all are there
    places = range(len(ids)) if MASK in ids else [i - begin for i in ids]
    text, spans = words.text, words.offsets.tolist()
    written, last = "", -1
    for place, token in zip(places, ids, strict=True):
        gaps = [text[spans[i][1] : spans[i + 1][0]] for i in range(max(last, 0), place)]
        gap = text[: spans[0][0]] if last < 0 else gap_left(gaps, text[spans[last][1] - 1], text[spans[place][0]])
        written += gap + (mask if token == MASK else text[spans[place][0] : spans[place][1]])
        last = place
    return written + (text[spans[-1][1] :] if last == len(spans) - 1 else "")


def gap_left(gaps: list[str], left: str, right: str) -> str:
    """What stays between two words when those between them go; `gaps` stood between them all.

    A blank, if there was any; but "(" before it and "," after it stay at the word they stood at.
    """
    if (gaps[-1] == "" and category(right) in CLOSING) or (gaps[0] == "" and category(left) in OPENING):
        return ""
    return next((gap for gap in gaps if gap), "")


class BlackBox:
    """`predict(texts)` (or pairs of texts) as a network. Its logits are logarithms of its probabilities."""

    def __init__(
        self,
        predict: Callable[[list[Any]], Any],
        labels: Sequence[str],
        problem_type: Problem = "single_label_classification",
        has_query: bool = False,
        mask: str = "[MASK]",
        batch_size: int = 256,
    ) -> None:
        if problem_type not in LINKS:
            raise one_of("problem type", problem_type, list(LINKS))
        if not isinstance(batch_size, int) or batch_size < 1:
            raise Mistake(f"the batch size must be a number of texts, at least 1, not {short(batch_size)}.")
        if not isinstance(mask, str):
            raise Mistake(f"mask={short(mask)}: what stands for a hidden word must be a string.")
        self.predict, self.labels = predict, tuple(labels)
        self.link, self.has_query, self.mask, self.batch_size = (LINKS[problem_type], has_query, mask, batch_size)
        self.n_labels = len(self.labels)
        self._repeats = self._alone = False  # tried, and so

    can = frozenset({"predicts"})
    device, dtype = torch.device("cpu"), torch.float64
    bytes_per_token = 2**10  # strings are small; how many texts go together is `batch_size`

    def __call__(self, batch: Batch, *args: Any, **given: Any) -> Output:
        if args or given:
            raise Mistake("nothing can be given to a black box but texts: it has no embeddings and no attention.")
        texts: list[Any] = self._strings(batch.passage)
        if batch.query is not None:
            texts = list(zip(texts, self._strings(batch.query), strict=True))
        number = {text: i for i, text in enumerate(dict.fromkeys(texts))}  # equal texts are asked once
        different = list(number)
        size = self.batch_size
        answers = [self._ask(different[i : i + size]) for i in range(0, len(different), size)]
        told = torch.cat(answers)  # (different texts, labels)
        self._try_again(different[:TRIED], told[:TRIED])
        p = told[[number[text] for text in texts]]  # (batch, labels)
        return Output(self._logits(p), self.link)

    def _try_again(self, texts: list[Any], told: Tensor) -> None:
        """Whether the function says the same once more, in another order and alone. The first texts tell.

        One that draws at random (dropout left on), or answers for its whole list together, has no explanation.
        """
        if not self._repeats:
            self._compare(texts, told, self._ask(texts[::-1]).flip(0), "once more")
            self._repeats = True
        if not self._alone and len(texts) > 1:
            self._compare(texts[:1], told[:1], self._ask(texts[:1]), "alone")
            self._alone = True

    def _compare(self, texts: list[Any], told: Tensor, again: Tensor, how: str) -> None:
        apart = (told - again).abs().amax(1)  # (texts,)
        if float(apart.max()) > APART * max(float(told.abs().max()), 1e-12):
            place = int(apart.argmax())
            label = int((told - again)[place].abs().argmax())
            raise Mistake(
                f"the function says {float(told[place, label]):.3g} for {self.labels[label]!r} of "
                f"{short(texts[place])}, and {float(again[place, label]):.3g} when it is asked {how}: answers must "
                "depend on the text alone. Switch dropout and sampling off (module.eval()), and answer each text for "
                "itself."
            )

    def _strings(self, tokens: Tokens) -> list[str]:
        rows = zip(tokens.ids.tolist(), tokens.present.sum(1).tolist(), strict=True)
        assert isinstance(tokens.reserved, OfStrings)
        return [write(tokens.reserved.texts, ids[:n], self.mask) for ids, n in rows]

    def _logits(self, p: Tensor) -> Tensor:
        if self.link is IDENTITY:
            return p
        p = p.clamp(min=LEAST)
        return p.log() if self.link is SOFTMAX else p.log() - (1 - p).clamp(min=LEAST).log()

    def _ask(self, texts: list[Any]) -> Tensor:
        answer = in_order(self.predict(list(texts)), self.labels)
        if isinstance(answer, Tensor):
            answer = answer.detach().cpu().double()  # NumPy has no bfloat16
        try:
            p = torch.as_tensor(np.asarray(answer, dtype=np.float64).copy())
        except (TypeError, ValueError):
            raise Mistake(
                f"the function gave {type(answer).__name__}, which is not an array of numbers (texts, labels)."
            ) from None
        if tuple(p.shape) != (len(texts), self.n_labels):
            raise Mistake(
                f"the function gave an array {tuple(p.shape)} for {len(texts)} texts and {self.n_labels} labels "
                f"({', '.join(self.labels)}); it must be {(len(texts), self.n_labels)}."
            )
        if not torch.isfinite(p).all():
            raise Mistake("the function gave numbers that are not finite.")
        if self.link is not IDENTITY and bool(((p < -SUM) | (p > 1 + SUM)).any()):
            raise Mistake(
                f"the function gave {float(p[(p < -SUM) | (p > 1 + SUM)][0]):.3g}, which is not a probability "
                "(problem_type='regression' is for numbers)."
            )
        if self.link is SOFTMAX and bool(((p.sum(1) - 1).abs() > SUM).any()):
            raise Mistake(
                f"the probabilities of a text sum to {float(p.sum(1)[(p.sum(1) - 1).abs().argmax()]):.6g}, not to 1 "
                "(problem_type='multi_label_classification' is for labels that can be true together)."
            )
        return p


def in_order(answer: Any, labels: Sequence[str]) -> Any:
    """The columns of a table in the order of the labels, where they are called like these; others have numbers only."""
    columns = getattr(answer, "columns", None)
    if columns is None or callable(columns):
        return answer
    names = [str(name) for name in columns]
    if names == list(labels) or names == [str(i) for i in range(len(names))]:
        return answer
    if len(set(names)) < len(names) or not set(labels) <= set(names):
        raise Mistake(
            f"the function gave a table with the columns {', '.join(names)}, and the labels are {', '.join(labels)}: "
            "call the columns like the labels."
        )
    return answer[[column for name in labels for column in columns if str(column) == name]]


def check_classes(predict: object, labels: Sequence[str]) -> None:
    """A method of a model that has `classes_`, as scikit-learn calls the order of its columns."""
    found = getattr(getattr(predict, "__self__", None), "classes_", None)
    if found is None or isinstance(found, str) or not hasattr(found, "__len__"):
        return
    own = [str(one) for one in found]
    if own != list(labels) and sorted(own) == sorted(labels):
        raise Mistake(
            f"labels={list(labels)}: the columns of this function are in the order of its classes_: give labels={own}."
        )


def wrap_predict(
    predict: Callable[[list[Any]], Any],
    *,
    labels: Sequence[str],
    query: bool = False,
    problem_type: Problem = "single_label_classification",
    mask: str = "[MASK]",
    batch_size: int = 256,
    name: str = "black box",
) -> Model:
    """A model of a function: a list of texts (with `query`: of pairs) -> probabilities (texts, labels).

    mask: what stands for a hidden word.
    """
    if not callable(predict):
        raise Mistake(f"a {type(predict).__name__} cannot be called: give a function of a list of texts.")
    check_names(labels)
    if not labels or len(set(labels)) < len(labels):
        raise Mistake("give the labels of the function's columns, each with a name of its own.")
    check_classes(predict, labels)
    network = BlackBox(predict, labels, problem_type, query, mask, batch_size)
    return Model(name, network, StringEncoder(), tuple(labels), "nli" if query else "classification")
