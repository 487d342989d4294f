"""As a user does it: a CSV, a trained model, explanations; and everything that can be asked wrongly."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import heedful
from commands import heedful as command
from commands import script
from heedful.engine.running.progress import Progress
from heedful.experiments import EXPERIMENTS
from heedful.explainers.methods import usual
from heedful.models.model import Model
from heedful.store.arrays import write_arrays
from heedful.store.checks import write_sums
from heedful.store.run import SEALED, Run

QUIET = Progress(quiet=True)
SMALL: dict[str, Any] = {
    "embedding_dim": 8,
    "hidden_dim": 8,
    "epochs": 6,
    "batch_size": 16,
    "learning_rate": 0.02,
    "progress": QUIET,
}


def write_reviews(path: Path, n: int = 200) -> Path:
    rng = random.Random(0)
    good, bad, filler = (["superb", "lovely"], ["awful", "dull"], ["film", "the", "plot", "was", "naïve", "😀", "«x»"])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["the review", "stars, in words"])
        for i in range(n):
            words = [*rng.choices(filler, k=6), rng.choice(bad if i % 2 else good)]
            rng.shuffle(words)
            writer.writerow([" ".join(words), 'bad, "really"' if i % 2 else "good"])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("reviews")
    data = {"text_column": "the review", "label_column": "stars, in words"}
    return heedful.train(str(write_reviews(folder / "reviews.csv")), data=data, runs=folder / "runs", **SMALL)


@pytest.fixture(scope="module")
def model(run: Run) -> Model:
    return heedful.load(run.path)


def test_from_a_csv_to_an_explanation(run: Run, model: Model) -> None:
    assert model.labels == ('bad, "really"', "good")
    assert run.summary("performance")["accuracy"] > 0.9
    explained = heedful.explain(model, ["the plot was superb", "superb plot superb"])
    assert explained.methods == [name for name in usual() if name != "rationale"]  # which is of models that select
    assert [len(e.passage) for e in explained] == [4, 3]
    assert explained[0].predicted == "good"
    top = explained.method("integrated_gradients").top(1)
    assert list(top["word"]) == ["superb", "superb"]


def test_training_again_does_nothing_and_another_seed_is_another_run(run: Run, tmp_path: Path) -> None:
    before = (run.path / "model.safetensors").stat().st_mtime_ns
    source = run.config.dataset
    data = {"text_column": "the review", "label_column": "stars, in words"}
    again = heedful.train(source, data=data, runs=run.path.parent, **SMALL)
    assert again.path == run.path
    assert (run.path / "model.safetensors").stat().st_mtime_ns == before
    other = heedful.train(source, data=data, runs=tmp_path, seed=1, **SMALL)
    assert other.name != run.name


def test_the_target_by_name_or_number(model: Model) -> None:
    text = ["the plot was superb"]
    by_name = heedful.explain(model, text, ["lrp"], target='bad, "really"')
    by_number = heedful.explain(model, text, ["lrp"], target=0)
    assert by_name == by_number
    assert by_name[0].attributions[0].target == 'bad, "really"'
    with pytest.raises(heedful.Mistake, match=r"no label 'nice'.*good"):
        heedful.explain(model, text, ["lrp"], target="nice")
    with pytest.raises(heedful.Mistake, match="no label '2'"):
        heedful.explain(model, text, ["lrp"], target=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [("superb", 1), ("zzz yyy xxx", 3), ("😀 😀", 2), ("السلام عليكم", 2), ("superb " * 2000, 2000), ("a\tb\n\nc", 3)],
)
def test_odd_texts_get_a_right_answer(model: Model, text: str, words: int) -> None:
    methods = ["attention", "gradient", "gradient_x_input", "lrp", "occlusion", "omission", "mask", "random", "uniform"]
    (explained,) = heedful.explain(model, [text], methods)
    for attribution in explained.attributions:
        assert len(attribution.scores["passage"]) == words
        assert np.isfinite(attribution.scores["passage"]).all()
    attention = explained.attribution("attention").scores["passage"]
    assert attention.sum() == pytest.approx(1, abs=1e-5)


def test_what_cannot_be_explained_is_said(model: Model) -> None:
    with pytest.raises(heedful.Mistake, match="text 2 has no words"):
        heedful.explain(model, ["fine", "  \n"])
    with pytest.raises(heedful.Mistake, match="a list of texts"):
        heedful.explain(model, "one text")
    with pytest.raises(heedful.Mistake, match="no explainer 'saliency'"):
        heedful.explain(model, ["fine"], ["saliency"])
    with pytest.raises(heedful.Mistake, match="none of attention, lrp takes the option 'n_step'"):
        heedful.explain(model, ["fine"], ["attention", "lrp"], n_step=3)
    with pytest.raises(heedful.Mistake, match="no use for a query"):
        heedful.explain(model, ["fine"], queries=["why?"])


def test_weights_that_are_not_numbers_are_refused(run: Run, tmp_path: Path) -> None:
    broken = Run(tmp_path / "broken")
    shutil.copytree(run.path, broken.path)
    weights = load_file(broken.path / "model.safetensors")
    weights["decoder.theta.weight"][0, 0] = np.nan
    save_file(weights, broken.path / "model.safetensors")
    with pytest.raises(heedful.Mistake, match="damaged"):
        heedful.load(broken.path)
    write_arrays(broken.path / "model.safetensors", weights, {})  # as if it had been trained like this
    write_sums(broken.path, SEALED)
    with pytest.raises(heedful.Mistake, match=r"decoder.theta.weight.*not finite"):
        heedful.load(broken.path)


def test_a_failing_check_is_told_in_a_sentence(model: Model) -> None:
    options: dict[str, Any] = {"n_steps": 1, "method": "riemann_right"}
    explained = heedful.explain(model, ["the plot was superb superb superb"], ["integrated_gradients"], **options)
    check = explained[0].attributions[0].check
    assert check is not None
    assert check.ok or "raise --n-steps" in str(check)
    exact = heedful.explain(model, ["the plot was superb"], ["integrated_gradients"], n_steps=100)
    assert exact[0].attributions[0].check is not None
    assert exact[0].attributions[0].check.ok


def test_the_command_line_explains(run: Run, tmp_path: Path) -> None:
    done = command("explain", run.path, "the plot was <b>superb</b>", "-m", "attention", "-m", "lrp")
    assert done.returncode == 0, done.stderr
    assert "attention" in done.stdout
    assert "conservation gap" in done.stdout
    record = json.loads(command("explain", run.path, "superb", "-m", "attention", "--format", "json").stdout)
    assert record["examples"][0]["attributions"][0]["scores"]["passage"] == [1.0]
    page = tmp_path / "why.html"
    assert command("explain", run.path, "<script>alert(1)</script>", "-o", page).returncode == 0
    assert "<script" not in page.read_text()
    table = tmp_path / "why.parquet"
    texts = tmp_path / "texts.txt"
    texts.write_text("superb film\nawful plot\n")
    assert command("explain", run.path, "--file", texts, "-o", table, "-m", "omission").returncode == 0
    assert len(heedful.Explanation.load(table)) == 2


def test_a_slow_program_of_its_own_finds_the_same_numbers(run: Run) -> None:
    for experiment in ("correlation", "permutation", "adversarial"):
        heedful.run(experiment, run)
    done = script(Path(__file__).parent.parent / "checks" / "recompute.py", run.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") == 10


def test_attention_beside_the_most_different_one(run: Run, model: Model, tmp_path: Path) -> None:
    texts = ["the plot was superb and the end was fine", "awful <b>plot</b>"]
    pairs = heedful.adversary(model, texts, epsilon=0.03)
    assert len(pairs) == 2
    for text, pair in zip(texts, pairs, strict=True):
        (own,) = heedful.explain(model, [text], ["attention"])[0].attributions
        np.testing.assert_allclose(pair.first, own.scores["passage"], atol=1e-6)
        assert pair.second.sum() == pytest.approx(1)
        assert 0 <= pair.delta <= 0.03 + 1e-9
        assert pair.title.split(";")[0] in model.labels
    assert "<b>" not in pairs.to_html()
    done = command("adversary", run.path, *texts, "--epsilon", "0.03")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("adversarial") == 2
    page = tmp_path / "pair.html"
    assert command("adversary", run.path, texts[0], "-o", page).returncode == 0
    assert "Δŷ" in page.read_text(encoding="utf-8")
    found = json.loads(command("adversary", run.path, texts[1], "--epsilon", "0.03", "--format", "json").stdout)
    assert found[0]["adversarial"] == pytest.approx(pairs[1].second.tolist())
    refused = command("adversary", run.path, "fine", "-o", "pair.parquet")
    assert refused.returncode == 2
    assert ".html or .json" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "at least one TEXT"),
        (["  "], "no words"),
        (["fine", "--target", "nice"], "no label 'nice'"),
        (["fine", "-m", "lpr"], "Did you mean 'lrp'?"),
        (["fine", "-o", "why.txt"], ".html, .json or .parquet"),
        (["--file", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_mistakes_on_the_command_line(run: Run, arguments: list[str], said: str) -> None:
    done = command("explain", run.path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_question_needs_a_query(tmp_path: Path) -> None:
    rows = [{"text": f"mary is in the {p}", "question": "where is mary", "label": p} for p in ("hall", "den")] * 30
    path = tmp_path / "where.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"text_column": "text", "query_column": "question", "label_column": "label"}
    model = heedful.load(heedful.train(str(path), data=data, runs=tmp_path / "runs", **SMALL))
    assert model.task in ("qa", "nli")
    explained = heedful.explain(model, ["mary is in the den"], ["occlusion"], queries=["where is mary"])
    assert set(explained[0].attributions[0].scores) == {"passage", "query"}
    with pytest.raises(heedful.Mistake, match="--query"):
        heedful.explain(model, ["mary is in the den"])


def test_ctrl_c_leaves_a_run_that_loads_and_goes_on(tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "reviews.csv", 2000)
    arguments = ["train", str(source), "--text-column", "the review", "--label-column", "stars, in words"]
    sizes = ["--embedding-dim", "8", "--hidden-dim", "8", "--epochs", "400", "--runs", str(tmp_path / "runs")]
    sizes += ["--patience", "400", "--learning-rate", "1e-7"]
    # A shell that starts tests in the background has Ctrl-C ignored, and its children inherit that.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; from heedful.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *arguments, *sizes], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    seen = next(line for line in process.stderr if line.startswith("epoch 2/"))
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(60) == 130, seen + rest
    assert "Traceback" not in rest
    (path,) = (p for p in (tmp_path / "runs").iterdir() if not p.name.startswith("."))
    assert not Run(path).finished
    loaded = heedful.load(path)
    assert isinstance(loaded.network, torch.nn.Module)
    assert all(torch.isfinite(weights).all() for weights in loaded.network.parameters())


def test_rows_in_a_notebook_show_what_they_say_and_not_how_they_are_kept() -> None:
    """A dump of Arrow chunks told nobody anything."""
    import webruns

    given = webruns.examples([f"{text} {i} <b>" for i, text in enumerate(webruns.SENTENCES * 5)])
    with tempfile.TemporaryDirectory() as folder:
        made = webruns.make_run(Path(folder), "made", given, experiments=[])
        rows = heedful.run("permutation", made, given)
        few = heedful.run("permutation", made, given[:1])
    said, drawn = repr(rows), rows._repr_html_()
    assert rows.verdict is not None
    question = EXPERIMENTS["permutation"].question
    for shown in (said, unescape(drawn)):
        assert shown.index(question) < shown.index("asked of 30 texts") < shown.index(rows.verdict.sentence)
        assert "pyarrow" not in shown
        assert "ChunkedArray" not in shown
    assert "<table" in drawn
    assert "The first 5 of 30 rows" in said
    assert len(said.splitlines()) < 20
    assert "asked of 1 text." in repr(few)
