"""Agreement sentences: a verb's number, predicted from the words before it (Linzen et al. 2016; Gulordava et al. 2018).

A row has the sentence, `verb_index` and `n_attractors` (nouns of the other number between subject and verb). The text
is what stands before the verb, the label the verb's number, and the evidence the word that decides it: the subject
(Poerner et al. 2018, who ask whether the strongest word is the subject). The files do not say where it is.

In the sentences of Gulordava et al. it was read off their 41 constructions by hand (CUES); the nonsense made of each
has it in the same place. Where a second verb is joined to a first (R), the first one's form tells the number as well.

In those of Linzen et al. a rule finds it, which is meant to be sure and not to find every one: `subject_of`. Where
it finds none, nothing is said of the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CUES: dict[str, tuple[int, ...]] = {
    "L-0": (1,),
    "L-1": (2,),
    "L-2": (10,),
    "L-3": (3,),
    "L-4": (1,),
    "L-5": (4,),
    "L-6": (3,),
    "L-7": (5,),
    "L-8": (19,),
    "L-9": (15,),
    "L-10": (2,),
    "L-11": (3,),
    "L-12": (1,),
    "L-13": (32,),
    "L-14": (2,),
    "L-15": (2,),
    "L-16": (2,),
    "L-17": (2,),
    "L-18": (3,),
    "L-19": (2,),
    "L-20": (2,),
    "L-21": (3,),
    "L-22": (2,),
    "L-23": (7,),
    "L-24": (0,),
    "R-0": (0, 1),
    "R-1": (2, 4),
    "R-2": (15, 16),
    "R-3": (5, 6),
    "R-4": (4, 5),
    "R-5": (4, 5),
    "R-6": (1, 2),
    "R-7": (8, 13),
    "R-8": (0, 1),
    "R-9": (0, 1),
    "R-10": (0, 1),
    "R-11": (1, 4),
    "R-12": (10,),
    "R-13": (18, 19),
    "R-14": (14, 16),
    "R-15": (30, 31),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for phrase in text.split("|"))


INTRODUCTIONS = _phrases(
    "however ,|for example ,|for instance ,|also ,|in addition ,|moreover ,|in fact ,|furthermore ,|today ,|thus ,|"
    "therefore ,|additionally ,|indeed ,|finally ,|similarly ,|currently ,|generally ,|typically ,|usually ,|"
    "often ,|in general ,|in particular ,|as a result ,|on the other hand ,|nevertheless ,|instead ,|likewise ,|"
    "consequently ,|hence ,|sometimes ,|traditionally ,|historically ,|overall ,|unfortunately ,|meanwhile ,|"
    "in contrast ,|by contrast ,|of course ,|apparently ,|basically ,|specifically ,|and|but"
)
PREPOSITIONS = _words(
    "of in for on with at from by to about between among against under over within through into during behind near "
    "across along"
)
DETERMINERS = _words(
    "the a an this that these those some any many several few most all both each every no another its his her their "
    "our my your two three four five six seven eight nine ten various certain numerous other such more one"
)
INSIDE = _words("other certain various such one")  # determiners that stand after others, too
# What begins a clause or an aside, or joins two heads: then the first noun need not be the subject.
DOUBTFUL = _words(
    "is are was were be been being am has have had do does did will would can could may might must shall should not "
    "n't i you he she it we they me him us them who whom whose which what where when why how if whether because while "
    "although though since as than so but and or nor either neither , ; : -- ( ) `` '' \" . ? ! / - there here said "
    "says say according then like via per plus minus except including regarding concerning following until before "
    "after above below upon toward towards without despite unlike onto off out up down around"
)
# What can stand before a preposition and is not a noun: adjectives with a complement, irregular participles, places.
NO_HEADS = _words(
    "equal rich full similar due close different prior available responsible capable aware necessary native unique "
    "common essential typical adjacent next suitable relevant important specific independent eligible present able "
    "free subject worthy critical known born made found seen held built written given taken shown done gone left set "
    "put run sent kept told sold won lost cut hit met led drawn grown thrown shot bound worn torn sung begun broken "
    "chosen driven fallen forgotten hidden ridden risen spoken stolen sworn woken good bad popular successful famous "
    "notable active exclusive inherent integral central familiar compatible comparable parallel opposite contrary "
    "peculiar indigenous endemic south north east west southwest southeast northwest northeast inside outside back "
    "together away first second third last only enough much less least same later long deep wide high tall old far "
    "apart aside instead ahead"
)
ADVERBS = _words(
    "also often still now then usually typically generally always never currently today sometimes only even just both "
    "all once already"
)
PLURALS = _words(
    "people men women children teeth feet mice geese criteria phenomena bacteria fungi alumni nuclei stimuli larvae "
    "algae genera taxa fishermen businessmen policemen gentlemen spokesmen sportsmen"
)
EITHER = _words(
    "species series data media means police staff fish sheep deer aircraft crew news politics physics mathematics "
    "economics"
)
LONGEST = 5  # words of a noun phrase behind its determiners


def before_verb(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the words before the verb as its text, and its evidence where it is known."""
    words = str(row["text"]).split(" ")
    verb = row["verb_index"]
    if not isinstance(verb, int) or not 0 < verb < len(words):
        raise ValueError("verb_index is not a place behind the first word")
    made = {**row, "text": " ".join(words[:verb])}
    places = cues_of(str(row.get("id", ""))) or _subject(words[:verb], row)
    return made | ({"evidence_tokens": list(places)} if places else {})


