"""Labels: which spellings are one class, the order and number of each, a model's beside a corpus's.

One class are spellings that are equal without outer white space, equal as numbers (1, 1.0, 01) or equal as
truth values (True, true). Spellings that differ in case only (Pos, pos) may be a slip or may be meant: the
user is asked. Whoever lists the labels has answered: then case does not matter, unless the list has both.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from heedful.data.text.alike import codes, looks
from heedful.errors import Mistake, short

MISSING = frozenset({"", "nan", "na", "n/a", "<na>", "#n/a", "null"})  # what tables write where nothing is known
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TRUTH = frozenset({"true", "false"})
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
SHOWN = 8  # labels in a message


def check_names(labels: object) -> None:
    """Of labels that are given for a model: names in their order. A string is not its letters, a set has no order."""
    if isinstance(labels, str) or not isinstance(labels, Sequence) or not all(isinstance(name, str) for name in labels):
        raise Mistake(f"labels={short(labels)}: give a list of names, one for each output of the model.")


def label_name(value: Any) -> str:
    """1, 1.0, True and " spam " are called "1", "1", "true" and "spam"; "" where there is none (None, NaN).

    A ValueError says why a value is not a label: a list, bytes, an infinite number.
    """
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, int | float | Decimal):
        raise ValueError(f"the label is a {type(value).__name__}; a name or a number is needed")
    if value != value:
        return ""
    if value in (float("inf"), float("-inf")):
        raise ValueError("the label is an infinite number")
    try:
        return str(int(value)) if value == int(value) else str(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        raise ValueError("the label is a number of thousands of digits") from None


def label_value(label: str) -> str | Decimal:
    """What two spellings of one class share: the number, the truth value, or the name itself."""
    name = label.strip()
    if NUMBER.fullmatch(name):
        try:
            return Decimal(name)
        except InvalidOperation:  # an exponent beyond all bounds
            return name
    return name.lower() if name.lower() in TRUTH else name


def label_trouble(label: str) -> str | None:
    """Why a spelling cannot be a label, if it cannot."""
    if not label.strip():
        return "the label is empty"
    if label.strip().lower() in MISSING:
        return f"the label {label!r} says that there is none (if it is meant, list it with --labels)"
    if CONTROL.search(label):
        return f"a control character is in the label {label[:40]!r}, which cannot be shown"
    if not label.isascii():
        try:
            label.encode()
        except UnicodeEncodeError:
            return "half of a surrogate pair is in the label, which is not a character"
    return None


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """By alphabet; numbers, and names that end in one, by that number."""

    def key(label: str) -> tuple[str, float, str]:
        try:
            return ("", float(label), label)
        except ValueError:
            match = re.fullmatch(r"(.*?)(\d+)", label)
            return (match[1], float(match[2]), label) if match else (label, 0.0, label)

    return tuple(sorted(labels, key=key))


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way a label is written in the data: by how many rows, and where first."""

    label: str
    rows: int
    first: str

    def __str__(self) -> str:
        return f"{self.label!r} ({self.rows} rows, the first at {self.first})"


def find_spellings(rows: Iterable[tuple[str, str]]) -> list[Spelling]:
    """Of (label, place) pairs, in the order of first appearance."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for label, place in rows:
        counts[label] += 1
        first.setdefault(label, place)
    return [Spelling(label, counts[label], place) for label, place in first.items()]


def name_classes(spellings: Iterable[Spelling]) -> dict[str, str]:
    """Each spelling's class, called by its most frequent spelling (the first of several)."""
    by_value: dict[str | Decimal, list[Spelling]] = {}
    for spelling in spellings:
        by_value.setdefault(label_value(spelling.label), []).append(spelling)
    return {
        spelling.label: max(alike, key=lambda one: one.rows).label for alike in by_value.values() for spelling in alike
    }


class CaseVariants(Mistake):
    """Labels of data that differ in case alone: `folded` are their names where those are one, `apart` all of them."""

    def __init__(self, sentence: str, folded: Sequence[str], apart: Sequence[str]) -> None:
        super().__init__(sentence)
        self.folded, self.apart = tuple(folded), tuple(apart)


def refuse_case_variants(spellings: Sequence[Spelling], source: str) -> None:
    """Ask the user where classes differ in case alone."""
    classes = name_classes(spellings)
    by_case: dict[str, list[Spelling]] = {}
    for spelling in spellings:
        by_case.setdefault(spelling.label.strip().casefold(), []).append(spelling)
    for alike in by_case.values():
        if len({classes[spelling.label] for spelling in alike}) > 1:
            names = dict.fromkeys(classes[spelling.label] for spelling in spellings)
            one = {name.casefold(): name for name in reversed(names)}
            folded, apart = sort_labels(one.values()), sort_labels(names)
            as_one, as_two = (",".join(some) for some in (folded, apart))
            raise CaseVariants(
                f"{source}: the labels {' and '.join(map(str, alike))} differ in case only. If they are one class, "
                f"list the labels with --labels {_short(as_one)}; if not, with --labels {_short(as_two)}.",
                folded,
                apart,
            )


