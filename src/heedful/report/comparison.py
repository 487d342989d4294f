"""Ours beside what was published: Tables 1 and 2 of Jain & Wallace 2019, and what the exact search adds.

From finished runs and a study's published numbers to tables; no torch. A
difference is also given in units of our between-seed spread, and flagged where it is beyond it (more than
two spreads): with fewer than two seeds there is no spread, and nothing is flagged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from heedful.config import RunConfig
from heedful.measure.statistics import Spread, between_seeds
from heedful.store.run import runs_in

MEASURES = {  # of the study file -> the pair of explainers whose tau it is
    "gradient": "attention/gradient_x_input",
    "loo": "attention/omission",
    "ceiling": "gradient_x_input/omission",
}
EXPERIMENTS = ("performance", "correlation", "permutation", "adversarial")
CLOSE = 0.12  # a mean tau this near to either published set counts as reproduced
FLAG = 2.0  # between-seed spreads

Setting = tuple[str, str, str]  # dataset, encoder, attention
Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's summaries by experiment; `performance` among them."""

    setting: Setting
    seed: int
    summaries: Mapping[str, Summary]


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


def finished_runs(folder: Path, belongs: Callable[[RunConfig], bool]) -> list[Finished]:
    """The finished runs of a folder that belong to the study, and the summaries they have."""
    found = []
    for run in runs_in(folder):
        config = run.config
        if run.finished and belongs(config):
            kept = {name: run.results.summary(name) for name in EXPERIMENTS}
            setting = (config.dataset, config.model.encoder, config.model.attention)
            found.append(Finished(setting, config.seed, {name: one for name, one in kept.items() if one}))
    return found


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


def by_setting(runs: Sequence[Finished], study: Mapping[str, Any]) -> dict[Setting, list[Finished]]:
    """Runs that differ only in their seed, in the order of the study."""
    order = [study["datasets"], study["encoders"], study["attentions"]]
    settings = sorted(
        {run.setting for run in runs},
        key=lambda s: [
            names.index(name) if name in names else 99 for names, name in zip(order, s, strict=True)
        ],
    )
    return {s: sorted((r for r in runs if r.setting == s), key=lambda r: r.seed) for s in settings}


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


def cells(
    grouped: Mapping[Setting, list[Finished]], study: Mapping[str, Any]
) -> Iterable[tuple[Setting, str, str, Spread, float, float, list[Mapping[str, Any] | None]]]:
    """(setting, measure, class, ours, std over texts, fraction significant, [paper, files]) for each cell."""
    index = {
        (row["source"], (row["dataset"], row["encoder"], row["attention"]), row["measure"], row["class"]): row
        for row in study["tau"]
    }
    for setting, runs in grouped.items():
        found = [run.summaries["correlation"] for run in runs if "correlation" in run.summaries]
        if not found:
            continue
        for measure, pair in MEASURES.items():
            classes = sorted({label for one in found for label in one[pair]["by_class"]}, key=int)
            few = len(classes) <= 3  # QA has an answer set, not classes: overall only
            for label in [*(classes if few else ()), "overall"]:
                lines = [
                    one[pair]["overall"] if label == "overall" else one[pair]["by_class"].get(label)
                    for one in found
                ]
                taus = [line["tau"] for line in lines if line and line["tau"]["mean"] is not None]
                if not taus:
                    continue
                theirs = [index.get((source, setting, measure, label)) for source in ("paper", "files")]
                std, sig = (sum(tau[key] for tau in taus) / len(taus) for key in ("std", "sig_frac"))
                yield setting, measure, label, between_seeds([tau["mean"] for tau in taus]), std, sig, theirs


def reproduced(grouped: Mapping[Setting, list[Finished]], study: Mapping[str, Any]) -> tuple[int, int]:
    """(cells within CLOSE of either published set, cells that have a published number)."""
    near = [
        abs(ours.mean - nearest) <= CLOSE
        for _, _, _, ours, _, _, theirs in cells(grouped, study)
        if (nearest := nearest_of(ours.mean, theirs)) is not None
    ]
    return sum(near), len(near)


def same_order(grouped: Mapping[Setting, list[Finished]], study: Mapping[str, Any]) -> tuple[int, int]:
    """(pairs of encoders in the order of either published set, pairs whose order was published).

    By mean tau_g and tau_loo, for each dataset, attention and class.
    """
    found: dict[tuple[str, ...], dict[str, tuple[float, list[Mapping[str, Any] | None]]]] = {}
    for (dataset, encoder, attention), measure, label, ours, _, _, theirs in cells(grouped, study):
        if measure != "ceiling":
            found.setdefault((dataset, attention, measure, label), {})[encoder] = ours.mean, theirs
    same = known = 0
    for encoders in found.values():
        for (ours_a, theirs_a), (ours_b, theirs_b) in combinations(encoders.values(), 2):
            both = [(a["mean"], b["mean"]) for a, b in zip(theirs_a, theirs_b, strict=True) if a and b]
            known += bool(both)
            same += any((ours_a - ours_b) * (a - b) > 0 for a, b in both)
    return same, known


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


def nearest_of(ours: float, theirs: Sequence[Mapping[str, Any] | None]) -> float | None:
    return min((row["mean"] for row in theirs if row), key=lambda mean: abs(mean - ours), default=None)


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
