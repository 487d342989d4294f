"""How well an earlier page of the study agreed with the published numbers, beside today's, on the same cells.

    python checks/agreement_before.py docs/results/jain-wallace-before.md docs/results/jain-wallace.parquet

A Markdown table. The earlier page has means of two digits, which is all that is left of its runs. Beside both stands
what needs no model: one constant for each encoder and measure, the mean of the published numbers, and for the order the
rule "average > CNN > BiLSTM". Constants and prediction intervals are those of all cells of today's page, whichever are
told.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heedful.experiments.correlation.published import (
    SYMBOLS,
    Cell,
    Value,
    by_rule,
    cells,
    constant,
    error,
    ours,
    reproduced,
    same_order,
)
from heedful.measure.prediction import Variation, far, variation
from heedful.studies.comparison import by_setting, evidence
from heedful.studies.file import read_study
from heedful.studies.summaries_file import read_summaries

Key = tuple[tuple[str, str, str], str, str]
ROW = re.compile(r"\| (\w+) \| (\w+) \| (\w+) \| ([^|]+) \| (\w+) \| (-?[\d.]+)(?: \([\d.]+\))? ± ")


def read_page(path: Path) -> Iterator[tuple[Key, float]]:
    """The mean of each cell of a page's table of correlations."""
    pairs = {symbol: pair for pair, symbol in SYMBOLS.items()}
    for dataset, encoder, attention, symbol, label, mean in ROW.findall(path.read_text(encoding="utf-8")):
        if symbol in pairs:
            yield ((dataset, encoder, attention), pairs[symbol], label), float(mean)


def row(what: str, found: list[Cell], varied: Variation, order: Value = ours) -> str:
    near, known = reproduced(found)
    same, pairs = same_order(found, order)
    errors = ("-" if (one := error(found, at)) is None else f"{one:.3f}" for at in range(len(found[0].means)))
    told = [beyond for cell in found if (beyond := far(cell.ours, cell.means, varied)) is not None]
    shares = (f"{told.count(False)} of {len(told)}", f"{same} of {pairs}")
    return f"| {' | '.join((what, f'{near} of {known}', *errors, *shares))} |"


def with_means(found: list[Cell], mean_of: Value) -> list[Cell]:
    """The same cells with other means of ours."""
    means = [(cell, mean_of(cell)) for cell in found]
    return [replace(cell, ours=replace(cell.ours, mean=mean)) for cell, mean in means if mean is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("summaries", type=Path)
    parser.add_argument("--dataset", nargs="+", help="only these")
    parser.add_argument("--called", default="before", help="what the earlier page is called in the table")
    given = parser.parse_args()
    study, before = read_study("jain-wallace"), dict(read_page(given.page))
    sources = [source.name for source in study.sources]
    runs = by_setting(read_summaries(given.summaries, study), study)
    page = list(cells(evidence("correlation", runs, study.numbers, sources)))
    varied = variation((cell.ours, cell.means) for cell in page)
    today = [
        cell
        for cell in page
        if (cell.setting, cell.pair, cell.label) in before and cell.setting[0] in (given.dataset or study.datasets)
    ]
    if not today:
        parser.error(f"{given.page} and {given.summaries} have no cell in common, of the datasets asked for")
    rows: dict[str, tuple[list[Cell], Value]] = {
        given.called: (with_means(today, lambda cell: before[cell.setting, cell.pair, cell.label]), ours),
        "this page": (today, ours),
        "no model": (with_means(today, constant(page)), by_rule),
    }
    errors = " | ".join(f"error to {source}" for source in sources)
    print(f"| | within .12 | {errors} | inside the interval | encoders in order |")
    print("|---" * (4 + len(sources)) + "|")
    datasets = list(dict.fromkeys(cell.setting[0] for cell in today))
    several: list[str | None] = [None] if len(datasets) > 1 else []
    for dataset in (*several, *datasets):
        for what, (found, order) in rows.items():
            here = [cell for cell in found if dataset in (None, cell.setting[0])]
            print(row(f"{dataset or 'all'}, {what}", here, varied, order))


if __name__ == "__main__":
    main()
