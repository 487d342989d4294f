"""A file of one's own for tests: planted reviews in a table with the columns text and label."""

from __future__ import annotations

import csv
from pathlib import Path

from heedful.data.generated.planted import generate


def reviews(path: Path, texts: int) -> str:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label"))
        rows.writerows((one.text, one.label) for one in generate("single", texts, seed=0))
    return str(path)