def _subject(words: Sequence[str], row: Mapping[str, Any]) -> tuple[int, ...]:
    place = subject_of(words, row["label"] == 1, int(row["n_attractors"]))
    return () if place is None else (place,)


def cues_of(identifier: str) -> tuple[int, ...]:
    """By the name of a row of Gulordava et al.: "L__NOUN_VERB_VERB-12-3" is of the construction L-12."""
    form, _, rest = identifier.partition("__")
    return CUES.get(f"{form}-{rest.split('-')[1]}", ()) if rest.count("-") == 2 else ()


def subject_of(words: Sequence[str], singular: bool, attractors: int) -> int | None:
    """The place of the subject's head among the words before a verb; None where the rule is not sure.

    The words must be one noun phrase, but for a known introduction before and adverbs behind: a head alone (its last
    word), or a head with prepositional phrases. Anything that could begin a clause, join two heads or stand
    between them makes it doubtful. The head must have the verb's number, and the nouns behind it must be able to be as
    many attractors as the file counts.
    """
    begin = next((len(some) for some in INTRODUCTIONS if tuple(words[: len(some)]) == some), 0)
    end = len(words)
    while end > begin and (words[end - 1] in ADVERBS or words[end - 1].endswith("ly")):
        end -= 1
    phrase = words[begin:end]
    if any(word in DOUBTFUL or any(c.isdigit() for c in word) for word in phrase):
        return None
    phrases = noun_phrases(phrase)
    if phrases is None:
        return None
    first, others = phrases[0], phrases[1:]
    head = first[-1]
    if not _is_head(head) or is_plural(head) is singular:
        return None
    behind = [len(some) > LONGEST - 1 or some[-1].endswith(("ed", "ing")) for some in others]
    if any(behind) or len(first) > LONGEST + 1:
        return None
    least = sum(is_plural(some[-1]) is singular for some in others)
    most = sum(is_plural(word) is singular for some in others for word in some)
    if not least <= attractors <= most:
        return None
    place = next((i for i, word in enumerate(phrase) if word in PREPOSITIONS), len(phrase)) - 1
    return begin + place


def noun_phrases(words: Sequence[str]) -> list[list[str]] | None:
    """Phrases between single prepositions, without the determiners they begin with; None where one is empty, or has a
    determiner further in, which would begin another phrase."""
    found: list[list[str]] = [[]]
    for word in words:
        if word in PREPOSITIONS:
            found.append([])
        else:
            found[-1].append(word)
    bare = []
    for number, phrase in enumerate(found):
        begin = next((i for i, word in enumerate(phrase) if word not in DETERMINERS), len(phrase))
        inside = DETERMINERS - INSIDE if number == 0 else DETERMINERS
        if begin == len(phrase) or any(word in inside for word in phrase[begin:]):
            return None
        bare.append(phrase[begin:])
    return bare


def _is_head(word: str) -> bool:
    return (
        len(word) > 2
        and word not in DETERMINERS | NO_HEADS | EITHER
        and not word.endswith(("ed", "ing", "ly", "'s", "'"))
    )


def is_plural(word: str) -> bool:
    """By its form; what is not a noun has none, and counts as singular."""
    return word in PLURALS or (len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s")))
