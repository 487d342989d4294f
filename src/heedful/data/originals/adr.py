"""Twitter adverse drug reactions (Nikfarjam et al. 2015), in the form of Jain & Wallace: one table.

The publishers give tweet numbers and annotations, and each user fetches the texts. So what is read here
is the table that one makes of them, `adr.csv` or `adr.tsv` (or `adr_dataset.csv`, the authors' name):

    text    the tweet
    label   1 if it mentions an adverse reaction to a drug, 0 if not
    split   optional (or `exp_split`): train, dev, test
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import SPLIT_NAMES, Ledger, Raw
from heedful.data.formats.tables import read_table
from heedful.errors import Mistake

FILES = ("adr.csv", "adr.tsv", "adr_dataset.csv")


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    path = next(folder / name for name in FILES if (folder / name).exists())
    table = read_table(path, ledger)
    for column in ("text", "label"):
        if column not in table.columns:
            raise Mistake(f"{path} has no column {column!r}; it has {', '.join(table.columns)}.")
    split_column = next((name for name in ("split", "exp_split") if name in table.columns), None)
    for line, row in table.rows:
        said = row[split_column].strip().lower() if split_column else ""
        if said and said not in SPLIT_NAMES:
            ledger.bad(path, line, f"the split {said!r} is not train, dev or test")
            continue
        yield Raw(f"{path.name}:{line}", row["text"], row["label"].strip(), SPLIT_NAMES.get(said))
