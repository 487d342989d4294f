"""What was silently wrong when it was tried as a new user would: each now holds, or is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import heedful
import zoo
from heedful import Explanation, api
from heedful.api.corpus_words import words
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.explainers.perturbation.one_word import change_each_word
from heedful.explainers.perturbation.surrogate import lime
from heedful.models.model import Model
from heedful.store.checks import SUMS
from heedful.store.run import CHECKPOINT, Run

FORMS = tuple("".join(pair) for pair in product("abcdefg", repeat=2))[: zoo.N_WORDS - len(MARKERS)]


def model(labels: tuple[str, ...] = ("bad", "good"), **more: Any) -> Model:
    network = zoo.network("bilstm", "additive", "binary").float()
    return Model("zoo", network, WordEncoder(Vocabulary((*MARKERS, *FORMS)), "whitespace"), labels, **more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("hour")
    rows = [f"{'a good film' if i % 2 else 'a bad film'} number {i},{'pos' if i % 2 else 'neg'}" for i in range(60)]
    (folder / "reviews.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    sizes: dict[str, Any] = {
        "encoder": "average",
        "embedding_dim": 8,
        "hidden_dim": 8,
        "epochs": 8,
        "learning_rate": 0.05,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return api.train("reviews.csv", runs=folder / "runs", progress=Progress(quiet=True), **sizes)


def test_unknown_words_are_named_everywhere(tmp_path: Path) -> None:
    found = heedful.explain(model(), ["aa zzz ab yyy zzz", "ac ad"], ["attention", "omission"])
    assert found[0].unknown == {"passage": (1, 3, 4)}
    assert found[0].unknown_words() == ("zzz", "yyy")
    assert found[1].unknown == {}
    assert "does not know 'zzz', 'yyy'; it reads the same" in found[0].html().replace("&#x27;", "'")
    assert "does not know" not in found[1].html()
    found.save(tmp_path / "x.parquet")
    for again in (Explanation.load(tmp_path / "x.parquet"), Explanation.from_json(found.to_json()), found.by_word()):
        assert [one.unknown for one in again] == [one.unknown for one in found]


def test_a_target_is_a_name_before_it_is_a_place() -> None:
    assert model(("1", "2")).label_index(1) == 0
    assert model(("1.0", "2.0")).label_index("1") == 0
    assert model().label_index(1) == 1
    with pytest.raises(Mistake, match="no label '0'"):
        model(("1", "2")).label_index(0)


@pytest.mark.parametrize("text", [None, float("nan"), 3, b"aa", ["aa"], np.float64(1)])
def test_only_strings_are_texts(text: Any) -> None:
    with pytest.raises(Mistake, match="text 2 is not a string"):
        heedful.explain(model(), ["aa", text], ["attention"])
    with pytest.raises(Mistake, match="text 1 is not a string"):
        heedful.run("permutation", model(), [text])


def test_an_untrained_unknown_word_is_said() -> None:
    """Of a model whose training never showed it one: where it takes the place of other words, and nowhere else."""
    methods = ["mask", "omission", "integrated_gradients"]
    fresh = heedful.explain(model(unknown_trained=False), ["aa ab"], methods, baselines="unk")[0]
    said = {name: "never saw in training" in (fresh.attribution(name).removal or "") for name in methods}
    assert said == {"mask": True, "omission": False, "integrated_gradients": True}
    shown = heedful.explain(model(unknown_trained=True), ["aa ab"], ["mask"])[0]
    assert "never saw" not in (shown.attribution("mask").removal or "")


def test_a_run_knows_whether_training_showed_the_unknown_word(trained: Run) -> None:
    assert heedful.load(trained.path).unknown_trained is False


def test_lime_says_how_uncertain_it_is() -> None:
    """About its true spread over seeds, and less with more samples, of which it takes as many as it needs."""
    network, batch, target = zoo.network("bilstm"), zoo.batch([8]), torch.tensor([1])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4)
    few = [lime(network, batch, target, n_samples=40, max_samples=40, seed=seed) for seed in range(8)]
    true = float(torch.stack([one.passage for one in few]).std(0).max())
    scale = float(torch.stack([one.passage for one in few]).mean(0).abs().max())
    told = np.mean([float(one.spread[0]) for one in few if one.spread is not None])
    assert 0.2 < told / (true / scale) < 5
    more = lime(network, batch, target, n_samples=40, max_samples=2000, tolerance=0.02, seed=0)
    assert isinstance(more.forward_passes, torch.Tensor)
    assert int(more.forward_passes[0]) > 40
    assert more.spread is not None
    assert float(more.spread[0]) < told


def test_the_baseline_stands_beside_the_score(trained: Run) -> None:
    """Against scikit-learn's own pipeline on the same words: the deciding word is there, so it is right always."""
    scores = trained.summary("performance")
    assert scores["baseline"]["accuracy"] == 1
    assert scores["baseline"]["name"] == "TF-IDF and logistic regression"
    assert scores["baseline"]["train_texts"] == trained.info["data"]["examples"]["train"]


