"""Ours beside the published numbers: the arithmetic of the tables."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from heedful.api.studies import kept_runs, write_comparison
from heedful.cli import app
from heedful.errors import Mistake
from heedful.experiments import Published
from heedful.experiments.correlation.published import (
    Agreement,
    Cell,
    by_rule,
    cells,
    constant,
    error,
    reproduced,
    same_order,
)
from heedful.experiments.framework.comparison import Table, difference
from heedful.experiments.framework.experiment import VERDICT
from heedful.experiments.framework.verdict import Verdict, to_json
from heedful.measure.prediction import Pair, Variation, far, variation
from heedful.measure.statistics import between_seeds
from heedful.studies.comparison import Finished, agreement_tables, by_setting, comparisons, evidence, page
from heedful.studies.file import read_study, study_names
from heedful.studies.study import PublishedBy, Study
from heedful.studies.summaries_file import read_summaries, write_summaries

SETTING = ("sst", "bilstm", "additive")


def published(source: str, experiment: str, statistic: str, value: float, encoder: str = "bilstm") -> Published:
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
    return [published(source, "correlation", f"{path}.{name}", value, encoder) for name, value in numbers.items()]


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
    summaries: dict[str, Any] = {"performance": {"f1": 0.8 + seed / 100}, "correlation": dict.fromkeys(pairs, line)}
    return Finished(setting, seed, summaries)


RUNS = [finished(1, (0.44, 0.3)), finished(0, (0.40, 0.3))]


def test_runs_of_one_setting_are_one_line_with_the_spread_between_seeds() -> None:
    scores, correlations = tables(RUNS, STUDY)[:2]
    assert scores.rows == (("sst", "bilstm", "additive", "f1", "0.81 (0.01)", "0.810", "-", "-0.01 (±0.11)"),)
    first = correlations.rows[0]
    assert first[3:7] == ("τ_g", "0", "0.42 (0.03) ± 0.20", "0.59")
    assert first[7:] == ("0.40 ± 0.20, 0.50", "0.60 ± 0.20, 0.50", first[9], "")
    assert first[9].startswith("-0.08 (±")  # from the mean of the two published sets
    assert [row[4] for row in correlations.rows[:3]] == ["0", "1", "overall"]


def test_reproduced_counts_only_cells_with_a_published_number() -> None:
    assert reproduced(found(RUNS, STUDY)) == (1, 2)


def test_a_difference_stands_beside_its_prediction_interval() -> None:
    three = between_seeds([0.50, 0.52, 0.51])
    cells: list[Pair] = [(three, [0.4, None]), (between_seeds([0.51]), [0.4, 0.5])]
    known = variation(cells)
    assert (known.ours_degrees, known.theirs_degrees) == (2, 1)
    assert (known.ours, known.theirs) == pytest.approx((0.01**2, 0.1**2 / 2))
    a, b = 0.01**2 / 3, 0.1**2 / 2
    degrees = (a + b) ** 2 / (a**2 / 2 + b**2 / 1)
    limit = stats.t.ppf(0.975, degrees) * math.sqrt(a + b)
    assert known.limit(3, 1) == pytest.approx(limit)
    assert difference(*cells[0], known) == f"+0.11 (±{limit:.2f})"
    assert difference(*cells[1]) == "+0.06"
    assert difference(three, [None, None]) == "-"


def test_far_is_beyond_what_seeds_and_published_sets_allow() -> None:
    many = Variation(0.01**2, 100, 0.02**2, 100)
    limit = many.limit(3, 2)
    assert limit == pytest.approx(1.97 * math.sqrt(0.01**2 / 3 + 0.02**2 / 2), rel=0.01)
    assert far(between_seeds([0.5, 0.5, 0.5]), [0.5 - limit - 0.001, 0.5 - limit - 0.001], many)
    assert not far(between_seeds([0.5, 0.5, 0.5]), [0.5 - limit + 0.001, 0.5 - limit + 0.001], many)
    # One of the two stands for the other; without both nothing is told.
    assert Variation(0.01**2, 5, math.nan, 0).limit(1, 1) == pytest.approx(stats.t.ppf(0.975, 5) * 0.01 * math.sqrt(2))
    nothing = variation([(between_seeds([0.5]), [0.4, None])])
    assert far(between_seeds([0.5]), [0.9], nothing) is None


def test_prediction_intervals_hold_a_new_run_as_often_as_they_say() -> None:
    """Our means of three seeds against two published runs of the same distribution, pooled over 30 cells."""
    rng, beyond = np.random.default_rng(0), []
    for _ in range(60):
        cells = [(between_seeds(list(rng.normal(0, 0.05, 3))), list(rng.normal(0, 0.05, 2))) for _ in range(30)]
        known = variation(cells)
        beyond += [bool(far(*cell, known)) for cell in cells]
    assert 0.93 <= 1 - np.mean(beyond) <= 0.97


def test_shares_stand_beside_what_rules_without_models_get() -> None:
    average = ("sst", "average", "additive")
    more = (*published_tau("paper", "0", 0.5, "average"), *published_tau("paper", "1", 0.5, "average"))
    study = STUDY.model_copy(update={"numbers": (*STUDY.numbers, *more)})
    cells = found([*RUNS, finished(0, (0.6, 0.05), average)], study)
    assert same_order(cells, by_rule) == (2, 2)
    guess = constant(cells)
    first = next(cell for cell in cells if cell.setting == SETTING and cell.label == "0")
    assert guess(first) == pytest.approx((0.5 + 0.1) / 2)  # classes 0 (the mean of two sources) and 1
    assert reproduced(cells, guess) == (3, 4)  # 0.3 is within 0.12 of 0.40, not of 0.10; 0.5 is exact twice
    assert error(cells, 0, guess) == pytest.approx((0.1 + 0.2 + 0 + 0) / 4)
    assert error(cells, 1) == pytest.approx(0.18)
    said = " ".join(Agreement.of(cells, ("paper", "files")).sentences())
    assert "gets 3." in said
    assert "the constants 0.075" in said
    assert "of the published sets to each other 0.200" in said
    assert "“average > CNN > BiLSTM”, without any model, gets 2." in said


def test_a_source_that_has_none_of_the_cells_keeps_its_column() -> None:
    """Rows of one table are variants, and not all have what both sources published."""
    study = STUDY.model_copy(update={"numbers": published_tau("paper", "0", 0.5, "average")})
    cells = found([finished(0, (0.6, 0.05), ("sst", "average", "additive"))], study)
    agreed = Agreement.of(cells, ("paper", "files"))
    columns = agreed.columns()
    assert list(columns)[1:3] == ["error to `paper`", "error to `files`"]
    assert columns["error to `paper`"] == "0.100"
    assert columns["error to `files`"] == "-"
    assert "`files`" not in " ".join(agreed.sentences())


def test_settings_follow_the_order_of_the_study() -> None:
    runs = [finished(0, (0.1, 0.2), ("sst", encoder, "additive")) for encoder in ("other", "average", "bilstm")]
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


@pytest.mark.parametrize("name", study_names())
def test_every_study_of_ours_can_be_read(name: str) -> None:
    assert read_study(name).datasets


def test_a_page_is_made_again_of_the_summaries(tmp_path: Path) -> None:
    """And nothing is run: no data, no weights, no texts."""
    study = read_study("jain-wallace")
    runs = [trained(encoder, seed) for encoder in ("bilstm", "cnn") for seed in range(2)]
    path = tmp_path / "summaries.parquet"
    write_summaries(path, runs)
    again = read_summaries(path, study)
    assert len(again) == 4
    assert page("jain-wallace", again, study) == page("jain-wallace", runs, study)
    done = CliRunner().invoke(app, ["study", "jain-wallace", "--from", str(path), "--write", str(tmp_path / "p.md")])
    assert done.exit_code == 0, done.output
    assert counts(page("jain-wallace", runs, study)) == counts((tmp_path / "p.md").read_text())
    other = (tmp_path / "p.md").read_text()
    assert "because this page is about 4 other runs" in other
    assert "What would prove us wrong" not in other, "notes on other runs are not printed"
    (tmp_path / "other.parquet").write_text("no table")
    for wrong in ("other.parquet", "missing.parquet"):
        done = CliRunner().invoke(app, ["study", "jain-wallace", "--from", str(tmp_path / wrong)])
        assert isinstance(done.exception, Mistake), done.output
        assert wrong in str(done.exception)


def counts(text: str) -> str:
    return text.split("## The numbers in short")[1].split("## Appendix")[0]


def trained(encoder: str, seed: int) -> Finished:
    """With made numbers; the verdict is kept with the summary, as in a run's folder."""
    value = 0.1 * seed + (0.3 if encoder == "bilstm" else 0.5) + 1 / 3
    tau = {"n": 100, "mean": value, "std": 0.2, "sig_frac": 0.5}
    line = {"overall": {"tau": tau}, "by_class": {"0": {"tau": tau}}}
    verdict = Verdict("Does it?", "for", "yes", "it does", "a rule", "does", value, value - 0.1, value + 0.1, (0.2,))
    stored: dict[str, dict[str, Any]] = {
        "performance": {"f1": value, "accuracy": value},
        "correlation": {"attention/gradient_x_input": line, VERDICT: to_json(verdict)},
    }
    config = read_study("jain-wallace").config("sst", encoder, "additive", seed)
    return Finished(("sst", encoder, "additive"), seed, stored, config=config)


