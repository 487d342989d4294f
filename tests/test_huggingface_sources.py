"""Checkpoints where a run folder could stand: load, wrap, explain, run, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import transformers
from typer.testing import CliRunner

import heedful
import transformer_zoo as zoo
from heedful.cli import app
from heedful.engine.running.progress import Progress
from heedful.engine.sources.huggingface import CHECKPOINTS, CheckpointSource
from heedful.engine.sources.models import find_source, source_of
from heedful.store.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("saved") / "tiny"
    zoo.module("Bert", num_labels=2).save_pretrained(made)
    zoo.tokenizer_of("Bert").save_pretrained(made)
    return made


def test_a_folder_is_a_source(folder: Path) -> None:
    source = find_source(folder)
    assert isinstance(source, CheckpointSource)
    assert (source.name, source.labels, source.task) == ("tiny", ("LABEL_0", "LABEL_1"), "classification")
    assert source.architecture == "BertForSequenceClassification"
    assert source.place is not None
    again = find_source(source.place)  # as another process would
    assert again.fingerprint == source.fingerprint
    named = find_source(folder, labels=["neg", "pos"], query=True)
    assert (named.labels, named.task) == (("neg", "pos"), "nli")
    assert named.fingerprint != source.fingerprint
    assert named.place is not None
    other = find_source(named.place)
    assert (other.fingerprint, other.labels, other.task) == (named.fingerprint, named.labels, named.task)


def test_what_is_claimed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert CHECKPOINTS.claims(folder)
    assert CHECKPOINTS.claims("owner/name")
    assert CHECKPOINTS.claims("hf:name")
    assert not CHECKPOINTS.claims("name")
    assert not CHECKPOINTS.claims("runs/sst-bilstm")  # a run that is not there, not somebody's model
    assert not CHECKPOINTS.claims(tmp_path)
    with pytest.raises(heedful.Mistake, match="'colour' is not an option of a checkpoint"):
        find_source(folder, colour="red")


def test_load_and_wrap(folder: Path) -> None:
    by_folder = heedful.load(folder, labels=["neg", "pos"])
    module, tokenizer = zoo.module("Bert", num_labels=2), zoo.tokenizer_of("Bert")
    pipeline = transformers.pipeline("text-classification", model=module, tokenizer=tokenizer, device="cpu")
    for made in (heedful.load(pipeline), heedful.wrap(module, tokenizer)):
        np.testing.assert_allclose(made.predict(zoo.SOME), by_folder.predict(zoo.SOME), atol=1e-6)
    box = heedful.wrap(by_folder.predict, labels=["neg", "pos"])
    np.testing.assert_allclose(box.predict(zoo.SOME), by_folder.predict(zoo.SOME), atol=1e-6)
    with pytest.raises(heedful.Mistake, match="give its tokenizer, too"):
        heedful.wrap(module)
    with pytest.raises(heedful.Mistake, match="takes no tokenizer"):
        heedful.wrap(by_folder.predict, tokenizer, labels=["a", "b"])
    with pytest.raises(heedful.Mistake, match=r"give labels=\[...\]"):
        heedful.wrap(by_folder.predict)


def test_explain(folder: Path) -> None:
    found = heedful.explain(
        folder, ["it isn't bad 😀"], ["attention", "gradient_x_input", "omission"], labels=["neg", "pos"]
    )
    table = found.to_pandas()
    assert set(table["target"]) <= {"neg", "pos"}
    text = "it isn't bad 😀"
    for word, start, end in zip(table["word"], table["start"].tolist(), table["end"].tolist(), strict=True):
        assert text[int(start) : int(end)] == word
    pairs = heedful.explain(folder, ["a film"], ["gradient"], queries=["is it good"]).to_pandas()
    assert set(pairs["part"]) == {"passage", "query"}


def test_a_trial_on_ones_own_texts(folder: Path, tmp_path: Path) -> None:
    """Rows are kept in a folder of the form of a run, and are not made twice."""
    file = tmp_path / "texts.jsonl"
    rows = [{"text": text, "label": f"LABEL_{i % 2}"} for i, text in enumerate(zoo.SOME * 4)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = heedful.run("permutation", str(folder), str(file), runs=tmp_path / "runs", split="train", permutations=3)
    table = answers.table
    assert table.num_rows > 0
    assert (table["max"].to_numpy() >= table["median"].to_numpy()).all()
    assert table["max"].to_numpy().max() > 0


def test_labels_and_pairs_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    """`run` takes names for labels, and reads pairs where the data have them; the report knows both."""
    file, runs, page = tmp_path / "pairs.jsonl", tmp_path / "runs", tmp_path / "page.html"
    rows = [
        {"text": text, "hypothesis": query, "label": ["neg", "pos"][i % 2]}
        for i, (text, query) in enumerate(zip(zoo.SOME * 4, zoo.QUERIES * 4, strict=True))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["run", "permutation", "--model", str(folder), "--data", str(file), "--set", "permutations=2"]
    asked += ["--runs", str(runs), "--limit", "4", "--json"]
    told = CliRunner().invoke(app, [*asked, "--labels", "neg,pos"])
    assert told.exit_code == 0, told.output
    answered = Path(json.loads(told.stdout)["run"])
    source = source_of(Run(answered))
    assert (source.labels, source.task) == (("neg", "pos"), "nli")
    assert CliRunner().invoke(app, ["report", str(answered), "-o", str(page)]).exit_code == 0
    assert "pos" in page.read_text()
    assert "LABEL_1" not in page.read_text()
    refused = CliRunner().invoke(app, asked)
    assert isinstance(refused.exception, heedful.Mistake)
    assert "The model's are LABEL_0, LABEL_1; those of the data are neg, pos" in str(refused.exception)
    plain = f'hf:{folder}?{{"query": false, "labels": ["neg", "pos"]}}'
    refused = CliRunner().invoke(app, [*asked[:3], plain, *asked[4:]])
    assert isinstance(refused.exception, heedful.Mistake)
    assert "has a query beside each text, but tiny reads none" in str(refused.exception)


def test_queries_that_are_given_make_pairs(folder: Path) -> None:
    rows = heedful.run("permutation", str(folder), zoo.SOME, queries=zoo.QUERIES, labels=["neg", "pos"], permutations=2)
    assert rows.table.num_rows == 3
    with pytest.raises(heedful.Mistake, match="labels can only be given for a checkpoint"):
        heedful.run("permutation", heedful.load(folder), zoo.SOME, labels=["a", "b"])


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("column", ["query", "hypothesis", "second"])
def test_a_column_of_queries_makes_pairs(folder: Path, tmp_path: Path, column: str, labelled: bool) -> None:
    """By its name, or because it was named; with labels and without: never left out in silence."""
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"text": text, column: query} | ({"label": f"LABEL_{i % 2}"} if labelled else {})
        for i, (text, query) in enumerate(zip(zoo.SOME, zoo.QUERIES, strict=True))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def ask(**options: Any) -> Any:
        found = heedful.run(
            "permutation", str(folder), str(file), data_options=options, runs=tmp_path / "runs", permutations=2
        )
        return found.table.sort_by("example")["max_attention"].to_pylist()

    given = heedful.run("permutation", str(folder), zoo.SOME, queries=zoo.QUERIES, permutations=2)
    pairs = given.table.sort_by("example")["max_attention"].to_pylist()
    assert ask(**{"query_column": column} if column == "second" else {}) == pytest.approx(pairs)
    assert ask(task="classification") != pytest.approx(pairs)


def test_a_long_text_without_methods_is_explained_without_attention(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read in windows it has no one attention; asked for by name that is still refused."""
    long = " ".join(["a", "good", "film"] * 100)
    with pytest.warns(UserWarning, match="in windows"):
        found = heedful.explain(folder, [long, "a good film"], progress=Progress())
    names = {attribution.method for attribution in found[0].attributions}
    assert names
    assert "attention" not in names
    assert "is left out" in capsys.readouterr().err
    with pytest.raises(heedful.Mistake, match="no one attention"), pytest.warns(match="windows"):
        heedful.explain(folder, [long], ["attention"])


def test_numbers_beside_texts_are_not_the_labels_of_a_model_that_answers_with_one(tmp_path: Path) -> None:
    made, data = tmp_path / "stars", tmp_path / "stars.csv"
    zoo.module("Bert", num_labels=1, problem_type="regression").save_pretrained(made)
    zoo.tokenizer_of("Bert").save_pretrained(made)
    data.write_text("text,label\na good film,4.5\na bad film,1\nno film at all,2.25\n")
    with pytest.warns(UserWarning, match="answers with a number"):
        rows = heedful.run("permutation", heedful.load(made), str(data), permutations=5)
    assert len(rows) == 3
