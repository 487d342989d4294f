"""A corpus: sentences whose one bright or gloomy word decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from heedful.plugins import Entry, Ledger, Raw, Recipe


def read(folder: Path | None, ledger: Ledger, seed: int) -> Iterator[Raw]:
    rng = np.random.default_rng(seed)
    for i in range(240):
        words = rng.choice(["the", "day", "was", "and", "they", "sang", "of", "it"], 6).tolist()
        label, place = ("up", "down")[i % 2], int(rng.integers(6))
        words[place] = {"up": "bright", "down": "gloomy"}[label]
        start = len(" ".join(words[:place])) + (place > 0)
        yield Raw(f"toy:{i}", " ".join(words), label, evidence=((start, start + len(words[place])),))


WEATHER = Entry("toy weather", "none", "comes with the toy", Recipe(), reader=read, built_in=True)