def test_agreement_of_variants_is_each_ones_own() -> None:
    study = read_study("jain-wallace-setup")
    runs = [
        replace(trained(encoder, seed), setting=("sst", encoder, f"additive, {variant}"))
        for encoder in ("bilstm", "average")
        for seed in range(2)
        for variant in ("authors", "fewer_vectors")
    ]
    far_off = {
        "attention/gradient_x_input": {
            "overall": {"tau": {"n": 9, "mean": -0.9, "std": 0.1, "sig_frac": 0.0}},
            "by_class": {},
        }
    }
    runs += [Finished(("sst", "bilstm", "additive, sst_texts_before"), 0, {"correlation": far_off})]
    (table,) = agreement_tables(runs, study)
    cells = {row[1]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(cells) == ["authors", "sst_texts_before", "fewer_vectors"]  # in the order of the study
    assert cells["authors"] | {"variant": ""} == cells["fewer_vectors"] | {"variant": ""}
    assert (cells["authors"]["runs"], cells["sst_texts_before"]["runs"]) == ("4", "1")
    assert cells["sst_texts_before"]["within 0.12"] == "0 of 1"
    assert cells["sst_texts_before"]["error to `files`"] == "1.251"  # the files have .3512 over all texts
    assert "agreement" in page("jain-wallace-setup", runs, study)


@pytest.mark.parametrize("name", ["jain-wallace", "jain-wallace-setup", "interventions", "interventions-order"])
def test_the_pages_of_the_documentation_are_what_their_summaries_make(name: str, tmp_path: Path) -> None:
    """Nobody has changed a number by hand, or the notes without the page. Of a figure the numbers are compared: how its
    letters are placed depends on the fonts of the machine."""
    results = Path(__file__).parent.parent / "docs" / "results"
    page, figure = write_comparison(name, kept_runs(name, results / f"{name}.parquet"), tmp_path / f"{name}.md")
    assert page.read_text(encoding="utf-8") == (results / page.name).read_text(encoding="utf-8")
    drawn, kept = (labels(path.read_text(encoding="utf-8")) for path in (figure, results / figure.name))
    assert drawn == kept
    assert len(kept) > 10


def labels(svg: str) -> list[str]:
    """What an SVG says of each of its marks, numbers included."""
    return re.findall(r'aria-label="([^"]*)"', svg)


@pytest.mark.parametrize("name", ["jain-wallace", "jain-wallace-setup", "interventions", "interventions-order"])
def test_a_page_opens_with_its_finding_in_three_sentences_and_a_figure(name: str) -> None:
    text = (Path(__file__).parent.parent / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    title, finding, figure, *_ = text.split("\n\n")
    assert title.startswith("# ")
    assert len(re.findall(r"[.](?: |$)", finding)) <= 4
    assert figure.endswith(f"({name}.svg)")
    for count in re.findall(r"\d+ of \d+", finding):
        assert count in counts(text), f"the finding says {count}, and the runs do not"
    assert all(line.startswith("## Appendix") for line in re.findall(r"^## .*", text, re.M)[1:])


def test_a_study_is_found_by_its_older_name_and_says_the_new_one() -> None:
    kept = Path(__file__).parent.parent / "docs" / "results" / "interventions-order.parquet"
    done = CliRunner().invoke(app, ["study", "cures-order", "--from", str(kept)])
    assert done.exit_code == 0, done.output
    assert "`cures-order` is now called `interventions-order`" in done.stderr
    assert "cures" not in study_names()
