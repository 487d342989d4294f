"""The simple form: `<corpus>/<split>.jsonl[.gz]`, one JSON object on each line.

`text` and `label` are always there (`answer` may stand for `label`). `hypothesis` makes it NLI,
`question` makes it QA. What is known about the deciding words comes in one of these fields, and is
turned into stretches of characters:

    evidence    [[start, end], ...]  characters (what `heedful data prepare` writes)
    evidences   [[start, end], ...]  words of text.split()           (ERASER movies)
    evidence_tokens  [number, ...]   words of text.split(" ")        (HateXplain)
    supporting  [number, ...]        sentences that end in a dot     (bAbI)
    spans       [{what: string}, ...]  every place of the strings    (ADE corpus)
    n_sst       number               the first words of text.split(" ")  (SST + Wikipedia)
    verb_index  number               a word of text.split(" "); the text ends before it (readers/agreement.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.data.formats.agreement import before_verb
from heedful.data.formats.evidence import character_span, place_of, places_of
from heedful.data.formats.rows import SPLIT_NAMES, Ledger, Raw, Spans, json_lines, word_spans
from heedful.errors import Mistake
from heedful.records import Split

SENTENCE = re.compile(r"[^.\s][^.]*\.")


def split_files(folder: Path) -> list[tuple[Split | None, Path]]:
    """The files of a corpus in this form, with the split that each one's name tells (None for `all`)."""
    found: list[tuple[Split | None, Path]] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return []
    for ending in (".jsonl", ".jsonl.gz"):
        for path in paths:
            name = path.name.lower().removesuffix(ending)
            if path.name.lower().endswith(ending) and (name == "all" or name in SPLIT_NAMES):
                found.append((SPLIT_NAMES.get(name), path))
    for split in dict.fromkeys(split for split, _ in found):
        files = [path.name for other, path in found if other == split]
        if len(files) > 1:
            raise Mistake(f"{folder} has {' and '.join(files)} for one split; keep one of them.")
    return found


def read_simple(
    files: Iterable[tuple[Split | None, Path]], ledger: Ledger, text_field: str = "text", split_field: str | None = None
) -> Iterator[Raw]:
    """`text_field` is taken where a row has it, else `text`; `split_field` can overrule the file's split."""
    for split, path in files:
        for line, row in json_lines(path, ledger):
            if "verb_index" in row:
                try:
                    row = before_verb(row)
                except (KeyError, TypeError, ValueError):
                    ledger.bad(
                        path, line, "the 'verb_index', 'label' and 'n_attractors' of an agreement sentence do not fit"
                    )
                    continue
            text = row.get(text_field, row.get("text"))
            label = row.get("label", row.get("answer"))
            query = row.get("hypothesis", row.get("question"))
            if not isinstance(text, str):
                ledger.bad(path, line, "there is no string 'text'")
            elif not isinstance(label, str | int) or isinstance(label, bool):
                ledger.bad(path, line, "there is no 'label' that is a string or a whole number")
            elif query is not None and not isinstance(query, str):
                ledger.bad(path, line, "the 'hypothesis' or 'question' is not a string")
            else:
                own = split
                if split_field is not None and row.get(split_field) is not None:
                    name = str(row[split_field]).strip().lower()
                    if name not in SPLIT_NAMES:
                        ledger.bad(path, line, f"the split {name[:40]!r} is not train, dev or test")
                        continue
                    own = SPLIT_NAMES[name]
                try:
                    evidence = evidence_of(row, text)
                except (TypeError, ValueError, IndexError, AttributeError) as error:
                    ledger.bad(path, line, f"the evidence does not fit the text ({error})")
                    continue
                candidates = row.get("candidates")
                if candidates is not None and not _strings(candidates):
                    ledger.bad(path, line, "the 'candidates' are not a list of strings")
                    continue
                yield Raw(
                    id=f"{path.name}:{line}",
                    text=text,
                    label=str(label),
                    split=own,
                    query=query,
                    evidence=evidence,
                    candidates=None if candidates is None else tuple(map(str, candidates)),
                )


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def evidence_of(row: Mapping[str, Any], text: str) -> Spans | None:
    """The deciding stretches of characters, from whichever field of the row tells them."""
    if "evidence" in row:
        return tuple(character_span(pair, text) for pair in row["evidence"])
    if "evidences" in row:
        words = word_spans(text)
        return tuple(_stretch(words, pair) for pair in row["evidences"])
    if "evidence_tokens" in row:
        words = word_spans(text, " ")
        return tuple(words[place_of(i, len(words))] for i in row["evidence_tokens"])
    if "supporting" in row:
        sentences = [match.span() for match in SENTENCE.finditer(text)]
        return tuple(sentences[place_of(i, len(sentences))] for i in row["supporting"])
    if "spans" in row:
        strings = dict.fromkeys(string for span in row["spans"] for string in span.values())
        return tuple(span for string in strings for span in places_of(string, text))
    if "n_sst" in row:
        words = word_spans(text, " ")
        last = place_of(row["n_sst"], len(words) + 1)
        return () if last == 0 else ((words[0][0], words[last - 1][1]),)
    return None


def _stretch(words: Sequence[tuple[int, int]], pair: Any) -> tuple[int, int]:
    """From the first to the last of some words; the end is exclusive."""
    start, end = pair
    first, last = place_of(start, len(words)), place_of(end - 1, len(words))
    if last < first:
        raise ValueError(f"the words {start} to {end} are none")
    return words[first][0], words[last][1]
