"""The simple form: `<corpus>/<split>.jsonl[.gz]`, one JSON object on each line.

`text` and `label` are always there (`answer` may stand for `label`). `hypothesis` makes it NLI,
`question` makes it QA. What is known about the deciding words comes in one of these fields, and is
turned into stretches of characters:

    evidence    [[start, end], ...]  characters (what `heedful data prepare` writes)
    evidences   [[start, end], ...]  words of text.split()           (ERASER movies)
    supporting  [number, ...]        sentences that end in a dot     (bAbI)
    spans       [{what: string}, ...]  every place of the strings    (ADE corpus)
    n_sst       number               the first words of text.split(" ")  (SST + Wikipedia)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.data.readers.lines import json_lines
from heedful.data.readers.rows import SPLIT_NAMES, Ledger, Raw, Spans, word_spans
from heedful.errors import Mistake
from heedful.records import Split

SENTENCE = re.compile(r"[^.\s][^.]*\.")


def split_files(folder: Path) -> list[tuple[Split | None, Path]]:
    """The files of a corpus in this form, with the split that each one's name tells (None for `all`)."""
    found: list[tuple[Split | None, Path]] = []
    for path in sorted(folder.glob("*.jsonl")) + sorted(folder.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".gz").removesuffix(".jsonl")
        if name == "all" or name in SPLIT_NAMES:
            found.append((SPLIT_NAMES.get(name), path))
    for split in dict.fromkeys(split for split, _ in found):
        files = [path.name for other, path in found if other == split]
        if len(files) > 1:
            raise Mistake(f"{folder} has {' and '.join(files)} for one split; keep one of them.")
    return found


def read_simple(
    folder: Path, ledger: Ledger, text_field: str = "text", split_field: str | None = None
) -> Iterator[Raw]:
    """`text_field` is taken where a row has it, else `text`; `split_field` can overrule the file's split."""
    for split, path in split_files(folder):
        for line, row in json_lines(path, ledger):
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
                own = SPLIT_NAMES.get(str(row[split_field])) if split_field in row else split
                try:
                    evidence = evidence_of(row, text)
                except (TypeError, ValueError, IndexError, AttributeError):
                    ledger.bad(path, line, "the evidence does not fit the text")
                    continue
                candidates = row.get("candidates")
                yield Raw(
                    id=f"{path.name}:{line}",
                    text=text,
                    label=str(label),
                    split=own,
                    query=query,
                    evidence=evidence,
                    candidates=None if candidates is None else tuple(map(str, candidates)),
                )


def evidence_of(row: Mapping[str, Any], text: str) -> Spans | None:
    """The deciding stretches of characters, from whichever field of the row tells them."""
    if "evidence" in row:
        return tuple((int(start), int(end)) for start, end in row["evidence"])
    if "evidences" in row:
        words = word_spans(text)
        return tuple((words[start][0], words[end - 1][1]) for start, end in row["evidences"])
    if "supporting" in row:
        sentences = [match.span() for match in SENTENCE.finditer(text)]
        return tuple(sentences[i] for i in row["supporting"])
    if "spans" in row:
        strings = dict.fromkeys(string for span in row["spans"] for string in span.values())
        return tuple(m.span() for s in strings for m in re.finditer(re.escape(s), text))
    if "n_sst" in row:
        words = word_spans(text, " ")[: row["n_sst"]]
        return ((words[0][0], words[-1][1]),)
    return None
