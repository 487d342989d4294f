"""Ours beside what was published: Tables 1 and 2 of Jain & Wallace 2019, and what the exact search adds.

As tables, for the terminal and as Markdown. A difference is also given in units of our between-seed spread, and
flagged where it is beyond it (more than two spreads): with one seed there is no spread, and nothing is flagged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.measure.statistics import Spread, between_seeds
from heedful.report.cells import (
    CLOSE,
    Finished,
    Setting,
    by_setting,
    cells,
    nearest_of,
    reproduced,
    same_order,
)

FLAG = 2.0  # between-seed spreads


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the terminal and for Markdown."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += [self.note, ""] if self.note else []
        lines += [_line(self.header), _line(["---"] * len(self.header)), *map(_line, self.rows)]
        return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page(name: str, runs: Sequence[Finished], study: Mapping[str, Any], notes: str = "") -> str:
    """The whole comparison as Markdown."""
    grouped = by_setting(runs, study)
    near, known = reproduced(grouped, study)
    same, pairs = same_order(grouped, study)
    lines = [
        f"# {study['title']}",
        "",
        f"Written by `heedful study {name} --write FILE` from {len(runs)} finished runs. Published numbers: "
        + "; ".join(f"`{source['name']}`: {source['title']}" for source in study["sources"])
        + ".",
        "",
        f"**{near} of {known}** mean correlations that were published are within {CLOSE} of either published set"
        + (f" ({near / known:.0%})." if known else "."),
        "",
        f"Which of two encoders has the higher τ_g or τ_loo, on one dataset with one attention, is as published in "
        f"**{same} of {pairs}** comparisons.",
        "",
        notes,
    ]
    return "\n".join(lines) + "\n" + "\n".join(table.markdown() for table in tables(runs, study))


def tables(runs: Sequence[Finished], study: Mapping[str, Any]) -> list[Table]:
    """Everything that the finished runs allow."""
    grouped = by_setting(runs, study)
    made = [
        scores(grouped, study),
        correlations(grouped, study),
        counterfactuals(grouped),
        adversaries(grouped),
    ]
    return [table for table in made if table.rows]


def scores(grouped: Mapping[Setting, list[Finished]], study: Mapping[str, Any]) -> Table:
    """Table 1, its last column: the test score, for every encoder and attention."""
    rows = []
    for setting, runs in grouped.items():
        published = {
            row["source"]: row
            for row in study["scores"]
            if (row["dataset"], row["encoder"], row["attention"]) == setting
        }
        metric = next(iter(published.values()))["metric"] if published else "accuracy"
        found = [run.summaries["performance"] for run in runs if "performance" in run.summaries]
        if not found:
            continue
        ours = between_seeds([one[metric] for one in found])
        theirs = [published.get(source, {}).get("score") for source in ("paper", "files")]
        rows.append((*setting, metric, seeds(ours), *map(number, theirs), difference(ours, theirs)))
    header = ("dataset", "encoder", "attention", "metric", "ours", "paper", "files", "ours - nearest")
    note = (
        "Test scores (Table 1). `paper` has only the BiLSTM with additive attention; `files` are the authors' "
        "result files."
    )
    return Table("Test scores", header, tuple(rows), note)


def correlations(grouped: Mapping[Setting, list[Finished]], study: Mapping[str, Any]) -> Table:
    """Table 2: mean tau ± std, fraction significant, by predicted class and overall."""
    rows = []
    for setting, measure, label, ours, std, sig, theirs in cells(grouped, study):
        nearest = nearest_of(ours.mean, theirs)
        verdict = "" if nearest is None else "" if abs(ours.mean - nearest) <= CLOSE else "far"
        rows.append(
            (
                *setting,
                {"gradient": "τ_g", "loo": "τ_loo", "ceiling": "gradient/loo"}[measure],
                label,
                f"{seeds(ours)} ± {std:.2f}",
                f"{sig:.2f}",
                *(published(row) for row in theirs),
                difference(ours, [row["mean"] if row else None for row in theirs]),
                verdict,
            )
        )
    header = (
        *("dataset", "encoder", "attention", "tau", "class", "ours: mean ± std", "sig."),
        *("paper: mean ± std, sig.", "files: mean ± std, sig.", "ours - nearest", ""),
    )
    note = (
        "Kendall tau between explanations over the words of each test text (Table 2), mean ± standard deviation "
        f"over texts. `far`: more than {CLOSE} from both published sets. Where we have several seeds, the mean is "
        "theirs, and the spread between them stands in brackets."
    )
    return Table("Correlation of attention with other measures", header, tuple(rows), note)


def counterfactuals(grouped: Mapping[Setting, list[Finished]]) -> Table:
    """Figure 3 in numbers: the median change of output when attention is permuted, by max attention."""
    rows = []
    for setting, runs in grouped.items():
        found = [run.summaries["permutation"] for run in runs if "permutation" in run.summaries]
        if found:
            means = between_seeds([one["overall"]["mean"] for one in found])
            median = sum(one["overall"]["q50"] for one in found) / len(found)
            bins = [
                number(mean_of([one["by_max_attention"][name]["mean"] for one in found]))
                for name in found[0]["by_max_attention"]
            ]
            rows.append((*setting, seeds(means), number(median), *bins))
    header = (
        "dataset",
        "encoder",
        "attention",
        "mean Δŷ",
        "median Δŷ",
        "max α < .25",
        "< .5",
        "< .75",
        "≥ .75",
    )
    note = (
        "Median output change Δŷ over 100 permutations of the attention of each text (figure 3): mean and median "
        "over texts, and the mean in bins of the largest weight."
    )
    return Table("Permuted attention", header, tuple(rows), note)


def adversaries(grouped: Mapping[Setting, list[Finished]]) -> Table:
    """Figures 4 and 5 in numbers, and how far below the truth the published search was."""
    rows = []
    for setting, runs in grouped.items():
        found = [run.summaries["adversarial"]["overall"] for run in runs if "adversarial" in run.summaries]
        if found:
            ours = between_seeds([one["mean"] for one in found])
            adam = mean_of([one.get("adam", {}).get("mean") for one in found])
            gap = mean_of([one.get("gap", {}).get("mean") for one in found])
            above = mean_of([one["above_half"] for one in found])
            proved = mean_of([one["exact"] for one in found])
            rows.append((*setting, seeds(ours), number(above), number(proved), number(adam), number(gap)))
    header = (
        "dataset",
        "encoder",
        "attention",
        "ε-max JSD",
        "share > .5",
        "proved optimal",
        "Adam's",
        "missed by Adam",
    )
    note = (
        "The greatest Jensen-Shannon divergence (at most ln 2 = 0.693) from the model's attention that leaves "
        "the prediction within ε (figures 4 and 5): mean over texts of the exact search, the share of texts "
        "above .5, the share for which the maximum is proved, the mean of the published search with Adam on the "
        "same texts, and the mean by which Adam falls short."
    )
    return Table("Adversarial attention", header, tuple(rows), note)


def difference(ours: Spread, theirs: Sequence[float | None]) -> str:
    """Against the nearer of the published numbers, in units of the between-seed spread where there is one."""
    known = [value for value in theirs if value is not None]
    if not known:
        return "-"
    nearest = min(known, key=lambda value: abs(value - ours.mean))
    distance = ours.distance(nearest)
    if math.isnan(distance):
        return f"{ours.mean - nearest:+.2f}"
    return f"{ours.mean - nearest:+.2f} ({distance:+.1f} spreads{' !' if abs(distance) > FLAG else ''})"


def seeds(spread: Spread) -> str:
    between = "" if math.isnan(spread.std) else f" ({spread.std:.2f})"
    return f"{spread.mean:.2f}{between}"


def published(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else f"{row['mean']:.2f} ± {row['std']:.2f}, {row['sig_frac']:.2f}"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
