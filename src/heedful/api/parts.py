"""Explaining many texts into a file: parts are kept beside it, so that an interrupted command goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.engine.running.progress import ProgressBar
from heedful.errors import Mistake
from heedful.explanation.explanation import Explanation
from heedful.records import Example

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

        told = json.dumps({**asked, "part": PART, "version": __version__}, sort_keys=True)
        key = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()
        return cls(output.with_name(f"{output.name}.{key[:12]}.parts"), n_texts)

    def file(self, begin: int) -> Path:
        return self.folder / f"{begin:08}.parquet"

    @property
    def left(self) -> int:
        """Texts that are still to be explained."""
        begins = range(0, self.n_texts, PART)
        return sum(min(PART, self.n_texts - begin) for begin in begins if not self.file(begin).exists())

    def explain(
        self, examples: Sequence[Example], explain: Callable[[Sequence[Example]], Explanation], bar: ProgressBar
    ) -> Explanation:
        """What is here is read; the rest is explained, and kept as soon as a part is whole."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise Mistake(f"{self.folder} cannot be made: {error.strerror}.") from None
        parts = []
        for begin in range(0, len(examples), PART):
            some, file = examples[begin : begin + PART], self.file(begin)
            if file.exists():
                parts.append(Explanation.load(file))
                bar.advance(len(some))
            else:
                parts.append(explain(some))
                parts[-1].save(file)
                bar.note(f"{min(begin + PART, len(examples))} of {len(examples)} texts")
        return Explanation.joined(parts)

    def remove(self) -> None:
        shutil.rmtree(self.folder)
