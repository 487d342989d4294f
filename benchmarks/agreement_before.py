"""How well an earlier page of the study agreed with the published numbers, beside today's, on the same cells.

    python benchmarks/agreement_before.py docs/results/jain-wallace-before.md docs/results/jain-wallace.parquet

The earlier page has means of two digits, which is all that is left of its runs. Both are told with the same sentences;
prediction intervals are those of today's seeds for both, because the earlier runs had one seed almost everywhere.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heedful.engine.study_file import read_study
from heedful.experiments.correlation_baselines import error, reproduced, same_order
from heedful.experiments.correlation_cells import SYMBOLS, Cell, cells
from heedful.measure.prediction import far, variation
from heedful.report.comparison import by_setting, evidence
from heedful.report.summaries_file import read_summaries

Key = tuple[tuple[str, str, str], str, str]
ROW = re.compile(r"\| (\w+) \| (\w+) \| (\w+) \| ([^|]+) \| (\w+) \| (-?[\d.]+)(?: \([\d.]+\))? ± ")


def read_page(path: Path) -> Iterator[tuple[Key, float]]:
    """The mean of each cell of a page's table of correlations."""
    pairs = {symbol: pair for pair, symbol in SYMBOLS.items()}
    for dataset, encoder, attention, symbol, label, mean in ROW.findall(path.read_text(encoding="utf-8")):
        if symbol in pairs:
            yield ((dataset, encoder, attention), pairs[symbol], label), float(mean)


def tell(what: str, found: list[Cell], far_of: list[Cell]) -> None:
    near, known = reproduced(found)
    same, pairs = same_order(found)
    errors = (error(found, at) for at in range(2))
    varied = variation((cell.ours, cell.means) for cell in far_of)
    told = [beyond for cell in found if (beyond := far(cell.ours, cell.means, varied)) is not None]
    print(
        f"{what}: within .12 {near} of {known}; mean absolute error "
        + ", ".join("-" if one is None else f"{one:.3f}" for one in errors)
        + f"; inside the prediction interval {told.count(False)} of {len(told)}; encoders in order {same} of {pairs}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("summaries", type=Path)
    parser.add_argument("--dataset", nargs="+", help="only these")
    given = parser.parse_args()
    study, before = read_study("jain-wallace"), dict(read_page(given.page))
    sources = [source.name for source in study.sources]
    runs = by_setting(read_summaries(given.summaries, study), study)
    today = [
        cell
        for cell in cells(evidence("correlation", runs, study.numbers, sources))
        if (cell.setting, cell.pair, cell.label) in before
        and cell.setting[0] in (given.dataset or study.datasets)
    ]
    earlier = [
        replace(cell, ours=replace(cell.ours, mean=before[cell.setting, cell.pair, cell.label]))
        for cell in today
    ]
    print(f"{len(today)} cells that both have; errors are to {' and '.join(sources)}")
    for dataset in (None, *dict.fromkeys(cell.setting[0] for cell in today)):
        here = [[cell for cell in some if dataset in (None, cell.setting[0])] for some in (earlier, today)]
        for what, some in zip(("before", "after"), here, strict=True):
            tell(f"{dataset or 'all'}, {what}", some, today)


if __name__ == "__main__":
    main()
