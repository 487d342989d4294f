"""`heedful audit` and `heedful.audit`, whole: a small run, a function, wrong input, an interruption, bars in pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
import torch
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

import heedful
from heedful.auditing.ask import plan as audit_plan
from heedful.auditing.ask.audit import given_texts
from heedful.auditing.ask.sample import explain_sample
from heedful.auditing.ask.subject import Answered, AskedRows, InFolder, open_subject
from heedful.auditing.ask.within import AskedQuestions, ask_others
from heedful.auditing.outcome.requirements import parse_bars
from heedful.auditing.record import Audit
from heedful.cli import app
from heedful.data.generated.planted import generate
from heedful.engine.running.processors import stopped_after
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.experiments.framework.description import MethodMeasure
from heedful.experiments.framework.parts import ForAudit
from heedful.experiments.ground_truth.planted import PLANTED
from heedful.registry import EXPERIMENTS
from heedful.server.app import create_app
from heedful.server.stored.library import Library
from heedful.store.run import Run
from made_up_experiment import LAYERS
from material import evidence_tables_of
from shared import made_once

QUIET = Progress(quiet=True)
SMALL: dict[str, Any] = {"encoder": "average", "embedding_dim": 8, "hidden_dim": 8, "epochs": 3, "batch_size": 16}
COLUMNS = {"text_column": "review", "label_column": "verdict"}
EVERY = dict(EXPERIMENTS.places)
ASKED = ("faithfulness", "erasure", "correlation")  # of the tests: enough of every kind


def table(path: Path, rows: Sequence[Sequence[str]], columns: Sequence[str] = ("review", "verdict")) -> str:
    lines = [columns, *rows]
    path.write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def reviews(n: int, seed: int) -> list[tuple[str, str]]:
    return [(one.text, one.label) for one in generate("single", n, seed=seed)]


def train_and_audit(folder: Path) -> None:
    """A run in `trained`, and the same after an audit in `audited`."""
    data = {**COLUMNS, "tokenizer": "whitespace"}
    file = table(folder / "train.csv", reviews(120, 0))
    run = heedful.train(file, data=data, runs=folder / "trained", progress=QUIET, **SMALL)
    copy = copied(folder / "trained", folder / "audited")
    assert copy.name == run.name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EXPERIMENTS, "places", {name: EXPERIMENTS.places[name] for name in ASKED})
        heedful.audit(copy, budget="1h")


def copied(runs: Path, place: Path) -> Run:
    """The one run of a folder, with what is kept beside it."""
    shutil.copytree(runs, place)
    (info,) = place.glob("*/SHA256SUMS")
    return Run(info.parent)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "an_audit", train_and_audit)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    """A copy, so that what a test leaves beside it is its own."""
    return copied(made / "trained", tmp_path / "runs")


@pytest.fixture
def audited(made: Path, tmp_path: Path) -> Run:
    """A copy of the run that has been audited: what is asked of it again is read."""
    return copied(made / "audited", tmp_path / "runs")


@pytest.fixture(autouse=True)
def few_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others have tests of their own; a whole audit asks all of them."""
    monkeypatch.setattr(EXPERIMENTS, "places", {name: EXPERIMENTS.places[name] for name in ASKED})


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "-q"], catch_exceptions=True)


def columns() -> list[str]:
    return ["--text-column", "review", "--label-column", "verdict"]


def test_an_audit_of_one_s_own_file(run: Run, tmp_path: Path) -> None:
    file = table(tmp_path / "mine.csv", reviews(24, 1))
    out = {name: tmp_path / "out" / name for name in ("page.html", "bars.xml", "card.md")}
    done = command(
        run.path,
        "--data",
        file,
        *columns(),
        "--budget",
        "1h",
        "-o",
        out["page.html"],
        "--junit",
        out["bars.xml"],
        "--model-card",
        out["card.md"],
        "--require",
        "performance.accuracy >= 0.01",
        "--require",
        "faithfulness(omission).comprehensiveness.share >= 0.01",
    )
    assert done.exit_code == 0, done.output
    (folder,) = [path for path in run.path.parent.iterdir() if "-on-mine-" in path.name]
    kept = json.loads((folder / "audit.json").read_text())
    methods = {row["method"]: row for row in kept["methods"]}
    assert {"attention", "gradient", "lrp", "omission", "random"} <= set(methods)
    assert methods["random"]["kind"] == "control"
    assert methods["random"]["answer"] != "better"
    assert kept["left_out"]["rollout"].startswith("it needs a model in whose layers")
    assert "--method lime" in kept["left_out"]["lime"]
    assert set(kept["verdicts"]) == {"erasure", "correlation"}
    assert kept["recommendation"][0] in done.output
    page = out["page.html"].read_text()
    assert page == (folder / "audit.html").read_text()
    assert "How the explainers stand" in page
    (suite,) = ElementTree.parse(out["bars.xml"]).getroot()
    assert suite.get("failures") == "0"
    assert "## Explanations" in out["card.md"].read_text()