def test_a_run_remembers_where_its_data_were(trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained on a file of the folder where the command was given, and asked from another."""
    monkeypatch.chdir(tmp_path)
    assert len(heedful.run("permutation", trained.path, limit=3).table) == 3
    assert trained.path.parent.parent in trained.data_folders


def test_words_against_a_loop(trained: Run) -> None:
    """Li et al. 2016 by hand: -log P without a word less that with it, mean over the texts that hold the word."""
    loaded = heedful.load(trained.path)
    texts = [" ".join(e.passage.surface(i).lower() for i in range(len(e.passage))) for e in read_texts(trained)]
    rows = {(row.label, row.word): row for row in words(trained.path, min_texts=2)}
    by_word: dict[tuple[str, str], list[float]] = {}
    for text in texts:
        p = loaded.predict([text])[0]
        c, forms = int(p.argmax()), text.split()
        for word in dict.fromkeys(forms):
            places = [i for i, form in enumerate(forms) if form == word]
            without = [" ".join(forms[:i] + forms[i + 1 :]) for i in places]
            change = np.log(p[c]) - np.log(loaded.predict(without)[:, c])
            by_word.setdefault((loaded.labels[c], word), []).append(float(change.mean()))
    expected = {key: np.mean(values) for key, values in by_word.items() if len(values) >= 2}
    assert rows.keys() == expected.keys()
    for key, value in expected.items():
        assert rows[key].plain == pytest.approx(value, abs=1e-5)
        assert rows[key].texts == len(by_word[key])
        assert rows[key].low <= rows[key].effect <= rows[key].high
    assert max(rows.values(), key=lambda row: row.effect).word in ("good", "bad")


def read_texts(run: Run) -> list[Any]:
    from heedful.engine.sources.edited_data import corpus_of

    return list(corpus_of(run, run.data_folders)["test"])


def test_examples_of_another_kind_are_refused() -> None:
    one = model()
    example = one.examples(["aa ab"])[0]
    with pytest.raises(Mistake, match="texts or examples, not both"):
        heedful.explain(one, [example, "aa"], ["attention"])  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="label number 7"):
        heedful.explain(one, [replace(example, label=7)], ["attention"])
    with pytest.raises(Mistake, match="parts='query'"):
        heedful.explain(one, ["aa"], ["gradient"], parts="query")


@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
@pytest.mark.parametrize("task", ["binary", "nli"])
def test_a_word_replaced_by_itself_changes_nothing(encoder: Any, task: zoo.TaskName) -> None:
    """Bit for bit, by the general path and by those that know the encoder, in passage and query."""
    network, texts = zoo.network(encoder, "additive", task).float(), zoo.batch([5, 3], task)
    for part in ("passage", "query") if texts.query is not None else ("passage",):
        tokens = texts.passage if part == "passage" or texts.query is None else texts.query
        ids = tokens.ids.clone()
        ids[0, 1] = tokens.reserved.unknown or 0
        edited: dict[str, Any] = {part: replace(tokens, ids=ids)}
        changed = replace(texts, **edited)
        for general in (False, True):
            found = change_each_word(network, changed, "replace", part, general=general)
            assert torch.equal(found.changed[0, 1], found.original[0])
            assert not torch.equal(found.changed[0, 2], found.original[0])


def test_an_unfinished_run_says_so(trained: Run, tmp_path: Path) -> None:
    folder = tmp_path / trained.name
    shutil.copytree(trained.path, folder)
    (folder / SUMS).unlink()
    (folder / CHECKPOINT).write_bytes(b"")
    with pytest.warns(UserWarning, match="is not finished: its weights are those of the best epoch so far"):
        heedful.load(folder)


def test_a_table_in_memory_is_not_read_by_the_names_of_its_columns(trained: Run) -> None:
    """A loop over a DataFrame is over its columns: 'text' and 'label' were explained as if they were texts."""
    frame: Any = pd.DataFrame({"text": ["aa", "ab"], "label": ["good", "bad"]})
    for ask in (
        lambda: heedful.explain(model(), frame, ["attention"]),
        lambda: heedful.run("permutation", model(), frame),
    ):
        with pytest.raises(Mistake, match=r"not a DataFrame: one of its columns, frame\['text'\]"):
            ask()
    wrong: tuple[Any, ...] = (frame, 3, iter(["aa"]))
    for given in wrong:
        with pytest.raises(Mistake, match="give a list of texts, and of queries, not"):
            model().predict(given)
    assert len(heedful.explain(model(), frame.text, ["attention"])) == len(model().predict(frame.text)) == 2
    with pytest.raises(Mistake, match=r"is not the name of data: .*frame\.to_csv"):
        heedful.explain(trained.path, methods=["attention"], data=frame)


def test_limit_is_of_data_and_folders_are_a_list() -> None:
    """Of texts that are given all were explained, whatever the limit was."""
    with pytest.raises(Mistake, match="limit=1 is a number of texts of data"):
        heedful.explain(model(), ["aa", "ab"], ["attention"], limit=1)
    with pytest.raises(Mistake, match="data_dirs=3: give a list of folders"):
        heedful.explain(model(), ["aa"], ["attention"], data_dirs=3)  # type: ignore[arg-type]


def test_a_number_of_numpy_is_a_target() -> None:
    assert heedful.explain(model(), ["aa"], ["attention"], target=np.int64(1))[0].attributions[0].target == "good"  # type: ignore[arg-type]
