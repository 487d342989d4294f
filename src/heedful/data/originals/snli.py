"""SNLI 1.0 (Bowman et al. 2015): `snli_1.0_{train,dev,test}.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, json_lines
from heedful.records import SPLITS

FIELDS = ("sentence1", "sentence2", "gold_label")


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    """Pairs on which the annotators did not agree (gold label "-") are left out, as everywhere."""
    for split in SPLITS:
        path = folder / f"snli_1.0_{split}.jsonl"
        for line, row in json_lines(path, ledger):
            premise, hypothesis, gold = (row.get(field) for field in FIELDS)
            if not (isinstance(premise, str) and isinstance(hypothesis, str) and isinstance(gold, str)):
                ledger.bad(path, line, f"the strings {', '.join(FIELDS)} are needed")
            elif gold == "-":
                ledger.left_out["pairs without a gold label"] += 1
            else:
                yield Raw(f"{path.name}:{line}", premise, gold, split, hypothesis)
