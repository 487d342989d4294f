"""AG News (Zhang et al. 2015): `train.csv`, `test.csv`, no header, class 1 to 4, title, description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw
from heedful.data.formats.tables import separated_rows
from heedful.records import Split

SPLITS: tuple[Split, ...] = ("train", "test")
CLASSES = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
WORLD_BUSINESS = {"1": "World", "3": "Business"}  # the two that Jain & Wallace 2019 use


def read(folder: Path, ledger: Ledger, classes: Mapping[str, str]) -> Iterator[Raw]:
    """Only the description is the text, as in the paper; rows of other classes are left out."""
    for split in SPLITS:
        path = folder / f"{split}.csv"
        for line, (number, _title, description) in separated_rows(path, ledger, ",", 3, has_header=False):
            if number not in CLASSES:
                ledger.bad(path, line, f"class {number!r} is not one of 1, 2, 3, 4")
            elif number in classes:
                yield Raw(f"{path.name}:{line}", description, classes[number], split)
            else:
                ledger.left_out[f"articles of class {CLASSES[number]}"] += 1
