"""IMDB reviews with ratings from 1 to 10 (Diao et al. 2014), in the form in which Tang et al. 2015 passed them on.

`imdb.train.txt.ss`, `imdb.dev.txt.ss`, `imdb.test.txt.ss` (also with `-` for the first dot): a review a line, of which
user, film, rating and text are parted by two tabs; sentences end with `<sssss>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, text_lines
from heedful.records import SPLITS

RATINGS = tuple(str(rating) for rating in range(1, 11))
FILES = ("imdb.train.txt.ss", "imdb-train.txt.ss")
SENTENCE = "<sssss>"


def read(folder: Path, ledger: Ledger) -> Iterator[Raw]:
    for split in SPLITS:
        for path in (folder / name.replace("train", split) for name in FILES):
            if path.exists():
                for line, text in text_lines(path, ledger):
                    fields = text.split("\t\t")
                    if len(fields) != 4:
                        ledger.bad(path, line, f"{len(fields)} fields parted by two tabs, not 4")
                    elif fields[2].strip() not in RATINGS:
                        ledger.bad(path, line, f"rating {fields[2]!r} is not one of 1 to 10")
                    else:
                        review = " ".join(fields[3].replace(SENTENCE, " ").split())
                        yield Raw(f"{path.name}:{line}", review, fields[2].strip(), split)
