"""Explaining many texts into a file: parts are kept beside it, so that an interrupted command goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import Mistake
from heedful.explanation.explanation import Explanation
from heedful.explanation.files import Unlike, join_parquet

PART = 200  # texts: what an interruption can cost


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder of parts, a file for every `PART` texts, each whole or not there. It goes when the output is written."""

    folder: Path
    n_texts: int

    @classmethod
    def beside(cls, output: Path, asked: Mapping[str, Any], n_texts: int) -> Parts:
        """Named by all that decides the scores, so that another question never finds these parts."""
        from heedful import __version__

        told = json.dumps({**asked, "part": PART, "version": __version__, "form": 2}, sort_keys=True)
        key = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()
        return cls(output.with_name(f"{output.name}.{key[:12]}.parts"), n_texts)

    def file(self, begin: int) -> Path:
        return self.folder / f"{begin:08}.parquet"

    @property
    def begins(self) -> range:
        return range(0, self.n_texts, PART)

    @property
    def missing(self) -> list[int]:
        """Where the parts begin that are still to be made."""
        return [begin for begin in self.begins if not self.file(begin).exists()]

    @property
    def left(self) -> int:
        """Texts that are still to be explained."""
        return sum(min(PART, self.n_texts - begin) for begin in self.missing)

    def make(self) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise Mistake(f"{self.folder} cannot be made: {error.strerror}.") from None

    def join(self, output: Path) -> None:
        """All parts as one file, in the memory of one part where it is Parquet, and of all where it is not."""
        files = [self.file(begin) for begin in self.begins]
        if output.suffix == ".parquet":
            try:
                join_parquet(files, output)
                return
            except Unlike:  # each text has labels of its own, or some have scores of layers
                pass
        Explanation.joined([Explanation.load(file) for file in files]).save(output)

    def remove(self) -> None:
        shutil.rmtree(self.folder)
