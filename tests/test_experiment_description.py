"""What every experiment says about itself, and one of another package that appears everywhere without a line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import altair as alt
import jsonschema_rs
import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import webruns
import zoo
from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Experiment, Result, find, summary_with_verdict, to_table, without_verdict
from heedful.experiments.edited_attention.choice import beside_bars
from heedful.experiments.framework.comparison import Evidence
from heedful.experiments.framework.description import number_at, value_at
from heedful.experiments.framework.parts import Presentation
from heedful.experiments.framework.verdict import OUR_OWN
from heedful.measure.columns import frame, rows_of
from heedful.report.findings import Findings, Illustrated
from heedful.report.page import page as report_page
from heedful.server.app import create_app
from heedful.server.stored.library import Library
from heedful.studies.comparison import Finished, page
from heedful.studies.file import read_study
from heedful.studies.study import Study
from material import (
    compared_tables_of,
    erased_tables_of,
    evidence_tables_of,
    findings_of,
    illustrated,
    table_of_deception,
    table_of_heads,
    table_of_masked_twin,
    table_of_retrain,
    tables_of,
    trial_of,
)
from test_rationale import halves, network

BUILT_IN = tuple(EXPERIMENTS.places)
NAMES = tuple(EXPERIMENTS)  # and those of packages that are installed
SETTING = ("sst", "bilstm", "additive")


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    known = (
        tables_of(80)
        | erased_tables_of(80)
        | {"heads": table_of_heads(80), "deception": table_of_deception(80)}
        | evidence_tables_of(80)
        | compared_tables_of(80)
        | {"faithfulness": table_of_faithfulness(24)}
        | {name: table_of_network(name, 24) for name in ("conicity", "uniform_inference")}
        | {"trojans": table_of_trojans()}
        | {"retrain": table_of_retrain(80), "masked_twin": table_of_masked_twin(80)}
    )
    return known | {name: table_of_network(name, 24) for name in NAMES if name not in known}


def table_of_faithfulness(n: int) -> pa.Table:
    """Of a small network with random weights: there are too many columns to make them up."""
    experiment, batch = find("faithfulness"), zoo.batch([2 + i % 8 for i in range(n)])
    asked = {"exact": 5, "draws": 4, "beam": 1, "operators": ["delete", "mask", "soft"]}
    config = experiment.config.parse(asked, "the test")
    return to_table(experiment.run(zoo.network(), [(np.arange(n), batch)], config, np.random.default_rng(0)))


def table_of_trojans() -> pa.Table:
    """Of a model that selects about half of the words, and enough texts for readers."""
    experiment, batch = find("trojans"), zoo.batch([2 + i % 8 for i in range(80)])
    rows = experiment.run(halves(network(), batch), [(np.arange(80), batch)], Config(), np.random.default_rng(0))
    return to_table(rows)


def table_of_network(name: str, n: int) -> pa.Table:
    experiment, batch = find(name), zoo.batch([2 + i % 8 for i in range(n)])
    rows = experiment.run(zoo.network(), [(np.arange(n), batch)], experiment.config(), np.random.default_rng(0))
    return to_table(rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_column_that_can_be_drawn_is_described(name: str, tables: dict[str, pa.Table]) -> None:
    experiment, table = find(name), tables[name]
    types = {field.name: str(field.type) for field in table.schema}
    drawable = experiment.drawable(types)
    assert drawable
    assert set(drawable) <= set(experiment.columns)
    for column in drawable:
        about = experiment.column(column)
        values = np.array(table[column], dtype=float)
        low, high = about.range_of(values)
        edges = about.edges_of(values)
        assert about.title
        assert about.reading.endswith(".")
        assert low <= np.nanmin(values)
        assert np.nanmax(values) <= high
        assert (edges[0], edges[-1]) == (low, high)
        assert (np.diff(edges) > 0).all()
    assert experiment.question.endswith("?")
    assert experiment.asks.startswith("whether ") or (not experiment.asks and name not in BUILT_IN)
    assert experiment.paper
    assert len(experiment.takes.forwards) == 2


@pytest.mark.parametrize("name", NAMES)
def test_measures_and_statistics_stand_in_the_summary(name: str, tables: dict[str, pa.Table]) -> None:
    experiment, trial = find(name), trial_of(name, tables[name])
    groups = experiment.groups(trial.table)
    assert (experiment.by is None) == (groups == [])
    assert experiment.measures
    for measure in experiment.measures:
        frame = trial.frame(measure.column, experiment.by, measure.group)
        mean = number_at(trial.summary, f"{measure.line}.mean")
        assert mean == pytest.approx(np.nanmean(frame.value))
        assert measure.group is None or measure.group in groups
    for statistic in experiment.statistics:
        value = number_at(trial.summary, statistic.path)
        assert value is not None
        assert f"{value:{statistic.form}}"
        assert statistic.reading.endswith(".")
    weights = experiment.pages.weights
    if weights is not None:
        row = trial.table.to_pylist()[0]
        assert len(row[weights.own]) == len(row[weights.other]) == row["n_words"]
        assert weights.caption(row)


@pytest.fixture(scope="module")
def vega_lite() -> jsonschema_rs.Validator:
    """The schema that altair has. Names of its parts have signs that a reference may not have as they are."""
    (schema,) = Path(alt.__file__).parent.glob("vegalite/v*/schema/vega-lite-schema.json")

    def referred(part: dict[str, Any]) -> dict[str, Any]:
        return {**part, "$ref": quote(part["$ref"], safe="#/")} if "$ref" in part else part

    return jsonschema_rs.validator_for(json.loads(schema.read_text(), object_hook=referred))


def a_few_columns(experiment: Experiment, table: pa.Table) -> pa.Table:
    """The first six columns that can be drawn, of the first two groups: there may be hundreds of such figures."""
    drawable = experiment.drawable({field.name: str(field.type) for field in table.schema})
    groups = list(experiment.groups(table))[:2]
    if groups:
        table = pa.concat_tables(rows_of(table, experiment.by, group) for group in groups)
    return table.drop_columns(drawable[6:])


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_valid_and_can_be_clicked(
    name: str, tables: dict[str, pa.Table], vega_lite: jsonschema_rs.Validator
) -> None:
    """Valid by the schema of Vega-Lite; what can be clicked names a column that can be asked for."""
    experiment, trial = find(name), trial_of(name, tables[name])
    keys = {"max_attention", *experiment.columns}
    for own, shown in (
        (experiment, trial),
        (
            replace(experiment, pages=replace(experiment.pages, draw=None)),
            replace(trial, table=a_few_columns(experiment, trial.table)),
        ),
    ):  # its own, and those it would get without
        figures = own.figures(shown)
        assert len({figure.id for figure in figures}) == len(figures) > 0
        for figure in figures:
            vega_lite.validate(figure.spec)
            assert figure.title
            assert figure.read
            assert figure.spoken.endswith(".")
            parts = [figure.spec, *figure.spec["layer"]]
            rows = [row for part in parts for row in part.get("data", {}).get("values", [])]
            for row in rows:
                assert row.get("measure", "max_attention").split(":")[0] in keys


@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_has_a_grade_an_interval_and_a_rule_and_survives_its_file(
    name: str, tables: dict[str, pa.Table]
) -> None:
    experiment, trial = find(name), trial_of(name, tables[name])
    verdict = experiment.verdict(trial)
    if name not in BUILT_IN and experiment.judge is None:
        assert verdict is None
        return
    assert verdict is not None
    assert verdict.question == experiment.question
    assert verdict.grade in ("for", "mixed", "against", "undecided")
    assert verdict.value is not None
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low <= verdict.value <= verdict.high
    assert verdict.source == (beside_bars(name) or OUR_OWN)
    assert verdict.counts == experiment.counts  # what a page says of its headline needs no rows
    assert list(verdict.bars) == sorted(verdict.bars)
    assert len(verdict.bars) == 2
    assert any(f"{bar:g}" in verdict.rule or f"{bar:.0%}" in verdict.rule for bar in verdict.bars)
    stored = summary_with_verdict(experiment, trial)
    summary, again = without_verdict(stored)
    assert summary == experiment.summarise(trial.table)
    assert again == verdict
    assert without_verdict({**stored, "verdict": {"grade": "for"}})[1] is None  # of another version


@pytest.mark.parametrize("name", NAMES)
def test_examples_rank_real_places(name: str, tables: dict[str, pa.Table]) -> None:
    places = set(tables[name]["example"].to_pylist())
    found = list(find(name).examples(trial_of(name, tables[name])))
    assert found
    for reason in found:
        assert reason.title
        assert reason.reason.endswith(".")
        assert set(reason.places) <= places
        assert len(set(reason.places)) == len(reason.places)


@pytest.mark.parametrize("name", NAMES)
def test_a_comparison_has_one_line_for_each_setting_at_least(name: str, tables: dict[str, pa.Table]) -> None:
    summary = find(name).summarise(tables[name])
    made = find(name).compare(Evidence({SETTING: [summary], ("x", "y", "z"): []}, (), ("paper",)))
    (table,) = made.tables
    assert {row[:3] for row in table.rows} == {SETTING}
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert find(name).compare(Evidence({}, (), ("paper",))).tables == ()


def test_a_path_finds_keys_that_have_dots_themselves() -> None:
    summary = {"by": {"[.25, .5)": {"mean": 0.5}}, "a": {"b": 1}, "a.b": {"c": True}}
    assert value_at(summary, "by.[.25, .5).mean") == 0.5
    assert value_at(summary, "a.b.c") is True
    assert number_at(summary, "a.b.c") is None
    assert number_at(summary, "a.b") is None
    assert number_at(summary, "by.nothing.mean") is None


def test_groups_may_be_numbers_and_columns_may_be_missing() -> None:
    table = pa.table({"example": [0, 1, 0, 1], "layer": [1, 1, 2, 2], "score": [0.1, None, 0.3, 0.4]})
    experiment = replace(find(BUILT_IN[0]), by="layer", columns={}, pages=Presentation())
    assert experiment.groups(table) == ["1", "2"]
    found = frame(table, "score", "layer", "2")
    assert found.value.tolist() == [0.3, 0.4]
    assert found.predicted.tolist() == [-1, -1]
    assert np.isnan(found.max_attention).all()
    drawn = experiment.figures(Result("odd", table, {}, labels=("a", "b")))
    assert [figure.id for figure in drawn] == ["score-1", "score-2"]


# ---- an experiment of another package ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Installed: a distribution with one entry point, and not a line in heedful."""
    installed = tmp_path_factory.mktemp("site") / "made_up-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[heedful.experiments]\nlayers = made_up_experiment:LAYERS\n")
    sys.path.insert(0, str(installed.parent))
    importlib.invalidate_caches()
    EXPERIMENTS.__dict__.pop("found", None)
    try:
        yield "layers"
    finally:
        sys.path.remove(str(installed.parent))
        EXPERIMENTS.__dict__.pop("found", None)