def test_a_missed_bar_ends_with_1_and_tells_github(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr(EXPERIMENTS, "places", {"erasure": EXPERIMENTS.places["erasure"]})
    done = command(run.path, "--budget", "1h", "--bar", "erasure(attention).js >= 0.69", "--json")
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert told["bars"][0]["met"] is False
    assert "::error title=heedful audit::erasure(attention).js >= 0.69: missed" in done.stderr


def test_a_slip_in_a_bar_costs_nothing(run: Run, tmp_path: Path) -> None:
    done = command(run.path, "--bar", "faithfulness(lpr).comprehensiveness >= 0.2")
    assert isinstance(done.exception, Mistake)
    assert "there is no method 'lpr'. Did you mean 'lrp'?" in str(done.exception)
    assert not (run.path / "results" / "kept").exists()


def test_a_dry_run_computes_nothing(run: Run) -> None:
    done = command(run.path, "--dry-run", "--budget", "1h30m")
    assert done.exit_code == 0, done.output
    assert "faithfulness: about" in done.output
    assert "forward passes a text" in done.output
    assert "in 1 h 30 min" in done.output
    assert "memory: about" in done.output
    assert not (run.path / "results" / "kept").exists()


# ---- wrong input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "given", "said"),
    [
        ([], {}, "there are no rows"),
        ([("fine words here", "splendid"), ("dull words", "negative")], {}, "'splendid' is none of the model's"),
        ([("fine words here", "positive")], {"label_column": "labl"}, "has no label column 'labl'"),
        ([("fine words here", "positive")], {"text_column": "txt"}, "has no text column 'txt'"),
        ([("fine words", "")], {}, "label"),
    ],
)
def test_wrong_data_are_one_sentence_and_leave_nothing_behind(
    run: Run, tmp_path: Path, rows: list[tuple[str, str]], given: dict[str, str], said: str
) -> None:
    file = table(tmp_path / "wrong.csv", rows)
    with pytest.raises(Mistake, match=said):
        heedful.audit(run, data=file, data_options={**COLUMNS, **given}, budget="1h")
    assert not [path for path in run.path.parent.iterdir() if "-on-" in path.name]


@pytest.mark.long
def test_texts_without_labels_and_of_one_label_are_audited_with_a_warning(run: Run, tmp_path: Path) -> None:
    texts = reviews(12, 2)
    plain = table(tmp_path / "plain.csv", [(text,) for text, _ in texts], ("review",))
    found = heedful.audit(run, data=plain, data_options={"text_column": "review"}, budget="1h")
    assert any("have no labels" in warning for warning in found.warnings)
    one = table(tmp_path / "one.csv", [(text, "positive") for text, _ in texts])
    found = heedful.audit(run, data=one, data_options=COLUMNS, budget="1h")
    assert any("all texts have the label 'positive'" in warning for warning in found.warnings)
    assert any("only 12 texts were used" in warning for warning in found.warnings)


def test_copies_and_a_model_that_nothing_changes_are_warned_of() -> None:
    def predict(texts: Sequence[str]) -> np.ndarray:
        return np.tile([[0.3, 0.7]], (len(texts), 1))

    texts = ["a long dull film", "that was superb"] * 5
    found = heedful.audit(heedful.wrap(predict, labels=["neg", "pos"]), texts, budget="1h")
    assert {one.answer for one in found.standings.order} == {"cannot tell"}
    assert any("8 of 10 texts are copies of others" in warning for warning in found.warnings)
    assert any(
        "is any order of the words better than another, so nothing can be found" in warning
        for warning in found.warnings
    )
    assert any("'pos' for every one of the 10 texts" in warning for warning in found.warnings)


