"""What `heedful.explain` returns: many examples, each explained by many methods; to see, tabulate, keep."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.attribution import Attribution, Check, Cost, Explained, Part
from heedful.colours import INK, LEGEND, LEVELS, Sign, colour, fragment
from heedful.errors import Mistake, one_of
from heedful.heatmap import strongest
from heedful.records import MethodKind, Words

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

__all__ = ["Attribution", "Check", "Cost", "Explained", "Explanation", "MethodKind", "Part"]

FORMAT = "heedful explanation 1"
IN_NOTEBOOK = 10  # examples that a notebook draws without being asked


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Explained examples, in order; `run` names the model that was explained.

    `ex[0]` is the first example, `ex[:10]` and `ex.method("lrp")` are smaller explanations.
    """

    examples: tuple[Explained, ...]
    run: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples))
        seen: set[str] = set()
        for e in self.examples:
            if e.id in seen:
                raise Mistake(f"two examples are called {e.id!r}: the ids of examples must differ.")
            seen.add(e.id)

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Explained]:
        return iter(self.examples)

    @overload
    def __getitem__(self, i: int) -> Explained: ...
    @overload
    def __getitem__(self, i: slice) -> Explanation: ...
    def __getitem__(self, i: int | slice) -> Explained | Explanation:
        return replace(self, examples=self.examples[i]) if isinstance(i, slice) else self.examples[i]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self.to_json() == other.to_json()

    def __repr__(self) -> str:
        return f"<Explanation of {len(self)} examples by {', '.join(self.methods) or 'no method'}>"

    @property
    def methods(self) -> list[str]:
        """The methods, in order of their first appearance."""
        return list(dict.fromkeys(a.method for e in self for a in e.attributions))

    def method(self, name: str) -> Explanation:
        """Only what this method says."""
        if name not in self.methods:
            raise one_of("method", name, self.methods)
        kept = ((e, tuple(a for a in e.attributions if a.method == name)) for e in self)
        return replace(self, examples=tuple(replace(e, attributions=found) for e, found in kept if found))

    def normalised(self) -> Explanation:
        """Each attribution scaled to Σ|score| = 1; all zero stays all zero."""
        scaled = (replace(e, attributions=tuple(a.normalised() for a in e.attributions)) for e in self)
        return replace(self, examples=tuple(scaled))

    def by_word(self) -> Explanation:
        """Scores of sub-tokens summed to words; a word that comes twice stays two positions."""
        return replace(self, examples=tuple(e.by_word() for e in self))

    def to_arrow(self) -> pa.Table:
        """The tidy table: one row for each example, method and position."""
        blocks = [(e, a, part, e.parts[part]) for e in self for a in e.attributions for part in a.scores]
        lengths = [len(words) for *_, words in blocks]
        rows = pa.array(np.repeat(np.arange(len(blocks)), lengths))

        def each(value: Callable[[Explained, Attribution, Part], Any], kind: pa.DataType) -> pa.Array:
            return pa.array([value(e, a, part) for e, a, part, _ in blocks], kind).take(rows)

        def every(values: Iterator[Any], kind: pa.DataType) -> pa.Array:
            return pa.array(np.concatenate([np.empty(0), *values]), kind)

        string, number = pa.string(), pa.int32()
        return pa.table(
            {
                "run": each(lambda e, a, part: self.run, string),
                "example": each(lambda e, a, part: e.id, string),
                "part": each(lambda e, a, part: part, string),
                "position": every((np.arange(n) for n in lengths), number),
                "word": pa.array([w.text[a:b] for *_, w in blocks for a, b in w.offsets.tolist()], string),
                "token": pa.array([form for *_, w in blocks for form in w.forms], string),
                "start": every((w.offsets[:, 0] for *_, w in blocks), number),
                "end": every((w.offsets[:, 1] for *_, w in blocks), number),
                "method": each(lambda e, a, part: a.method, string),
                "kind": each(lambda e, a, part: a.kind, string),
                "signed": each(lambda e, a, part: a.signed, pa.bool_()),
                "target": each(lambda e, a, part: a.target, string),
                "score": every((a.scores[part] for _, a, part, _ in blocks), pa.float64()),
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def top(self, k: int = 5) -> pd.DataFrame:
        """The `k` rows with the largest |score| of each example and method, with their `rank` from 1."""
        if k < 1:
            raise Mistake(f"top({k}): ask for at least 1 word.")
        scores = [a.flat() for e in self for a in e.attributions]
        best = [strongest(s, k) for s in scores]
        before = np.cumsum([0, *map(len, scores)])
        rows = [int(start) + i for start, found in zip(before[:-1], best, strict=True) for i in found]
        ranks = [rank for found in best for rank in range(1, len(found) + 1)]
        table = self.to_arrow().take(pa.array(rows, pa.int64()))
        frame: pd.DataFrame = table.append_column("rank", pa.array(ranks, pa.int32())).to_pandas()
        return frame

    def to_json(self) -> str:
        """Everything as strict JSON: what is undefined is null."""
        examples = [asdict(e) | {"predicted": e.predicted} for e in self]
        return _dumps({"format": FORMAT, "run": self.run, "examples": examples})

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        try:
            record = json.loads(text)
            if record["format"] == FORMAT:
                return cls(tuple(map(_explained, record["examples"])), record["run"])
        except (ValueError, KeyError, TypeError):
            pass
        raise Mistake(f"this is not the JSON of an explanation ({FORMAT}).")

    def save(self, path: str | Path) -> None:
        """The tidy table as Parquet, whole or not at all.

        One more column, `record`, keeps what the table does not say (probabilities, checks, costs, options)
        as JSON in the first row of each example.
        """
        path, records = Path(path), []
        for e in self:
            record = asdict(e)
            for a in record["attributions"]:
                a["scores"] = {part: len(scores) for part, scores in a["scores"].items()}
            rows = sum(len(a.flat()) for a in e.attributions)
            records += [_dumps(record), *[None] * (rows - 1)]
        table = self.to_arrow().append_column("record", pa.array(records, pa.string()))
        table = table.replace_schema_metadata({"heedful": json.dumps({"format": FORMAT, "run": self.run})})
        if not path.parent.is_dir() or path.is_dir():
            raise Mistake(f"{path} cannot be written: give the name of a file in a folder that exists.")
        partial = path.with_name(f".{uuid4().hex}.partial")
        try:
            pq.write_table(table, partial, compression="zstd")
            os.replace(partial, path)  # noqa: PTH105
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """What `save` wrote."""
        if not Path(path).is_file():
            raise Mistake(f"{path} is not a file: give a Parquet file that Explanation.save wrote.")
        try:
            table = pq.ParquetFile(path).read()
            facts = json.loads((table.schema.metadata or {})[b"heedful"])
            if facts["format"] != FORMAT:
                raise KeyError(facts["format"])
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise Mistake(f"{path} is not a Parquet file that Explanation.save wrote ({error}).") from None
        try:
            loaded = cls(tuple(_with_scores(table)), facts["run"])
        except (Mistake, ValueError, KeyError, TypeError):
            loaded = None
        if loaded is None or not loaded.to_arrow().equals(table.drop_columns(["record"])):
            raise Mistake(f"{path} was changed after it was saved: its rows do not agree with its records.")
        return loaded

    def _signs(self) -> list[Sign]:
        signed = {a.signed for e in self for a in e.attributions}
        return [sign for sign in LEGEND if (sign != "u") in signed]

    def to_html(self) -> str:
        """One self-contained HTML fragment, without script; hover over a word to see its number."""
        keys = (f'<span class="hf-{sign}{LEVELS}">{LEGEND[sign]}</span>' for sign in self._signs())
        legend = f'<div class="hf-quiet">{" ".join(keys)}</div>'
        return fragment("".join(e.html() for e in self) + legend)

    def _repr_html_(self) -> str:
        rest = len(self) - IN_NOTEBOOK
        return self[:IN_NOTEBOOK].to_html() + (f"<p>… and {rest} more examples</p>" if rest > 0 else "")

    def show(self, console: Console | None = None) -> None:
        """Print every example: the prediction, then the methods over the same text, with their checks."""
        from rich.console import Console
        from rich.text import Text

        console = console or Console()
        for e in self:
            console.print(e)
        keys = ((LEGEND[sign], f"{INK['dark']} on {colour(sign, LEVELS, 'dark')}") for sign in self._signs())
        if console.color_system and not console.no_color:
            console.print(Text(" ").join(Text(*key) for key in keys))


def _dumps(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=lambda array: array.tolist())


def _explained(record: dict[str, Any]) -> Explained:
    def words(r: dict[str, Any]) -> Words:
        return Words(r["text"], tuple(r["forms"]), np.array(r["offsets"], dtype=np.int32))

    def attribution(r: dict[str, Any]) -> Attribution:
        check = None if r["check"] is None else Check(**r["check"])
        return Attribution(**r | {"check": check, "cost": Cost(**r["cost"])})

    return Explained(
        id=record["id"],
        passage=words(record["passage"]),
        labels=tuple(record["labels"]),
        probabilities=np.array(record["probabilities"]),
        attributions=tuple(map(attribution, record["attributions"])),
        query=None if record["query"] is None else words(record["query"]),
        truth=record["truth"],
        word_index=record["word_index"],
    )


def _with_scores(table: pa.Table) -> Iterator[Explained]:
    """The records of a table, each with its scores: its rows are in the order of its attributions."""
    scores, row = table["score"].to_numpy(), 0
    for text in table["record"].drop_null().to_pylist():
        record = json.loads(text)
        for a in record["attributions"]:
            for part, n in a["scores"].items():
                a["scores"][part], row = scores[row : row + n], row + n
        yield _explained(record)
