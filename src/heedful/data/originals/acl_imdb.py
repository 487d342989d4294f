"""Large Movie Review Dataset (Maas et al. 2011): `aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, whole_text
from heedful.errors import Mistake
from heedful.records import Split

SPLITS: tuple[Split, ...] = ("train", "test")
LABELS = {"neg": "negative", "pos": "positive"}


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    """One review is one file; `unsup` is not read."""
    for split in SPLITS:
        for part, label in LABELS.items():
            reviews = folder / split / part
            if not reviews.is_dir():
                raise Mistake(f"{folder} has no {split}/{part}; the reviews are in train and test, pos and neg.")
            for path in sorted(reviews.glob("*.txt"), key=_number):
                text = whole_text(path, ledger)
                if text is not None:
                    yield Raw(f"{split}/{part}/{path.name}", text.strip(), label, split)


def _number(path: Path) -> tuple[int, str]:
    """The order of the original: by the number before the rating."""
    number = path.stem.split("_")[0]
    return (int(number) if number.isdigit() else 0, path.name)