def test_a_function_that_fails_is_said() -> None:
    def predict(texts: Sequence[str]) -> np.ndarray:
        raise ZeroDivisionError("no texts today")

    with pytest.raises(Mistake, match=r"nothing could be tested on .*no texts today"):
        heedful.audit(heedful.wrap(predict, labels=["neg", "pos"]), ["a film", "a book"], budget="1h")


def test_the_score_of_a_model_does_not_rest_on_the_few_texts_that_were_asked_last(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table(tmp_path / "mine.csv", reviews(40, 1))
    monkeypatch.setattr(audit_plan, "ASKING", -1.0)  # no time: two texts
    bar = "performance.accuracy >= 0"
    found = heedful.audit(run, data=file, data_options=COLUMNS, budget="1h", bars=[bar])
    assert [one.texts for one in found.questions] == [2]
    assert found.summaries["performance"]["examples"] == 30
    assert found.outcomes[0].sentence.endswith("(30 texts).")


def test_budget_output_and_split_are_checked_first(run: Run, tmp_path: Path) -> None:
    for arguments, said in (
        (["--budget", "soon"], "--budget 'soon'"),
        (["-o", str(tmp_path)], "ends in .html"),
        (["--junit", str(tmp_path)], "no file can be written there"),
        (["--model-card", str(run.path / "config.json" / "card.md")], "no file can be written there"),
        (["--shortcut", "singel"], "there is no shortcut to --plant 'singel'. Did you mean 'single'?"),
        (["--split", "tset"], "the splits are"),
        (["--method", "lrpp"], "Did you mean 'lrp'?"),
        (["--experiment", "faith"], "there is no experiment 'faith'"),
    ):
        done = command(run.path, *arguments)
        assert isinstance(done.exception, Mistake), arguments
        assert said in str(done.exception)


def test_an_experiment_that_fails_does_not_end_the_others(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = InFolder.rows

    def rows(self: InFolder, experiment: str, *given: Any) -> Any:
        if experiment == "correlation":
            raise ZeroDivisionError("by design")
        return asked(self, experiment, *given)

    monkeypatch.setattr(InFolder, "rows", rows)
    found = heedful.audit(audited, budget="1h", bars=["correlation.attention/omission.overall.tau.mean > 0"])
    assert found.left_out["correlation"] == "it failed (ZeroDivisionError: by design)"
    assert [one.experiment for one in found.questions] == ["faithfulness", "erasure"]
    assert not found.passed
    assert "by design" in found.outcomes[0].sentence


def test_when_the_time_is_over_every_question_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was thought to take: the first has had its look, of the others it is said."""
    monkeypatch.setattr(audit_plan, "ASKING", -1.0)
    found = heedful.audit(run, budget="1h")
    assert [(one.experiment, one.texts) for one in found.questions] == [("faithfulness", 2)]
    for name in ("erasure", "correlation"):
        assert found.left_out[name] == "no time was left in 1 h; allow more with --budget"


def test_without_time_to_explain_the_cost_is_what_is_declared(run: Run) -> None:
    """Nothing is explained, and still no cost in passes is unknown: those that are counted are the same."""
    model = heedful.load(run)
    texts = [*open_subject(run, given_texts(None), QUIET).looked.values()][:3]
    methods = ["lrp", "gradient", "omission", "integrated_gradients", "attention", "random"]
    declared, nothing = explain_sample(model, texts, methods, 0.0, QUIET)
    assert len(nothing) == 0
    counted, shown = explain_sample(model, texts, methods, 600.0, QUIET)
    assert len(shown) == 3
    for name in methods:
        one, other = declared[name], counted[name]
        assert one.cost is not None
        assert other.cost is not None
        assert np.isnan(one.cost.seconds)
        assert not np.isnan(other.cost.seconds)
        if name != "integrated_gradients":  # which takes more steps here until its promise is kept
            assert one.cost.passes == other.cost.passes
        assert one.checks == ()
        assert not other.unchecked
    assert declared["lrp"].unchecked
    assert not declared["gradient"].unchecked


def test_networks_are_stopped_and_then_left_alone() -> None:
    layer, x = torch.nn.Linear(2, 2), torch.zeros(2)
    with pytest.raises(Mistake, match="too late"), stopped_after(-1.0, "too late"):
        layer(x)
    with stopped_after(60.0, "too late"):
        layer(x)
    layer(x)


# ---- interrupted --------------------------------------------------------------------------------------------


def rows_of(run: Run) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (run.path / "results" / "kept").glob("*.parquet")}


def test_an_interrupted_audit_goes_on_and_a_repeated_one_computes_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = InFolder.rows

    def interrupted(self: InFolder, experiment: str, *given: Any) -> Any:
        if experiment == "erasure":
            raise KeyboardInterrupt
        return asked(self, experiment, *given)

    monkeypatch.setattr(InFolder, "rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        heedful.audit(run, budget="1h")
    before = rows_of(run)
    assert any(name.startswith("faithfulness-") for name in before)
    monkeypatch.setattr(InFolder, "rows", asked)
    first = heedful.audit(run, budget="1h")
    after = rows_of(run)
    assert {name: after[name] for name in before} == before
    second = heedful.audit(run, budget="1h")
    assert rows_of(run) == after
    assert [(q.experiment, q.texts) for q in first.questions] == [(q.experiment, q.texts) for q in second.questions]
    assert [one.share for one in first.standings.order] == [one.share for one in second.standings.order]


# ---- models in memory, others' experiments, pages, pytest ---------------------------------------------------


def test_a_function_is_audited_in_memory() -> None:
    def predict(texts: Sequence[str]) -> np.ndarray:
        good = np.array([0.9 if "superb" in text else 0.2 for text in texts])
        return np.stack([1 - good, good], 1)

    texts = [f"{a} {b} {c} film" for a in ("the", "that") for b in ("superb", "dull") for c in ("old", "new", "long")]
    found = heedful.audit(heedful.wrap(predict, labels=["neg", "pos"]), texts, budget="1h")
    assert isinstance(found, Audit)
    assert found.subject.folder is None
    assert "attention" in found.left_out
    best = found.standings.order[0]
    assert best.method in ("omission", "mask")
    assert best.share.mean > 0.8
    control = found.standings.of("random")
    assert control is not None
    assert control.answer != "better"
    assert "<html" in found.to_html()
    assert found.table.loc[0, "method"] == best.method


def test_an_experiment_of_another_package_is_audited_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = MethodMeasure("score", "score of a layer", "More is more.", "score", only="omission", chance=None)
    monkeypatch.setattr(EXPERIMENTS, "places", {"layers": replace(LAYERS, audit=ForAudit(measures=(measure,)))})
    found = heedful.audit(run, budget="1h")
    assert {one.method for one in found.standings.findings} == {"omission"}
    assert found.verdicts["layers"].answer == "They do"
    assert "nothing can be recommended" in found.recommendation[0]


def test_serve_shows_the_audit(audited: Run) -> None:
    client = TestClient(create_app(Library(audited.path.parent)), base_url="http://127.0.0.1")
    page = client.get(f"/runs/{audited.name}")
    assert page.status_code == 200
    assert "better than random?" in page.text


@pytest.mark.long
def test_texts_that_are_too_long_for_attention_leave_it_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(heedful.load(run).network), "limit", 5, raising=False)
    file = table(tmp_path / "mine.csv", reviews(12, 1))
    found = heedful.audit(run, data=file, data_options=COLUMNS, budget="1h")
    assert "are longer than the 5 tokens" in found.left_out["attention"]
    assert "erasure" in found.left_out
    assert found.standings.of("attention") is None
    assert found.standings.of("omission") is not None


# By its module, whether or not this installation has its entry point.
PLUGIN = ("-p", "no:heedful", "-p", "heedful.pytest_plugin")
SUITE = """
import pytest

@pytest.mark.heedful(model={model!r}, budget="1h", bars=["performance.accuracy >= 0"])
def test_met(heedful_audit):
    heedful_audit.check("faithfulness(omission).comprehensiveness >= -5")
    assert heedful_audit.audit.passed

@pytest.mark.heedful(model={model!r}, budget="1h", bars=["performance.accuracy >= 0"])
def test_missed(heedful_audit):
    heedful_audit.check("faithfulness(omission).comprehensiveness >= 5")

@pytest.mark.heedful(model={model!r}, budget="1h", bars=["performance.acuracy >= 0"])
def test_no_such_number(heedful_audit): ...

@pytest.mark.heedful(model="nowhere")
def test_no_model(heedful_audit): ...

@pytest.mark.heedful(model={model!r}, budget="1h", bars="performance.accuracy >= 2")
def test_missed_without_the_fixture(): ...

@pytest.mark.heedful(model={model!r}, budgt="1h")
def test_slip(heedful_audit): ...

def test_no_marker(heedful_audit): ...

def test_of_somebody_else():
    import sys
    assert "torch" in sys.modules
"""


FEW = f"""
from heedful.registry import EXPERIMENTS
EXPERIMENTS.places = {{name: EXPERIMENTS.places[name] for name in {ASKED}}}
"""


def test_bars_in_pytest(audited: Run, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(FEW)
    (tmp_path / "test_mine.py").write_text(SUITE.format(model=str(audited.path)))
    source = Path(heedful.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLUGIN, "--strict-markers", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "2 passed, 1 failed, 5 errors" in done.stdout or "1 failed, 2 passed, 5 errors" in done.stdout, done.stdout
    assert "there is no argument of the marker 'budgt'. Did you mean 'budget'?" in done.stdout
    assert "comprehensiveness >= 5: missed, it is" in done.stdout
    assert "performance.accuracy >= 2: missed, it is" in done.stdout
    assert "has no number 'acuracy'. The nearest: accuracy" in done.stdout
    assert "there is no run folder nowhere" in done.stdout
    assert "heedful_audit needs the marker" in done.stdout


def test_the_plugin_loads_nothing_heavy() -> None:
    code = "import heedful.pytest_plugin, sys; print([m for m in ('torch', 'pandas', 'spacy') if m in sys.modules])"
    source = Path(heedful.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(source)}
    )
    assert done.stdout.strip() == "[]"


def test_what_is_asked_for_by_name_comes_before_the_rest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """And under the conditions that a bar names."""
    subject = open_subject(run, given_texts(None), QUIET)
    assert list(audit_plan.make_plan(subject).experiments) == ["faithfulness", "erasure", "correlation"]
    plan = audit_plan.make_plan(subject, parse_bars(["faithfulness(lrp, zero).tau > 0"]), (), ["correlation"])
    assert list(plan.experiments) == ["faithfulness", "correlation", "erasure"]
    assert plan.experiments["faithfulness"]["operators"] == ("delete", "mask", "zero")


class Made:
    """A subject whose questions take as many seconds a text as is said."""

    size = 1000

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.asked = seconds, list[tuple[str, int]]()
        self.looked = dict(enumerate(model_texts()))

    def rows(self, experiment: str, options: Any, places: Sequence[int]) -> AskedRows:
        self.asked.append((experiment, len(places)))
        return AskedRows(pa.table({"example": list(places)}), len(places), self.seconds[experiment] * len(places))

    def answer(self, experiment: str, options: Any, rows: AskedRows) -> Answered:
        return Answered(experiment, rows.table, {}, None, rows.texts, rows.seconds)


def model_texts() -> list[Any]:
    model = heedful.wrap(lambda texts: np.tile([[0.3, 0.7]], (len(texts), 1)), labels=["neg", "pos"])
    return list(model.examples(["a long dull film"] * 1000))


def others_of(subject: Made, budget: float, named: frozenset[str] = frozenset()) -> AskedQuestions:
    plan = audit_plan.AuditPlan({name: {} for name in subject.seconds}, (), {}, named, tuple(range(1000)))
    clock, found = audit_plan.Clock(budget, time.perf_counter()), AskedQuestions()
    names = list(subject.seconds)
    ask_others(subject, plan, clock, names, plan.places, 0.85 * budget, found, QUIET)  # type: ignore[arg-type]
    return found


def test_every_question_has_the_fewest_texts_before_any_has_more() -> None:
    """Of two of which the first would take all the time that there is, the second has LEAST texts."""
    found = others_of(Made({"erasure": 0.5, "correlation": 0.5}), 12.0)
    assert not found.left_out
    assert {name: one.texts for name, one in found.answers.items()} == {"erasure": 8, "correlation": 8}


def test_the_cheapest_question_is_asked_more_first_unless_another_was_named() -> None:
    """One that takes longer than it seemed to must not starve those that take next to nothing."""
    by_cost = ["correlation", "erasure"]
    for named, order in ((frozenset[str](), by_cost), (frozenset({"erasure"}), by_cost[::-1])):
        subject = Made({"erasure": 3.0, "correlation": 0.01})
        others_of(subject, 600.0, named)
        assert list(dict.fromkeys(name for name, n in subject.asked if n > 8)) == order


def test_cheap_questions_are_not_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve of them, of which each takes .16 s a text: all are told, of many texts, and none of fewer than eight."""
    monkeypatch.setattr(EXPERIMENTS, "places", EVERY)
    names = [name for name in EVERY if name != "faithfulness"][:12]
    found = others_of(Made(dict.fromkeys(names, 0.16)), 300.0)
    assert not found.left_out
    assert all(one.texts >= 100 for one in found.answers.values())


def test_one_long_text_does_not_eat_the_budget(run: Run, tmp_path: Path) -> None:
    """Of 60 texts one has 2,663 words, which would take a day where the others take seconds: it is left out, which is
    said, and the others are asked."""
    rows = [*reviews(59, 3), ("word " * 2663, "positive")]
    file = table(tmp_path / "mine.csv", rows)
    asked: list[int] = []
    ask = InFolder.rows

    def rows_of_blocks(self: InFolder, experiment: str, options: Any, places: Sequence[int]) -> AskedRows:
        asked.extend(places)
        found = ask(self, experiment, options, places)
        return replace(found, seconds=1e-4 * sum(audit_plan.cost_of(self, experiment, one) for one in places))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InFolder, "rows", rows_of_blocks)
        patch.setattr(EXPERIMENTS, "places", {"faithfulness": EXPERIMENTS.places["faithfulness"]})
        found = heedful.audit(run, data=file, data_options=COLUMNS, budget="1h")
    assert 59 not in asked
    assert found.texts >= 30
    assert any("one text is left out of this budget, the longest of 2,663 words" in one for one in found.warnings)


def test_each_shortcut_can_be_planted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXPERIMENTS, "places", {**EXPERIMENTS.places, "planted": PLANTED})
    subject = open_subject(run, given_texts(None), QUIET)
    for kind in ("single", "ordered", "context"):
        assert audit_plan.make_plan(subject, plant=kind).experiments["planted"]["plant"] == kind