@pytest.fixture(scope="module")
def runs(layers: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        webruns.make_run(
            folder,
            f"made-average-additive-s{seed}-1",
            webruns.examples(webruns.SENTENCES * 3),
            seed=seed,
            experiments=["permutation", layers],
        )
    return folder


def test_it_is_found_by_name(layers: str) -> None:
    assert list(EXPERIMENTS) == [*NAMES, layers]
    assert find(layers).paper == "Nobody 2030, section 1"


def rows(n: int) -> pa.Table:
    parts = [
        pa.table(
            {
                "example": np.arange(n),
                "predicted": np.arange(n) % 2,
                "layer": [layer] * n,
                "score": 5.0 * i + np.arange(n) / 10,
            }
        )
        for i, layer in enumerate(("first", "the last: one"))
    ]
    return pa.concat_tables(parts)


def with_layers(subject: Illustrated, layers: str) -> Illustrated:
    findings = subject.findings
    table = rows(len(subject.examples))
    made: Findings = replace(
        findings,
        tables={**findings.tables, layers: table},
        summaries={**findings.summaries, layers: find(layers).summarise(table)},
        asked={**findings.asked, layers: {"split": "test"}},
    )
    return replace(subject, findings=made)


def test_it_stands_in_the_report(layers: str) -> None:
    one, other = with_layers(illustrated(), layers), with_layers(illustrated(name="other"), layers)
    html = report_page([one, other])
    rows_of_it = [
        row.split("</li>")[0]
        for row in html.split('<li class="verdict ')[1:]
        if "Do the &lt;b&gt;layers&lt;/b&gt; see the same?" in row.split("</li>")[0]
    ]
    assert len(rows_of_it) == html.count("Do the &lt;b&gt;layers&lt;/b&gt; see the same?") == 2  # one of each run
    for row in rows_of_it:  # its verdict and its figures stand together
        assert row.startswith("for")
        assert "supports" in row
        assert 'data-figure="score-first"' in row
        assert 'data-figure="score-the-last--one"' in row
    assert "The mean score is" in html
    assert "A made-up paper." in html
    assert html.count('data-figure="score-first"') == html.count('data-figure="score-the-last--one"') == 2
    assert "whether its layers see the same" in html
    assert "Last layer: mean score." in html
    assert "layers (Nobody 2030, section 1)" in html
    assert "score of a layer of the last: one" in html  # a measure of the list of texts
    assert "heedful run correlation permutation adversarial layers" in html
    alone = findings_of({layers: rows(9)})
    assert "score-first" in report_page([Illustrated(alone)])


def test_it_stands_in_every_page_of_serve(runs: Path, layers: str) -> None:
    client = TestClient(create_app(Library(runs)), base_url="http://localhost")
    name = "made-average-additive-s0-1"

    def data(address: str) -> Any:
        response = client.get(address, headers={"Accept": "application/json"})
        assert response.status_code == 200, response.text
        return response.json()

    overview = data("/?measure=layers")
    assert overview["title"] == "score of the last layer"
    assert (overview["low"], overview["high"]) == (5.0, 6.7)  # of the values: the column says none
    assert sum(overview["runs"][0]["counts"]) == 17
    assert "score of the last layer" in client.get("/?measure=layers").text
    run = data(f"/runs/{name}")
    assert run["judged"]["verdicts"][layers]["answer"] == "They do"
    (shown,) = [m for m in run["measures"] if m["experiment"] == layers]
    assert shown["mean"] == pytest.approx(np.mean([5 + i / 10 for i in range(18) if i != 1]))
    page = client.get(f"/runs/{name}/{layers}")
    assert page.status_code == 200
    assert "Do the &lt;b&gt;layers&lt;/b&gt; see the same?" in page.text
    assert "They do" in page.text
    assert 'name="layer"' in page.text
    found = data(f"/runs/{name}/{layers}?layer=the last: one&low=5.5&high=6")
    assert (found["by"], found["group"], found["column"]) == ("layer", "the last: one", "score")
    assert found["selected"] == 5
    assert found["undefined"] == 1
    assert client.get(f"/runs/{name}/{layers}?layer=none").status_code == 422
    text = client.get(f"/runs/{name}/examples/3").text
    assert text.count("score of a layer") == 2  # one for each layer
    compared = data(f"/compare?measure=layers&a={name}&b=made-average-additive-s1-1")
    assert compared["matched"] == 17
    assert compared["measures"]["layers"]["a"]["mean"] == shown["mean"]
    assert "B: score" in client.get(f"/compare?measure=layers&a={name}&b=made-average-additive-s1-1").text


def test_it_stands_in_a_study_with_its_published_numbers(layers: str, tmp_path: Path) -> None:
    head = 'title = "made"\ndatasets = ["sst"]\nencoders = ["bilstm"]\nattentions = ["additive"]\n'
    head += 'experiments = ["layers"]\nnumbers = "made.csv"\n[[sources]]\nname = "them"\ntitle = "Nobody 2030"\n'
    (tmp_path / "made.toml").write_text(head)
    (tmp_path / "made.csv").write_text(
        "source,experiment,statistic,dataset,encoder,attention,value,mean\n"
        "them,layers,the last: one,sst,bilstm,additive,,5.5\n"
    )
    study = read_study(str(tmp_path / "made.toml"))
    assert [row.statistic for row in study.numbers] == ["the last: one.mean"]
    text = page("made", [Finished(SETTING, 0, {layers: find(layers).summarise(rows(11))})], study)
    assert "| dataset | encoder | attention | measure | ours | them | ours - published (± expected) |" in text
    assert "| sst | bilstm | additive | score of the last layer | 5.50 | 5.500 | +0.00 |" in text


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ("source,experiment,statistic,dataset,encoder,attention,value\nx,y,z,a,b,c\n", "line 2"),
        ("source,experiment,statistic,dataset,encoder,value\n", "no column 'attention'"),
        ("source,experiment,statistic,dataset,encoder,attention,value\nx,y,z,a,b,c,high\n", "value"),
        (None, "cannot be read"),
    ],
)
def test_published_numbers_are_checked(tmp_path: Path, numbers: str | None, says: str) -> None:
    (tmp_path / "own.toml").write_text(
        'title = "x"\ndatasets = []\nencoders = []\nattentions = []\nexperiments = []\nnumbers = "own.csv"\n'
    )
    if numbers is not None:
        (tmp_path / "own.csv").write_text(numbers)
    with pytest.raises(Mistake, match=says):
        read_study(str(tmp_path / "own.toml"))


