"""The built-in corpora: generated from a seed, no download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from heedful.data import babi, planted
from heedful.data.assemble import assemble
from heedful.data.readers.rows import Ledger, Raw
from heedful.data.recipe import Recipe
from heedful.records import Corpus, Split

BABI_SIZES: dict[Split, int] = {"train": 10_000, "test": 1_000}  # as the original
PLANTED_SIZES: dict[Split, int] = {"train": 4_000, "dev": 500, "test": 1_000}


def generated(name: str, recipe: Recipe, seed: int) -> Corpus:
    """bAbI from the simulator is called babi1-simulated, so that it is never taken for the original."""
    if name.startswith("babi"):
        source = f"built-in simulator of bAbI, seed {seed} (the original was not found)"
        rows, made = _babi(name, seed), f"{name}-simulated"
    else:
        rule = _rule(name)
        rows, made, source = _planted(rule, seed), name, f"built in, planted rule {rule!r}, seed {seed}"
    return assemble(made, rows, recipe, Ledger(), seed=seed, source=source)


def _rule(name: str) -> planted.Rule:
    return cast("planted.Rule", name.removeprefix("planted").removeprefix("-") or "single")


def _planted(rule: planted.Rule, seed: int) -> Iterator[Raw]:
    texts = planted.generate(rule, sum(PLANTED_SIZES.values()), seed)
    for split, size in PLANTED_SIZES.items():
        for number in range(1, size + 1):
            one = next(texts)
            id = f"planted-{rule}-{split}:{number}"
            yield Raw(id, one.text, one.label, split, evidence=one.spans)


def _babi(name: str, seed: int) -> Iterator[Raw]:
    stories = babi.generate(int(name.removeprefix("babi")), sum(BABI_SIZES.values()), seed)
    for split, size in BABI_SIZES.items():
        for number in range(1, size + 1):
            story = next(stories)
            id = f"{name}-simulated-{split}:{number}"
            yield Raw(id, story.text, story.answer, split, story.question, story.evidence)