def test_of_planted_words_that_the_model_does_not_use_nothing_is_said(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as a finding nor of a bar: an explanation does not have to show them."""
    used = {"difference": {"mean": 0.01, "low": 0.0}, "effect": {"mean": 0.02}, "effect_random": {"mean": 0.01}}
    summary = {"used": {**used, "accuracy": None}}
    answer = Answered("planted", evidence_tables_of()["planted"], summary, None, 9, 1.0)
    monkeypatch.setattr(EXPERIMENTS, "places", {"planted": PLANTED})
    monkeypatch.setattr(InFolder, "rows", lambda *given: AskedRows(answer.table, 9, 1.0))
    monkeypatch.setattr(InFolder, "answer", lambda *given: answer)
    found = heedful.audit(run, budget="1h", bars=["planted(lrp).precision >= 0"])
    assert not found.standings.findings
    assert found.outcomes[0].sentence.endswith("for an explanation to have to show them.")


def test_one_bar_that_is_no_list_is_told_of(run: Run) -> None:
    with pytest.raises(Mistake, match="bars are several: give a list"):
        heedful.audit(run, bars="performance.accuracy >= 0")


def test_labels_of_a_run_s_data_are_given_as_heedful_run_takes_them(run: Run, tmp_path: Path) -> None:
    rows = [(text, label.upper() if i % 2 else label) for i, (text, label) in enumerate(reviews(12, 2))]
    file = table(tmp_path / "cases.csv", rows)
    for given in ((), ("--labels", "negative,positive")):  # the model's names leave no doubt which label each is
        done = command(run.path, "--data", file, *columns(), "--dry-run", *given)
        assert done.exit_code == 0, (done.output, done.exception)


def test_methods_and_plans() -> None:
    """What the plan takes and leaves, by what a model can do."""
    model = heedful.wrap(lambda texts: np.tile([[0.3, 0.7]], (len(texts), 1)), labels=["neg", "pos"])
    subject = open_subject(model, given_texts(["a film", "a book"]), QUIET)
    plan = audit_plan.make_plan(subject, methods=["lime"])
    assert plan.methods == ("omission", "mask", "lime", "random")
    assert set(plan.left_out) >= {"attention", "gradient", "shap"}
