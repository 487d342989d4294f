"""The large classification sets of Zhang et al. 2015: `train.csv`, `test.csv`, no header, class, then texts.

Yahoo Answers (question title, question, best answer), Amazon reviews (title, review) and Yelp reviews (review): the
fields of a row are one text, one after the other. A line end inside a field is written as backslash and n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw
from heedful.data.formats.tables import separated_rows
from heedful.records import Split

SPLITS: tuple[Split, ...] = ("train", "test")
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
TOPICS = (  # classes.txt of the distribution
    *("Society & Culture", "Science & Mathematics", "Health", "Education & Reference", "Computers & Internet"),
    *("Sports", "Business & Finance", "Entertainment & Music", "Family & Relationships", "Politics & Government"),
)


def read(folder: Path, ledger: Ledger, classes: Sequence[str], fields: int) -> Iterator[Raw]:
    """`fields` of text after the class, a number from 1."""
    names = {str(number): name for number, name in enumerate(classes, 1)}
    for split in SPLITS:
        path = folder / f"{split}.csv"
        for line, (number, *parts) in separated_rows(path, ledger, ",", 1 + fields, has_header=False):
            text = "\n".join(part.replace("\\n", "\n") for part in parts if part.strip())
            if number not in names:
                ledger.bad(path, line, f"class {number!r} is not one of 1 to {len(classes)}")
            elif not text:
                ledger.left_out["rows without a text"] += 1
            else:
                yield Raw(f"{path.name}:{line}", text, names[number], split)
