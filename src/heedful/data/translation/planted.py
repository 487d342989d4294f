"""Translation between two made-up languages whose grammar is known, so that the true source of every word is known.

    source   ba tiro mesu keda ni ba lopa faru            the small dog looks after the cat today
    target   faruz mesuk tirom ok lopax lomiz ok kedan    today dog small OK cat cat OK looks-after

The rules are those that real pairs of languages are hard for:

    verb last            subject verb object -> subject object verb
    swapped adjectives   adjective noun -> noun adjective
    adverbs first        the last word of a clause becomes its first
    one-to-many          a third of the nouns are two words in the target
    many-to-one          a third of the verbs come with a particle, and both are one word in the target
    silent words         articles are not said in the target, where every noun phrase ends in a marker without a source

Every sentence is one clause, or several that a conjunction joins. The hard language has four times the words, and up
to four clauses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.data.formats.rows import Ledger, Raw
from heedful.data.translation.pairs import Links, SentencePair, decisions_of
from heedful.records import Split

CONSONANTS, VOWELS, LAST = "bdfgklmnprstv", "aeiou", "kmnrstxz"
SIZES: dict[Split, int] = {"train": 8000, "dev": 300, "test": 300}
ARTICLES, MARKER, JOINS = ("ba", "lu"), "ok", (("em", "und"), ("or", "ax"))  # conjunctions with their translations
Word = tuple[tuple[str, ...], tuple[str, ...]]  # words of the source, words of the target


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Each entry is what stands in the source and what stands for it in the target."""

    nouns: tuple[Word, ...]
    verbs: tuple[Word, ...]
    adjectives: tuple[Word, ...]
    adverbs: tuple[Word, ...]


def make_lexicon(rng: np.random.Generator, times: int = 1) -> Lexicon:
    seen = {*ARTICLES, MARKER, *(word for pair in JOINS for word in pair)}

    def word(end: str = "") -> str:
        while True:
            syllables = [CONSONANTS[rng.integers(13)] + VOWELS[rng.integers(5)] for _ in range(int(rng.integers(2, 4)))]
            made = "".join(syllables) + (LAST[rng.integers(8)] if end else "")
            if made not in seen:
                seen.add(made)
                return made

    particles = [word() for _ in range(3)]

    def entries(n: int, many: bool = False, particle: bool = False) -> tuple[Word, ...]:
        made = []
        for i in range(n * times):
            source = (word(), particles[i % len(particles)]) if particle and i % 3 == 0 else (word(),)
            target = (word("t"), word("t")) if many and i % 3 == 0 else (word("t"),)
            made.append((source, target))
        return tuple(made)

    return Lexicon(entries(45, many=True), entries(24, particle=True), entries(18), entries(9))


def make_pair(rng: np.random.Generator, lexicon: Lexicon, clauses: int, name: str, split: Split) -> SentencePair:
    """One sentence, drawn, with its translation and all links between them."""
    source: list[str] = []
    target: list[str] = []
    links: list[tuple[int, int]] = []

    def read(words: tuple[str, ...]) -> range:
        begin = len(source)
        source.extend(words)
        return range(begin, len(source))

    def say(words: tuple[str, ...], of: range) -> None:
        links.extend((i, len(target) + j) for i in of for j in range(len(words)))
        target.extend(words)

    def drawn(words: tuple[Word, ...]) -> Word:
        return words[rng.integers(len(words))]

    for clause in range(clauses):
        if clause:
            one, other = JOINS[rng.integers(2)]
            say((other,), read((one,)))
        phrases = []
        verb, place_of_verb = drawn(lexicon.verbs), range(0)
        for phrase in range(2):
            source.append(ARTICLES[rng.integers(2)])
            adjective = drawn(lexicon.adjectives) if rng.random() < 0.5 else None
            of_adjective = range(0) if adjective is None else read(adjective[0])
            noun = drawn(lexicon.nouns)
            phrases.append((noun, read(noun[0]), adjective, of_adjective))
            if phrase == 0:
                place_of_verb = read(verb[0])
        if rng.random() < 0.4:
            adverb = drawn(lexicon.adverbs)
            say(adverb[1], read(adverb[0]))
        for noun, of_noun, adjective, of_adjective in phrases:
            say(noun[1], of_noun)
            if adjective is not None:
                say(adjective[1], of_adjective)
            target.append(MARKER)
        say(verb[1], place_of_verb)
    return SentencePair(name, " ".join(source), " ".join(target), split, tuple(sorted(links)))


def planted_pairs(seed: int, hard: bool = False) -> Iterator[SentencePair]:
    """The splits of a language; no source is in two of them, or twice."""
    name = "planted-translation-hard" if hard else "planted-translation"
    rng = np.random.default_rng([seed, int(hard), 34])
    lexicon, seen = make_lexicon(rng, 4 if hard else 1), set[str]()
    for split, n in SIZES.items():
        for number in range(1, n + 1):
            while True:
                clauses = 1 + int(rng.integers(4) if hard else rng.random() < 0.3)
                pair = make_pair(rng, lexicon, clauses, f"{name}-{split}:{number}", split)
                if pair.source not in seen:
                    break
            seen.add(pair.source)
            yield pair


def generated_pairs(name: str, seed: int) -> Iterator[SentencePair]:
    """A corpus of GENERATED."""
    return sequence_pairs(name, seed) if name in SEQUENCES else planted_pairs(seed, name.endswith("hard"))


def read_generated(_folder: Path | None, _ledger: Ledger, seed: int, *, name: str) -> Iterator[Raw]:
    """Its words as questions, of dev and test: nobody is asked about what was trained on."""
    return decisions_of((pair for pair in generated_pairs(name, seed) if pair.split != "train"), "test")


# The sequence tasks of Pruthi et al. 2020, section 5.2: for each word that is said it is known which one it is of.


TOKENS, SHORTEST, LONGEST = 100, 2, 16  # fewer and shorter than theirs, so that they are learnt in minutes
SEQUENCES = ("bigram-flip", "sequence-copy", "sequence-reverse")
GENERATED = {
    "planted-translation": "translation between two made-up languages, with the true source of every word",
    "planted-translation-hard": "the same with four times the words and up to four clauses",
    "bigram-flip": "sequences whose pairs of words change places (Pruthi et al. 2020)",
    "sequence-copy": "sequences said again (Pruthi et al. 2020)",
    "sequence-reverse": "sequences said backwards (Pruthi et al. 2020)",
}


def sequence_pairs(name: str, seed: int) -> Iterator[SentencePair]:
    """bigram-flip: w1 w2 w3 w4 -> w2 w1 w4 w3, of an even number of words; sequence-copy; sequence-reverse."""
    rng = np.random.default_rng([seed, SEQUENCES.index(name), 2020])
    for split, n in SIZES.items():
        for number in range(1, n + 1):
            length = int(rng.integers(SHORTEST, LONGEST + 1))
            length += length % 2 if name == "bigram-flip" else 0
            words = [f"w{i}" for i in rng.integers(TOKENS, size=length)]
            order = _order(name, length)
            links: Links = tuple(sorted((i, j) for j, i in enumerate(order)))
            yield SentencePair(
                f"{name}-{split}:{number}", " ".join(words), " ".join(words[i] for i in order), split, links
            )


def _order(name: str, length: int) -> list[int]:
    """The source word of each target word."""
    if name == "bigram-flip":
        return [i + 1 - 2 * (i % 2) for i in range(length)]
    return list(range(length)) if name == "sequence-copy" else list(range(length))[::-1]