def refuse_look_alikes(spellings: Sequence[Spelling], source: str) -> None:
    """Classes that a person cannot tell apart: composed and decomposed letters, full width, another script's o."""
    names = list(dict.fromkeys(name_classes(spellings).values()))
    first: dict[str, str] = {}
    for name in names:
        before = first.setdefault(looks(name).casefold(), name)
        if before.strip().casefold() == name.strip().casefold():  # the same, or asked about for its case
            continue
        one, other = (next(s for s in spellings if s.label == each) for each in (before, name))
        odd = codes(name, before) or codes(before, name) or "the same letters, composed in another way"
        listed = _short(",".join(sort_labels(names)))
        raise Mistake(
            f"{source}: the labels {one} and {other} look alike and are written differently: {odd}. If they are one "
            f"class, write them in one way; if not, list all labels with --labels {listed}."
        )


def _short(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else text[:longest] + "..."


class LabelNumbers:
    """The number of a label by any of its spellings.

    `listed` labels were given with their order, so a row may name one by its place in the list, but only where
    no label looks like a number itself; and case does not matter where it does not tell two of them apart.
    """

    def __init__(self, names: Sequence[str], *, listed: bool) -> None:
        self.names = tuple(names)
        self._known: dict[str, int | None] = {}
        self._by_value: dict[str | Decimal, int] = {}
        for i, name in enumerate(self.names):
            before = self._by_value.setdefault(label_value(name), i)
            if before != i:
                raise Mistake(
                    f"the label {name!r} is listed twice."
                    if name == self.names[before]
                    else f"the labels {self.names[before]!r} and {name!r} are listed, which are one class."
                )
        self._by_case: dict[str, int] = {}
        self._indexed = listed and not any(isinstance(value, Decimal) for value in self._by_value)
        if listed:
            folded = Counter(name.strip().casefold() for name in self.names)
            self._by_case = {
                name.strip().casefold(): i for i, name in enumerate(self.names) if folded[name.strip().casefold()] == 1
            }

    def find(self, label: str) -> int | None:
        """None where it is none of the labels."""
        if label not in self._known:
            self._known[label] = self._find(label)
        return self._known[label]

    def _find(self, label: str) -> int | None:
        value = label_value(label)
        if value in self._by_value:
            return self._by_value[value]
        if self._indexed and isinstance(value, Decimal):
            return next((i for i in range(len(self.names)) if i == value), None)
        return self._by_case.get(label.strip().casefold())


class NoMatch(Mistake):
    """Labels of data of which a model knows none by that name, or two by one name."""

    unsure = False  # more labelled texts could tell which is which


def match_labels(
    model_labels: Sequence[str], corpus_labels: Sequence[str], label_map: Mapping[str, str] | None = None
) -> tuple[int, ...]:
    """For each label of a corpus the number that a model has for it, by name; the model may know more.

    `label_map` says for labels of the corpus which of the model's they are, and several of them may be one. Names are
    one as in `label_value`, or else but for upper and lower case where that leaves no doubt. The place in a list is not
    a name: models and corpora number differently.
    """
    said = read_label_map(label_map or {}, model_labels, corpus_labels)
    by_name = [label for label in corpus_labels if label not in said]
    numbers = {label: find_label(label, model_labels) for label in by_name}
    unknown = [label for label in by_name if numbers[label] is None]
    if unknown or len(set(numbers.values())) < len(numbers):
        what = f"{unknown[0]!r} is none of the model's" if unknown else "two of the data are one of the model's"
        raise NoMatch(
            f"the labels do not match: {what}. The model's are {show_labels(model_labels)}; those of the data are "
            f"{show_labels(corpus_labels)}."
        )
    matched = said | {label: number for label, number in numbers.items() if number is not None}
    return tuple(matched[label] for label in corpus_labels)


def find_label(label: str, labels: Sequence[str]) -> int | None:
    """The number of the one that has this name: as in `label_value`, or else but for case where one alone has it."""
    number = LabelNumbers(labels, listed=False).find(label)
    if number is not None:
        return number
    for same in (str.strip, looks):  # another case, then another form of the same characters
        alike = [i for i, name in enumerate(labels) if same(name).casefold() == same(label).casefold()]
        if alike:
            return alike[0] if len(alike) == 1 else None
    return None


def read_label_map(
    label_map: Mapping[str, str], model_labels: Sequence[str], corpus_labels: Sequence[str]
) -> dict[str, int]:
    """By the corpus's own spelling of a label, the number that the model has for it. Labels that these texts do not
    have are left out: a sample of them may lack one."""
    said: dict[str, int] = {}
    for label, name in label_map.items():
        number, place = find_label(name, model_labels), find_label(label, corpus_labels)
        if number is None:
            shown = show_labels(model_labels)
            raise Mistake(f"--label-map {label}={name}: {name!r} is not a label of the model, which are {shown}.")
        if place is not None:
            said[corpus_labels[place]] = number
    return said


def show_label_map(label_map: Mapping[str, str]) -> str:
    """As it is typed behind --label-map, quoted for a shell where that is needed."""
    plain = all(part == part.strip() and not set(part) & set(",={") for pair in label_map.items() for part in pair)
    pairs = ",".join(f"{label}={name}" for label, name in label_map.items())
    return shlex.quote(pairs if plain else json.dumps(label_map, ensure_ascii=False))


def show_labels(labels: Sequence[str]) -> str:
    return ", ".join(labels[:SHOWN]) + (f", ... ({len(labels)} in all)" if len(labels) > SHOWN else "")


def count_labels(numbers: Iterable[int | None], labels: Sequence[str]) -> Mapping[str, int]:
    """How many examples each label has, in the order of the labels."""
    counts = Counter(numbers)
    return {label: counts[i] for i, label in enumerate(labels)}
