"""What `heedful.explain` returns: many examples, each explained by many methods; to see, tabulate, keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa

from heedful.errors import Mistake, one_of, short
from heedful.explanation import arithmetic
from heedful.explanation.attribution import Attribution, Check, Cost
from heedful.explanation.checks import check_columns, check_ids
from heedful.explanation.columns import Columns
from heedful.explanation.drawing import INK, LEGEND, LEVELS, Sign, colour, fragment, page
from heedful.explanation.files import json_of, read_json, read_parquet, tables, write_csv, write_parquet
from heedful.explanation.record import Explained
from heedful.explanation.steps import of_one_prompt, shown_html, told
from heedful.explanation.table import plain_strings, tidy_table
from heedful.explanation.views import columns_of, views
from heedful.files import LONGEST_NAME, check_name, whole_file
from heedful.records import MethodKind, Part

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

__all__ = ["Attribution", "Check", "Cost", "Explained", "Explanation", "MethodKind", "Part"]

ENDINGS = (".csv", ".html", ".json", ".parquet")  # that `save` knows
IN_NOTEBOOK = 10  # examples that a notebook draws without being asked


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Explanation:
    """Explained examples, in order; `run` names the model that was explained.

    `ex[0]` is the first example, `ex[:10]` and `ex.method("lrp")` are smaller explanations. Inside are columns
    over all examples; an `Explained` is made when someone looks at it.
    """

    columns: Columns
    run: str

    def __init__(self, examples: Iterable[Explained] = (), run: str = "") -> None:
        columns = columns_of(list(examples))
        check_ids(columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "run", run)

    @classmethod
    def of_columns(cls, columns: Columns, run: str) -> Explanation:
        """Columns that `check_columns` has seen, or that were made of such."""
        made = object.__new__(cls)
        object.__setattr__(made, "columns", columns)
        object.__setattr__(made, "run", run)
        return made

    @classmethod
    def joined(cls, parts: Sequence[Explanation]) -> Explanation:
        """Explanations of one model by the same methods, one after the other."""
        return cls.of_columns(Columns.joined([part.columns for part in parts]), parts[0].run)

    @property
    def examples(self) -> tuple[Explained, ...]:
        return tuple(self)

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Explained]:
        return views(self.columns)

    @overload
    def __getitem__(self, i: int) -> Explained: ...
    @overload
    def __getitem__(self, i: slice) -> Explanation: ...
    def __getitem__(self, i: int | slice) -> Explained | Explanation:
        if isinstance(i, slice):
            start, stop, step = i.indices(len(self))
            if step == 1:
                return self.of_columns(self.columns.between(start, max(start, stop)), self.run)
            return self.of_columns(self.columns.take(np.arange(start, stop, step)), self.run)
        place = range(len(self))[index(i)]  # an IndexError where there is none
        return next(views(self.columns.between(place, place + 1)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self.to_json() == other.to_json()

    def __repr__(self) -> str:
        return f"<Explanation of {len(self)} examples by {', '.join(self.methods) or 'no method'}>"

    @property
    def methods(self) -> list[str]:
        """The methods, in order of their first appearance."""
        used = dict.fromkeys(self.columns.attributions.method.tolist())
        return list(dict.fromkeys(self.columns.methods[i].name for i in used))

    def method(self, name: str) -> Explanation:
        """Only what this method says."""
        if name not in self.methods:
            raise one_of("method", name, self.methods)
        so_called = np.array([method.name == name for method in self.columns.methods])
        return self.of_columns(self.columns.keep(so_called[self.columns.attributions.method]), self.run)

    def normalised(self) -> Explanation:
        """Each attribution scaled to Σ|score| = 1; all zero stays all zero."""
        return self.of_columns(arithmetic.normalise(self.columns), self.run)

    def by_word(self) -> Explanation:
        """Scores of sub-tokens summed to words; a word that comes twice stays two positions."""
        return self.of_columns(check_columns(arithmetic.sum_by_word(self.columns)), self.run)

    def to_arrow(self) -> pa.Table:
        """The tidy table: one row for each example, method and position.

        Where a method says more than one number a position, these rows come after, and columns say whose they are:
        `layer`, or `other_position` with its part and word for what two words do together.
        """
        empty = plain_strings(tidy_table(self.columns.between(0, 0), self.run, self.columns.axes))
        return pa.concat_tables([empty, *tables(self.columns, self.run)])

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def top(self, k: int = 5) -> pd.DataFrame:
        """The `k` rows with the largest |score| of each example and method, with their `rank` from 1."""
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise Mistake(f"top({short(k)}): ask for at least 1 word, and a whole number of them.")
        rows, ranks = arithmetic.rank_scores(self.columns, k)
        table = plain_strings(tidy_table(self.columns, self.run)).take(pa.array(rows, pa.int64()))
        frame: pd.DataFrame = table.append_column("rank", pa.array(ranks, pa.int32())).to_pandas()
        return frame

    def to_json(self) -> str:
        """Everything as strict JSON: what is undefined is null."""
        return "".join(json_of(self, self.run))

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        columns, run = read_json(text)
        check_ids(columns)
        return cls.of_columns(columns, run)

    def save(self, path: str | Path, *, escape_formulas: bool = True) -> None:
        """Whole or not at all, by the ending: .parquet and .json keep everything and can be loaded again;
        .csv is the tidy table, .html a page to look at.

        In a CSV file, words that a spreadsheet would compute (=1+1, @x) get an apostrophe before them; with
        `escape_formulas=False` they stand as they are.
        """
        if not isinstance(path, str | Path):
            raise Mistake(f"save({short(path)}): give the name of a file.")
        path = Path(path)
        if path.suffix not in ENDINGS and (path.suffix or len(path.name) > LONGEST_NAME or not path.is_dir()):
            raise Mistake(f"{path}: the ending must be {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
        check_name(path)
        with whole_file(path) as partial:
            if path.suffix == ".parquet":
                write_parquet(self.columns, self.run, partial)
            elif path.suffix == ".csv":
                write_csv(self.columns, self.run, partial, escape_formulas)
            else:
                pieces = json_of(self, self.run) if path.suffix == ".json" else [page(self.to_html())]
                with partial.open("w", encoding="utf-8") as file:
                    file.writelines(pieces)

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """What `save` wrote as Parquet."""
        if not isinstance(path, str | Path):
            raise Mistake(f"load({short(path)}): give the name of a file.")
        return cls.of_columns(*read_parquet(Path(path)))

    def _signs(self) -> list[Sign]:
        signed = set(self.columns.signed.tolist())
        return [sign for sign in LEGEND if (sign != "u") in signed]

    def to_html(self) -> str:
        """One self-contained HTML fragment, without script; hover over a word to see its number."""
        keys = (f'<span class="hf-{sign}{LEVELS}">{LEGEND[sign]}</span>' for sign in self._signs())
        legend = f'<div class="hf-quiet">{" ".join(keys)}</div>'
        return fragment("".join(shown_html(list(self))) + legend)

    def _repr_html_(self) -> str:
        rest = len(self) - IN_NOTEBOOK
        return self[:IN_NOTEBOOK].to_html() + (f"<p>… and {rest} more examples</p>" if rest > 0 else "")

    def show(self, console: Console | None = None) -> None:
        """Print every example: the prediction, then the methods over the same text, with their checks."""
        from rich.console import Console
        from rich.text import Text

        console = console or Console()
        for group in of_one_prompt(list(self)):
            if len(group) > 1:
                console.print(*map(Text, told(group)), sep="\n")
            else:
                console.print(group[0])
        keys = ((LEGEND[sign], f"{INK['dark']} on {colour(sign, LEVELS, 'dark')}") for sign in self._signs())
        if console.color_system and not console.no_color:
            console.print(Text(" ").join(Text(*key) for key in keys))
