"""Ten texts of a test split against the whole corpus: reading, filtering, drawing and tokenising included.

SST, IMDB and SNLI where HEEDFUL_DATA has them, and a CSV file of 50,000 rows that is made here.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter

from heedful.data.corpora.load import load, load_split
from heedful.data.generated.planted import generate

LIMIT = 10
ROWS = 50_000
NAMES = ("sst", "imdb", "snli")


def compare(name: str, what: str) -> None:
    began = perf_counter()
    few = load_split(name, "test", LIMIT)
    middle = perf_counter()
    whole = load(name)
    ended = perf_counter()
    assert few.examples == tuple(whole["test"][place] for place in few.places)
    print(
        f"load: {LIMIT} texts of {what} {(ended - middle) / (middle - began):.1f} times faster than all "
        f"({middle - began:.2f} and {ended - middle:.2f} seconds)",
        flush=True,
    )


def main() -> None:
    load_split("planted", "test", LIMIT)  # imports are not counted
    data = Path(os.environ.get("HEEDFUL_DATA", ""))
    for name in NAMES:
        if (data / name).is_dir() and "HEEDFUL_DATA" in os.environ:
            compare(name, name)
        else:
            print(f"load: {name} is not there")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        texts = [f'"{planted.text}",{planted.label}' for planted in generate("majority", ROWS // 10, 0)]
        path.write_text("\n".join(["text,label", *texts * 10]) + "\n")
        compare(str(path), f"a CSV of {ROWS} rows")


if __name__ == "__main__":
    main()
