"""Ours beside the published numbers: the arithmetic of the tables."""

from __future__ import annotations

from typing import Any

from heedful.engine.study import PublishedBy, Study
from heedful.experiments import Published
from heedful.experiments.comparison import Table, difference
from heedful.experiments.correlation_published import Cell, cells, reproduced, same_order
from heedful.measure.statistics import between_seeds
from heedful.report.comparison import Finished, by_setting, comparisons, evidence

SETTING = ("sst", "bilstm", "additive")


def published(
    source: str, experiment: str, statistic: str, value: float, encoder: str = "bilstm"
) -> Published:
    return Published(
        source=source,
        experiment=experiment,
        statistic=statistic,
        dataset="sst",
        encoder=encoder,
        attention="additive",
        value=value,
    )


def published_tau(source: str, label: str, mean: float, encoder: str = "bilstm") -> list[Published]:
    path = f"attention/gradient_x_input.by_class.{label}.tau"
    numbers = {"mean": mean, "std": 0.2, "sig_frac": 0.5}
    return [
        published(source, "correlation", f"{path}.{name}", value, encoder) for name, value in numbers.items()
    ]


STUDY = Study(
    title="made",
    datasets=("sst",),
    encoders=("bilstm", "average"),
    attentions=("additive",),
    experiments=("correlation",),
    sources=(PublishedBy(name="paper", title="a paper"), PublishedBy(name="files", title="its files")),
    numbers=(
        published("paper", "performance", "f1", 0.81),
        *published_tau("paper", "0", 0.40),
        *published_tau("files", "0", 0.60),
        *published_tau("paper", "1", 0.10),
    ),
)


def tables(runs: list[Finished], study: Study) -> list[Table]:
    return [table for one in comparisons(runs, study) for table in one.tables]


def found(runs: list[Finished], study: Study) -> list[Cell]:
    return list(cells(evidence("correlation", by_setting(runs, study), study.numbers, ("paper", "files"))))


def tau(mean: float) -> dict[str, Any]:
    return {"tau": {"mean": mean, "std": 0.2, "sig_frac": 0.59, "n": 10, "undefined": 0}}


def finished(seed: int, means: tuple[float, float], setting: tuple[str, str, str] = SETTING) -> Finished:
    line = {"overall": tau(sum(means) / 2), "by_class": {str(i): tau(mean) for i, mean in enumerate(means)}}
    pairs = ("attention/gradient_x_input", "attention/omission", "gradient_x_input/omission")
    summaries: dict[str, Any] = {
        "performance": {"f1": 0.8 + seed / 100},
        "correlation": dict.fromkeys(pairs, line),
    }
    return Finished(setting, seed, summaries)


RUNS = [finished(1, (0.44, 0.3)), finished(0, (0.40, 0.3))]


def test_runs_of_one_setting_are_one_line_with_the_spread_between_seeds() -> None:
    scores, correlations = tables(RUNS, STUDY)[:2]
    assert scores.rows == (
        ("sst", "bilstm", "additive", "f1", "0.81 (0.01)", "0.810", "-", "-0.01 (-0.7 spreads)"),
    )
    first = correlations.rows[0]
    assert first[3:7] == ("τ_g", "0", "0.42 (0.03) ± 0.20", "0.59")
    assert first[7:] == ("0.40 ± 0.20, 0.50", "0.60 ± 0.20, 0.50", "+0.02 (+0.7 spreads)", "")
    assert correlations.rows[1][-1] == "far"  # 0.30 against 0.10
    assert [row[4] for row in correlations.rows[:3]] == ["0", "1", "overall"]


def test_reproduced_counts_only_cells_with_a_published_number() -> None:
    assert reproduced(found(RUNS, STUDY)) == (1, 2)


def test_a_difference_is_flagged_beyond_two_spreads_and_never_with_one_seed() -> None:
    assert difference(between_seeds([0.50, 0.52, 0.51]), [0.4, None]) == "+0.11 (+11.0 spreads !)"
    assert difference(between_seeds([0.51]), [0.4, 0.52]) == "-0.01"
    assert difference(between_seeds([0.51]), [None, None]) == "-"


def test_settings_follow_the_order_of_the_study() -> None:
    runs = [
        finished(0, (0.1, 0.2), ("sst", encoder, "additive")) for encoder in ("other", "average", "bilstm")
    ]
    assert [setting[1] for setting in by_setting(runs, STUDY)] == ["bilstm", "average", "other"]


def test_markdown_has_one_line_for_each_row_and_escapes_bars() -> None:
    text = tables(RUNS, STUDY)[0].markdown()
    assert text.count("\n|") == 3
    assert "## Test scores" in text


def test_the_order_of_encoders() -> None:
    average = ("sst", "average", "additive")
    more = (*published_tau("paper", "0", 0.5, "average"), *published_tau("paper", "1", 0.5, "average"))
    study = STUDY.model_copy(update={"numbers": (*STUDY.numbers, *more)})
    higher = found([*RUNS, finished(0, (0.6, 0.05), average)], study)
    assert same_order(higher) == (1, 2)  # class 0 as published, class 1 not; nothing else was published
    assert same_order(found(RUNS, study)) == (0, 0)
