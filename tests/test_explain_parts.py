"""Explaining many texts: a command that is killed goes on where it was, and memory that runs out halves batches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("transformers")

import heedful
import transformer_zoo as zoo
from heedful import Explanation
from heedful.api.corpus_words import words
from heedful.cli import app
from heedful.engine.explaining.parts import PART
from heedful.explainers import run as explainers_run
from heedful.models import Output
from heedful.models.model import Model
from heedful.records import Batch

WORDS = ["a", "good", "film", "it", "is", "not", "bad", "at", "all", "the", "waste", "of", "time"]
N_TEXTS = 2 * PART + 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("saved") / "tiny"
    zoo.module("Bert", num_labels=2).save_pretrained(made)
    zoo.tokenizer_of("Bert").save_pretrained(made)
    return made


def texts(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 30))) for _ in range(n)]


def arguments(folder: Path, file: Path, output: Path, *more: str) -> list[str]:
    asked = ["explain", str(folder), "--file", str(file), "-o", str(output), "-m", "gradient", "-m", "random"]
    return [*asked, "--labels", "neg,pos", *more]


def said(*given: str) -> str:
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_command_that_is_killed_goes_on(folder: Path, tmp_path: Path) -> None:
    file, output, whole = (tmp_path / name for name in ("texts.txt", "why.parquet", "whole.parquet"))
    file.write_text("\n".join(texts(N_TEXTS)))
    typed = [sys.executable, "-m", "heedful", *arguments(folder, file, output)]
    kept: list[Path] = []
    for kill in (1, 2):  # after the first part, and again after the next
        running = subprocess.Popen(typed, stderr=subprocess.PIPE, start_new_session=True)
        deadline = time.monotonic() + 600
        while len(list(tmp_path.glob("why.parquet.*.parts/*.parquet"))) < max(kill, len(kept) + 1):
            assert running.poll() is None, running.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.001)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        assert not output.exists()
        kept = sorted(tmp_path.glob("why.parquet.*.parts/*.parquet"))
        if PART * len(kept) >= N_TEXTS:
            break
    left = max(0, N_TEXTS - PART * len(kept))
    told = said(*arguments(folder, file, output, "--dry-run"))
    assert told == f"{left} of {N_TEXTS} texts are left to be explained.\n"
    other = said(*arguments(folder, file, output, "--dry-run", "--target", "pos"))  # another question
    assert other == f"{N_TEXTS} of {N_TEXTS} texts are left to be explained.\n"
    shutil.copy(kept[0], first := tmp_path / "first.parquet")
    said(*arguments(folder, file, output))
    assert not list(tmp_path.glob("*.parts"))
    said(*arguments(folder, file, whole, "--workers", "2"))
    assert output.read_bytes() == whole.read_bytes()  # whatever was killed, and whoever made it
    assert pq.ParquetFile(output).num_row_groups == 3
    found = Explanation.load(output)
    assert len(found) == N_TEXTS
    assert Explanation.load(first) == found[:PART]  # what was kept is what is there


def test_a_table_keeps_its_own_columns_beside_what_is_predicted(folder: Path, tmp_path: Path) -> None:
    file, output = tmp_path / "mine.csv", tmp_path / "why.parquet"
    rows = "".join(f"{i},{text},pos,n{i % 3}\n" for i, text in enumerate(texts(9)))
    file.write_text(f"number,text,label,word\n{rows}")
    said(*arguments(folder, file, output))
    found, table = Explanation.load(output), pq.read_table(output)
    assert table.column_names[-5:] == ["predicted", "number", "label", "row_word", "record"]
    for row in table.to_pylist():
        place = int(row["example"].partition(":")[2]) - 2
        one = found[place]
        assert (row["number"], row["row_word"]) == (str(place), f"n{place % 3}")
        assert row["predicted"] == one.predicted
        assert row["probability"] == pytest.approx(float(one.probabilities.max()))


def test_words_of_a_corpus_are_read_from_its_file(folder: Path, tmp_path: Path) -> None:
    """And are those that the model says when it is asked again."""
    file, output = tmp_path / "mine.csv", tmp_path / "why.parquet"
    file.write_text("text,label\n" + "".join(f"{text},pos\n" for text in texts(30)))
    given = ["explain", str(folder), "--file", str(file), "-o", str(output), "--labels", "neg,pos"]
    said(*given, "-m", "gradient", "-m", "omission:of=probability")
    read = json.loads(said("words", str(output), "--min-texts", "3", "--json"))
    asked = words(folder, file, labels=["neg", "pos"], min_texts=3)
    assert len(read) == len(asked) > 5
    again = {(one.label, one.word): one for one in asked}
    for one in read:
        other = again[one["label"], one["word"]]
        assert (one["texts"], one["places"]) == (other.texts, other.places)
        assert one["effect"] == pytest.approx(other.effect, abs=1e-5)
        assert one["relative"] == pytest.approx(other.relative, rel=1e-3, abs=1e-5)
    said(*given, "-m", "gradient")
    for arguments in (("words", str(output)), ("words", str(file.with_suffix(".parquet")))):
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code != 0


def test_parts_joined_are_the_whole(folder: Path, tmp_path: Path) -> None:
    model, given = heedful.load(folder), texts(9)
    whole = heedful.explain(model, given, ["gradient_x_input", "attention"])
    examples = model.examples(given)
    some = [heedful.explain(model, examples[i : i + 4], ["gradient_x_input", "attention"]) for i in (0, 4, 8)]
    joined = Explanation.joined(some)
    assert [e.id for e in joined] == [e.id for e in whole]
    np.testing.assert_allclose(joined.columns.scores, whole.columns.scores, atol=1e-5)
    with pytest.raises(ValueError, match="different labels or methods"):
        Explanation.joined([whole, heedful.explain(model, given, ["gradient"])])


class Small:
    """A network on a machine that can hold so many tokens at once."""

    def __init__(self, network: Any, most: int, error: Exception) -> None:
        self.network, self.most, self.error, self.refused = network, most, error, 0

    def __call__(self, batch: Batch, **given: Any) -> Output:
        if batch.passage.ids.numel() > self.most:
            self.refused += 1
            raise self.error
        output: Output = self.network(batch, **given)
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_batches_are_halved_when_memory_runs_out(error: Exception) -> None:
    made = zoo.model("Bert")
    examples = made.examples(texts(40))
    methods = ["gradient_x_input", "integrated_gradients", "lrp", "omission"]
    plain = explainers_run.explain(made, examples, methods, n_steps=3)
    network = Small(made.network, 150, error)
    done: list[int] = []
    small = Model("small", network, made.text, made.labels)
    found = explainers_run.explain(small, examples, methods, on_done=done.append, n_steps=3)
    np.testing.assert_allclose(found.columns.scores, plain.columns.scores, atol=1e-5)
    assert [e.id for e in found] == [e.id for e in plain]
    assert sum(done) == 40
    assert network.refused > 0


def test_a_text_that_does_not_fit_alone_and_other_errors_are_raised() -> None:
    made = zoo.model("Bert")
    examples = made.examples(texts(4))
    for most, error in ((3, MemoryError()), (40, RuntimeError("shapes differ"))):
        small = Model("small", Small(made.network, most, error), made.text, made.labels)
        with pytest.raises(type(error)):
            explainers_run.explain(small, examples, ["gradient"])
