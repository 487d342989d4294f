"""CNN questions (Hermann et al. 2015): `questions/{training,validation,test}/<hash>.question`.

A file has five parts with an empty line between them: address, passage, question (with @placeholder),
answer, and the names behind the anonymous entities (@entity3:Paris).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, whole_text
from heedful.errors import Mistake
from heedful.records import Split

FOLDERS: dict[Split, str] = {"train": "training", "dev": "validation", "test": "test"}
ENTITY = re.compile(r"@entity\d+")


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    """The candidates of a question are the entities that its passage names."""
    for split, name in FOLDERS.items():
        questions = folder / "questions" / name
        if not questions.is_dir():
            raise Mistake(f"{folder} has no questions/{name}.")
        for path in sorted(questions.glob("*.question")):
            content = whole_text(path, ledger)
            if content is None:
                continue
            parts = content.replace("\r\n", "\n").strip().split("\n\n")
            if len(parts) < 4 or not ENTITY.fullmatch(parts[3].strip()):
                ledger.bad(path, None, "address, passage, question and answer (@entity...) are needed, in that order")
                continue
            passage, question, answer = (part.strip() for part in parts[1:4])
            entities = entities_of(passage)
            if answer not in entities:
                ledger.bad(path, None, f"the answer {answer} is not in the passage")
                continue
            yield Raw(f"{name}/{path.name}", passage, answer, split, question, candidates=entities)


def entities_of(passage: str) -> tuple[str, ...]:
    """The entities in the order of their first mention."""
    return tuple(dict.fromkeys(ENTITY.findall(passage)))
