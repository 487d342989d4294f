"""Our mean correlations and the published ones, cell by cell: how many are near, and in the same order.

From finished runs and a study's published numbers; no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from heedful.config import RunConfig
from heedful.experiments import EXPERIMENTS
from heedful.measure.statistics import Spread, between_seeds
from heedful.store.run import runs_in

MEASURES = {  # of the study file -> the pair of explainers whose tau it is
    "gradient": "attention/gradient_x_input",
    "loo": "attention/omission",
    "ceiling": "gradient_x_input/omission",
}
CLOSE = 0.12  # a mean tau this near to either published set counts as reproduced

Setting = tuple[str, str, str]  # dataset, encoder, attention
Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's summaries by experiment; `performance` among them."""

    setting: Setting
    seed: int
    summaries: Mapping[str, Summary]


def finished_runs(folder: Path, belongs: Callable[[RunConfig], bool]) -> list[Finished]:
    """The finished runs of a folder that belong to the study, and the summaries they have."""
    found = []
    for run in runs_in(folder):
        if not run.finished or run.trial is not None:  # what a model did on other data is no run of a study
            continue
        config = run.config
        if belongs(config):
            kept = {name: run.results.summary(name) for name in ("performance", *EXPERIMENTS)}
            setting = (config.dataset, config.model.encoder, config.model.attention)
            found.append(Finished(setting, config.seed, {name: one for name, one in kept.items() if one}))
    return found


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


def nearest_of(ours: float, theirs: Sequence[Mapping[str, Any] | None]) -> float | None:
    return min((row["mean"] for row in theirs if row), key=lambda mean: abs(mean - ours), default=None)