def test_published_numbers_can_stand_in_the_study_and_unknown_keys_are_refused() -> None:
    row = {"source": "a", "experiment": "b", "statistic": "c", "dataset": "d", "encoder": "e", "attention": "f"}
    values: dict[str, Any] = {"title": "x", "datasets": [], "encoders": [], "attentions": [], "experiments": []}
    assert Study.parse(values | {"numbers": [row | {"value": 1}]}, "x").numbers[0].value == 1.0
    with pytest.raises(Mistake, match="measure"):
        Study.parse(values | {"numbers": [row | {"value": 1, "measure": "loo"}]}, "x")


def test_results_of_an_experiment_that_is_not_installed_can_still_be_read(runs: Path, layers: str) -> None:
    client = TestClient(create_app(Library(runs)), base_url="http://localhost")
    found, loaded = EXPERIMENTS.__dict__["found"], dict(EXPERIMENTS._loaded)
    EXPERIMENTS.__dict__["found"] = {}
    EXPERIMENTS._loaded.pop(layers, None)
    try:
        name = "made-average-additive-s0-1"
        for address in ("/", f"/runs/{name}", f"/runs/{name}/{layers}", f"/runs/{name}/examples/3"):
            assert client.get(address).status_code == 200, address
        asked = client.get(f"/runs/{name}/{layers}?format=json").json()
        assert (asked["question"], asked["column"], asked["verdict"]) == (layers, "score", None)
    finally:
        EXPERIMENTS.__dict__["found"] = found
        EXPERIMENTS._loaded.update(loaded)


def test_describing_needs_neither_torch_nor_altair() -> None:
    import subprocess

    script = """
import sys
from heedful.experiments import EXPERIMENTS
for experiment in EXPERIMENTS.values():
    assert experiment.columns and experiment.judge and experiment.code
assert not {"torch", "altair", "pandas", "scipy.stats"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_trial_without_words_is_no_accident(tables: dict[str, pa.Table]) -> None:
    """Nothing defined: no verdict falls over, and none speaks for or against."""
    for name in BUILT_IN:
        table = tables[name]
        for column in find(name).columns:
            if column in table.column_names:
                place = table.schema.get_field_index(column)
                table = table.set_column(place, column, pa.nulls(len(table), pa.float64()))
        verdict = find(name).verdict(Result(name, table, {}))
        assert verdict is not None
        assert (verdict.grade, verdict.value) == ("unclear", None)
