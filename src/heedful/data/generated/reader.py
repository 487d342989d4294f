"""Corpora that need no file: rows made by a rule or a simulator, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw
from heedful.data.generated import babi, planted
from heedful.records import Split

BABI_SIZES: dict[Split, int] = {"train": 10_000, "test": 1_000}  # as the original
PLANTED_SIZES: dict[Split, int] = {"train": 4_000, "dev": 500, "test": 1_000}


def read_planted(_folder: Path | None, _ledger: Ledger, seed: int, *, rule: planted.Rule) -> Iterator[Raw]:
    """Sentences whose label is decided by planted words, which are the evidence."""
    texts = planted.generate(rule, sum(PLANTED_SIZES.values()), seed)
    for split, size in PLANTED_SIZES.items():
        for number in range(1, size + 1):
            one = next(texts)
            id = f"planted-{rule}-{split}:{number}"
            yield Raw(id, one.text, one.label, split, evidence=one.spans)


def read_simulated_babi(_folder: Path | None, _ledger: Ledger, seed: int, *, task: int) -> Iterator[Raw]:
    """Stories and questions as in bAbI's task, by our simulator."""
    stories = babi.generate(task, sum(BABI_SIZES.values()), seed)
    for split, size in BABI_SIZES.items():
        for number in range(1, size + 1):
            story = next(stories)
            id = f"babi{task}-simulated-{split}:{number}"
            yield Raw(id, story.text, story.answer, split, story.question, story.evidence)
