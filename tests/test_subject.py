"""One place for "this model, this data": five commands take the same, refuse the same and say the same."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers
from typer.testing import CliRunner, Result

import heedful
import transformer_zoo as zoo
from heedful.api.models import subject_options
from heedful.api.studies import failures
from heedful.cli import app
from heedful.cli.options import parse_label_map
from heedful.config import DataOptions, RunConfig
from heedful.data.corpora.labels import NoMatch, match_labels, show_label_map
from heedful.data.corpora.load import load as load_corpus
from heedful.data.text.tokenise import tokenizer as words_like
from heedful.engine.running.progress import Progress
from heedful.engine.running.schedule import Failure, Report
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources import label_fit
from heedful.engine.sources.models import find_source
from heedful.engine.sources.subject import Subject, SubjectOptions
from heedful.engine.tasks.plan import ask
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake
from heedful.models.model import Model
from heedful.records import Example, Words
from heedful.registry import EXPERIMENTS

COMMANDS = ("run", "audit", "words", "report", "explain")
QUIET = Progress(quiet=True)
SMALL: dict[str, Any] = {"encoder": "average", "embedding_dim": 6, "hidden_dim": 8, "epochs": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says LABEL_0 and LABEL_1."""
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    zoo.module("Bert", num_labels=2).save_pretrained(folder)
    zoo.tokenizer_of("Bert").save_pretrained(folder)
    return folder


def texts_of(n: int) -> list[str]:
    pieces = [
        "a",
        "good",
        "film",
        "it",
        "isn't",
        "bad",
        "at",
        "all",
        "the",
        "waste",
        "of",
        "time",
        "was",
        "not",
        "worth",
        "dollar",
        "what",
        "is",
        "best",
        "one",
        "two",
        "three",
    ]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(pieces, size=int(rng.integers(4, 9)))) for _ in range(n)]


def table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    lines = [columns, *rows]
    path.write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines), encoding="utf-8")
    return path


def answered(checkpoint: Path, path: Path, names: Sequence[str], wrong: int = 2, n: int = 40) -> Path:
    """A CSV in which the model's LABEL_0 and LABEL_1 have other names; some rows are labelled wrongly."""
    texts = texts_of(n)
    predicted = heedful.load(checkpoint).predict(texts).argmax(1)
    # both labels occur, whatever this model says
    labels = [names[int(p) ^ (i < wrong)] for i, p in enumerate(predicted)]
    return table(path, ("text", "label"), list(zip(texts, labels, strict=True)))


def arguments(command: str, model: str | Path, data: str | Path, given: Sequence[str], out: Path) -> list[str]:
    shared = [*given, "--runs", str(out / "runs")]
    return {
        "run": ["run", "permutation", str(model), "--data", str(data), "--set", "permutations=2", *shared],
        "audit": ["audit", str(model), "--data", str(data), "--budget", "1s", "-m", "gradient", *shared, "--dry-run"],
        "words": ["words", str(model), "--data", str(data), "--min-texts", "2", *given],
        "report": ["report", str(model), "--data", str(data), "--no-texts", "-o", str(out / "page.html"), *shared],
        "explain": ["explain", str(model), "--file", str(data), "-m", "gradient", *given],
    }[command]


def type_(command: str, model: str | Path, data: str | Path, *given: str, out: Path) -> Result:
    return CliRunner().invoke(app, arguments(command, model, data, given, out))


def said(result: Result) -> str:
    """What a refused command says."""
    assert isinstance(result.exception, Mistake), (result.exception, result.output)
    return str(result.exception)


def all_say(model: str | Path, data: str | Path, *given: str, out: Path) -> str:
    """The one sentence with which all five refuse."""
    sentences = {command: said(type_(command, model, data, *given, out=out)) for command in COMMANDS}
    assert len(set(sentences.values())) == 1, sentences
    return sentences["run"]


def all_take(model: str | Path, data: str | Path, *given: str, out: Path) -> dict[str, str]:
    """What each prints; run comes first, because report shows what it has asked."""
    printed = {}
    for command in COMMANDS:
        done = type_(command, model, data, *given, out=out)
        assert done.exit_code in (0, 1 if command == "audit" else 0), (command, done.output, done.exception)
        assert not isinstance(done.exception, Mistake), (command, done.exception)
        printed[command] = done.output
    return printed


# --- the same pairs, columns and labels


def test_all_take_the_same_pairs(checkpoint: Path, tmp_path: Path) -> None:
    rows = [(text, text, f"LABEL_{i % 2}") for i, text in enumerate(texts_of(12))]
    data = table(tmp_path / "pairs.csv", ("text", "second", "label"), rows)
    printed = all_take(checkpoint, data, "--query-column", "second", out=tmp_path)
    for command, text in printed.items():
        assert "columns read: text 'text', label 'label', query 'second'" in text, command


def test_all_refuse_pairs_for_a_model_of_single_texts(tmp_path: Path) -> None:
    rows = [(text, text, "ab"[i % 2]) for i, text in enumerate(texts_of(40))]
    data = table(tmp_path / "pairs.csv", ("text", "second", "label"), rows)
    run = heedful.train(str(data), data={"tokenizer": "whitespace"}, runs=tmp_path / "runs", progress=QUIET, **SMALL)
    other = table(tmp_path / "other.csv", ("text", "second", "label"), rows)
    assert "has a query beside each text, but" in all_say(run.path, other, "--query-column", "second", out=tmp_path)


@pytest.mark.parametrize(
    ("columns", "given", "sentence"),
    [
        (
            ("Text", "TEXT", "label"),
            (),
            "the columns 'Text' and 'TEXT' differ in upper and lower case only; say which is the text with --text-col",
        ),
        (
            ("text", "Label", "LABEL"),
            (),
            "the columns 'Label' and 'LABEL' differ in upper and lower case only; say which is the label with --label",
        ),
        (("text", "label", "x"), ("--label-column", "gone"), "has no label column 'gone'; its columns are 'text', "),
        (("text", "label", "x"), ("--text-column", "TEXT"), "has no text column 'TEXT'; its columns are 'text', "),
        (("a", "b", "label"), (), "no column is known to be the text; say which with --text-column"),
        (("text", "label", "x"), ("--split", "all"), "--split 'all': the splits are train, dev, test."),
        (("text", "label", "x"), ("--dtype", "float8"), "there is no dtype 'float8'"),
        (("text", "label", "x"), ("--device", "abacus"), "torch has no such device here; 'cpu' is always there"),
        (("text", "label", "x"), ("--batch-size", "0"), "--batch-size 0: a whole number of texts is needed"),
        (("text", "label", "x"), ("--label-map", "a"), "--label-map 'a': give each label of the data once"),
        (("text", "label", "x"), ("--label-map", "LABEL_0=no"), "'no' is not a label of the model, which are LABEL_0"),
        (("text", "label", "x"), ("--label-map", "no=LABEL_0"), "'no' is not a label of"),
        (("text", "label", "x"), ("--labels", "one"), "1 labels were given (one), and the model has 2"),
    ],
)
def test_all_refuse_the_same(
    checkpoint: Path, columns: Sequence[str], given: Sequence[str], sentence: str, tmp_path: Path
) -> None:
    rows = [(text, f"LABEL_{i % 2}", f"LABEL_{i % 2}") for i, text in enumerate(texts_of(12))]
    assert sentence in all_say(checkpoint, table(tmp_path / "x.csv", columns, rows), *given, out=tmp_path)


def test_the_exact_name_of_a_column_comes_first(checkpoint: Path, tmp_path: Path) -> None:
    rows = [(text, f"LABEL_{i % 2}", "waste") for i, text in enumerate(texts_of(12))]
    data = table(tmp_path / "x.csv", ("text", "label", "Text"), rows)
    subject = Subject.resolve(checkpoint, data)
    assert [one.passage.text for one in subject.read().examples.values()] == [text for text, *_ in rows]
    assert subject.notes == (f"{data}: columns read: text 'text', label 'label'",)
    corpus = load_corpus(data, options=DataOptions(tokenizer="whitespace"))
    assert "columns: text 'text', label 'label'" in corpus.source  # training says it, too
    only = table(tmp_path / "y.csv", ("Review", "Sentiment"), [row[:2] for row in rows])
    assert "text 'Review', label 'Sentiment'" in Subject.resolve(checkpoint, only).notes[0]


def test_all_take_texts_without_labels(checkpoint: Path, tmp_path: Path) -> None:
    data = table(tmp_path / "plain.csv", ("text", "id"), [(text, str(i)) for i, text in enumerate(texts_of(12))])
    for command, printed in all_take(checkpoint, data, out=tmp_path).items():
        assert "has no column that is known to be the label" in printed, command


def test_no_data_is_said_alike(checkpoint: Path) -> None:
    for words in (["run", "permutation", str(checkpoint)], ["audit", str(checkpoint)], ["words", str(checkpoint)]):
        assert said(CliRunner().invoke(app, words)) == ("tiny has no data of its own: give the texts with --data.")
    for command in (["run", "permutation"], ["audit"], ["words"], ["explain"]):
        done = CliRunner().invoke(app, [*command, str(checkpoint), "--text-column", "x"])
        assert "text_column says how to read data: give --data, too." in said(done) or command == ["explain"]


def words_of(text: str) -> Words:
    return words_like("whitespace")(text)


# --- labels


def test_what_a_mismatch_says_to_type_leads_on(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels of the CSV are in the order that alphabet and suggestion would get wrong."""
    data = answered(checkpoint, tmp_path / "reviews.csv", ("Positive", "negative"))
    sentence = all_say(checkpoint, data, out=tmp_path)
    assert "'Positive' is none of the model's. The model's are LABEL_0, LABEL_1; those of the data are " in sentence
    assert "agrees with 95%, the other way with 5%" in sentence
    assert "--labels" not in sentence
    found = re.search(r"Type (--label-map \S+)\.$", sentence)
    assert found is not None, sentence
    typed = shlex.split(found[1])
    assert parse_label_map(typed[1]) == {"Positive": "LABEL_0", "negative": "LABEL_1"}
    all_take(checkpoint, data, *typed, out=tmp_path)
    (answers,) = (tmp_path / "runs").glob("*-on-*")
    assert json.loads((answers / "results/performance.summary.json").read_text())["accuracy"] == 0.95
    words = [word for word in arguments("audit", checkpoint, data, typed, tmp_path) if word != "--dry-run"]
    with monkeypatch.context() as patch:  # a whole audit asks all of them
        patch.setattr(EXPERIMENTS, "places", {n: EXPERIMENTS.places[n] for n in ("faithfulness", "correlation")})
        assert CliRunner().invoke(app, words).exit_code == 0
    in_python = heedful.run("permutation", checkpoint, data=data, label_map=parse_label_map(typed[1]), runs=tmp_path)
    assert len(in_python) == 40


def test_a_weak_model_is_asked_about_more_texts(checkpoint: Path, tmp_path: Path) -> None:
    """Right about two texts in three: the 50 that are looked at first do not show which label is which."""
    data = answered(checkpoint, tmp_path / "reviews.csv", ("Positive", "negative"), n=300, wrong=100)
    with pytest.raises(Mistake, match=r"Measured on 300 labelled texts: .* agrees with 67%, the other way with 33%"):
        _subject(checkpoint, data)


def test_an_order_that_cannot_be_told_is_not_suggested(checkpoint: Path, tmp_path: Path) -> None:
    data = answered(checkpoint, tmp_path / "reviews.csv", ("Positive", "negative"), wrong=20)
    sentence = all_say(checkpoint, data, out=tmp_path)
    assert "It is not clear which is which from the model's answers to 40 labelled texts (" in sentence
    assert "type --label-map 'Positive=?,negative=?' with one of LABEL_0, LABEL_1 in place of each ?." in sentence or (
        "type --label-map Positive=?,negative=?" in sentence
    )


def test_case_does_not_matter_where_it_leaves_no_doubt(checkpoint: Path, tmp_path: Path) -> None:
    rows = [(text, ("Label_0", "LABEL_1", "label_0")[i % 3]) for i, text in enumerate(texts_of(12))]
    data = table(tmp_path / "x.csv", ("text", "label"), rows)
    all_take(checkpoint, data, out=tmp_path)
    numbers = [one.label for one in Subject.resolve(checkpoint, data).read().examples.values()]
    assert numbers == [0, 1, 0] * 4
    other = {"labels": ["Label_0", "label_0"]}
    assert [one.label for one in _subject(checkpoint, _without(data, 1), **other).read().examples.values()] == [
        0,
        1,
    ] * 4
    with pytest.raises(Mistake, match="Write each label of the data in one way: the model distinguishes A, a apart"):
        _subject(checkpoint, data, labels=["A", "a"])


def _subject(model: Path, data: Path, **given: Any) -> Subject:
    return Subject.resolve(model, data, SubjectOptions(**given))


def _without(data: Path, label: int) -> Path:
    lines = [line for line in data.read_text().splitlines() if not line.endswith(f'_{label}"')]
    other = data.with_name("without.csv")
    other.write_text("\n".join(lines) + "\n")
    return other


def test_names_that_are_given_are_matched_whatever_the_case(checkpoint: Path, tmp_path: Path) -> None:
    data = answered(checkpoint, tmp_path / "reviews.csv", ("Positive", "negative"))
    all_take(checkpoint, data, "--labels", "positive,negative", out=tmp_path)


def test_label_maps() -> None:
    own = ("LABEL_0", "LABEL_1")
    assert match_labels(own, ("good", "bad", "fine"), {"GOOD": "label_1", "bad": "LABEL_0", "fine": "LABEL_1"}) == (
        (1, 0, 1)
    )
    assert match_labels(("neg", "pos"), ("good", "pos"), {"good": "pos"}) == (1, 1)
    with pytest.raises(NoMatch, match="'good' is none of the model's"):
        match_labels(own, ("good", "LABEL_0"))
    for pairs in ({"a": "b"}, {"a, b": "c=d", "e": "f"}, {" a": "b"}, {"it's": "so"}):
        (typed,) = shlex.split(show_label_map(pairs))
        assert parse_label_map(typed) == pairs
    for wrong in ("", "a", "a=", "=b", "a=b,a=c", "{", '{"a": 1}', "[1]"):
        with pytest.raises(Mistake, match="--label-map"):
            parse_label_map(wrong)
    assert subject_options(None, None, {0: "neg"}, "test", None, None, None, ()).reading == {"label_map": {"0": "neg"}}  # type: ignore[dict-item]


def test_several_labels_are_fitted_to_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """One name matches and stays; the others go where the answers put them, not where the alphabet does."""
    source: Any = SimpleNamespace(labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    rng = np.random.default_rng(0)
    truths, names = rng.integers(0, 3, 120), ("LABEL_1", "a", "b")
    answers = {0: 1, 1: 2, 2: 0}
    examples = [Example(str(i), words_of("x"), label=int(truth)) for i, truth in enumerate(truths)]
    monkeypatch.setattr(
        label_fit, "predict_labels", lambda _, some: np.array([answers[one.label or 0] for one in some])
    )
    fit = label_fit.measure_fit(source, examples, names, {})
    assert fit is not None
    assert (fit.best, fit.agrees, fit.rows, fit.sure) == (
        {"LABEL_1": "LABEL_1", "a": "LABEL_2", "b": "LABEL_0"},
        1.0,
        120,
        True,
    )
    few = label_fit.measure_fit(source, examples[:5], names, {})
    assert few is None or not few.sure


# --- precision


def half(folder: Path) -> Path:
    zoo.module("Bert", num_labels=2).to(torch.float16).save_pretrained(folder)
    zoo.tokenizer_of("Bert").save_pretrained(folder)
    return folder


def dtype_of(model: Model) -> torch.dtype:
    found: torch.dtype = next(zoo.network(model).module.parameters()).dtype
    return found


def test_weights_of_16_bits_are_computed_in_float32_and_that_is_said_once(tmp_path: Path) -> None:
    folder = half(tmp_path / "half")
    sentence = "the weights are float16; computed in float32 on this CPU: --dtype float16 keeps them"
    with pytest.warns(UserWarning, match=sentence) as caught:
        usual = heedful.load(folder)
    assert len([w for w in caught if sentence in str(w.message)]) == 1
    kept, own = heedful.load(folder, dtype="float16"), find_source(folder)
    types = [dtype_of(one) for one in (usual, kept, heedful.load(folder, dtype="float32"))]
    assert types == [torch.float32, torch.float16, torch.float32]
    sources = [own, find_source(folder, dtype="float32"), find_source(folder, dtype="auto")]
    assert len({source.fingerprint for source in sources}) == 1
    assert own.fingerprint != find_source(folder, dtype="float16").fingerprint
    assert own.place is not None
    assert find_source(own.place).fingerprint == own.fingerprint  # as another process finds it
    assert find_source(own.place).caution is None
    data = table(tmp_path / "x.csv", ("text", "label"), [(t, f"LABEL_{i % 2}") for i, t in enumerate(texts_of(8))])
    for given, times in (((), 1), (("--dtype", "float16"), 0)):
        for command in ("run", "audit", "words", "explain"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert type_(command, folder, data, *given, out=tmp_path).exit_code == 0
            assert len([w for w in told if sentence in str(w.message)]) == times, (command, given)


def test_dtype_of_a_run_and_of_a_model_in_memory(checkpoint: Path, tmp_path: Path) -> None:
    for model in (heedful.load(checkpoint),):
        with pytest.raises(Mistake, match="dtype can only be given for a checkpoint"):
            heedful.run("permutation", model, texts_of(2), dtype="float64")
    double = Subject.resolve(checkpoint, None, SubjectOptions(dtype="float64")).load()
    assert dtype_of(double) == torch.float64


def test_batch_size_bounds_the_texts_of_a_pass(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    model = heedful.load(checkpoint)
    usual = heedful.explain(model, texts_of(9), ["gradient"]).to_pandas()["score"].to_numpy()
    network = type(model.network)
    own = network.__call__

    def forward(self: Any, batch: Any, *args: Any, **given: Any) -> Any:
        seen.append(len(batch))
        return own(self, batch, *args, **given)

    monkeypatch.setattr(network, "__call__", forward)
    few = heedful.explain(model, texts_of(9), ["gradient"], batch_size=2).to_pandas()["score"].to_numpy()
    assert max(seen) == 2
    np.testing.assert_allclose(few, usual, atol=1e-6)
    seen.clear()
    rows = heedful.run("permutation", model, texts_of(9), batch_size=3, permutations=2)
    assert len(rows) == 9
    assert set(seen) == {3, 2 * 3}  # three texts, and each under two permutations


# --- models that are not classifiers

T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
SEQ = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
SEQ |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0}
SEQ |= {"decoder_start_token_id": 2, "bos_token_id": 2, "eos_token_id": 3, "forced_eos_token_id": 3}
TRAIN = "Fine-tune a copy as a classifier: heedful train DATA --start "
WRAP = "heedful.wrap(function, labels=[...])"


def saved(folder: Path, family: str, kind: str, sizes: dict[str, Any]) -> Any:
    tokens = zoo.wordpiece()
    module = getattr(transformers, kind)(getattr(transformers, f"{family}Config")(vocab_size=len(tokens), **sizes))
    module.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return module


@pytest.mark.parametrize(
    ("family", "kind", "sizes", "sentence", "trains"),
    [
        ("Bert", "BertModel", zoo.SIZES, "(a BertModel) is not a trained classifier", True),
        ("Bert", "BertForMultipleChoice", zoo.SIZES, "it chooses one of several texts", True),
        ("T5", "T5EncoderModel", T5, "(a T5EncoderModel) is not a trained classifier", False),
    ],
)
def test_what_is_not_a_classifier_is_named(
    family: str, kind: str, sizes: dict[str, Any], sentence: str, trains: bool, tmp_path: Path
) -> None:
    module = saved(tmp_path / "model", family, kind, sizes)
    for words in (["explain", str(tmp_path / "model"), "a good film"], ["audit", str(tmp_path / "model")]):
        if words[0] == "audit":
            words += ["--data", str(table(tmp_path / "x.csv", ("text", "label"), [("a film", "LABEL_0")] * 4))]
        done = CliRunner().invoke(app, words)
        told = said(done)
        assert kind in told
        assert sentence in told
        assert WRAP in told
        assert (TRAIN in told) == trains
    with pytest.raises(Mistake) as caught:
        heedful.wrap(module, zoo.wordpiece())
    assert kind in str(caught.value)


@pytest.mark.parametrize(
    ("family", "kind", "sizes"),
    [
        ("Llama", "LlamaForCausalLM", zoo.GROUPED),
        ("T5", "T5ForConditionalGeneration", {**T5, "decoder_start_token_id": 0}),
        ("Bart", "BartForConditionalGeneration", SEQ),
        ("Marian", "MarianMTModel", SEQ),
    ],
)
def test_what_generates_is_explained_token_by_token(
    family: str, kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    """A folder, a module and a pipeline are found out by themselves."""
    module = saved(tmp_path / "model", family, kind, sizes)
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "model"), "a good film", "--say", "good", "--quiet"])
    assert not isinstance(done.exception, Mistake), done.exception
    assert "token 1" in done.output
    wrapped = heedful.wrap(module.eval(), zoo.wordpiece())
    scores = [
        heedful.explain(model, ["a good film"], ["gradient_x_input"], say="good").to_pandas()["score"].to_numpy()
        for model in (tmp_path / "model", wrapped)
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)
    if family == "Llama":
        piped = heedful.load(transformers.pipeline("text-generation", model=module, tokenizer=zoo.wordpiece()))
        assert piped.task == "generation"


def test_encoder_decoders_that_classify_are_black_boxes(tmp_path: Path) -> None:
    """With the end of a text that their head looks for; without it they say what is missing."""
    for family, sizes in (("T5", {**T5, "eos_token_id": 3}), ("Bart", SEQ)):
        saved(tmp_path / family, family, f"{family}ForSequenceClassification", sizes)
        assert set(heedful.explain(tmp_path / family, ["a good film"]).to_pandas()["method"]) == {"omission"}
    saved(tmp_path / "without", "T5", "T5ForSequenceClassification", {**T5, "eos_token_id": 1})
    with pytest.raises(Mistake, match=r"cannot be asked as a classifier of texts: .*at least one <eos> token"):
        heedful.load(tmp_path / "without")


def test_a_reranker_says_that_it_reads_a_query(tmp_path: Path) -> None:
    saved(tmp_path / "reranker", "Bert", "BertForSequenceClassification", {**zoo.SIZES, "num_labels": 1})
    model = heedful.load(tmp_path / "reranker", query=True)
    with pytest.raises(
        Mistake, match=r"reads pairs: give a query \(the question, hypothesis or search\) for each text"
    ):
        heedful.explain(model, ["a good film"])
    with pytest.raises(Mistake, match=r"give queries=\[\.\.\.\]"):
        heedful.explain(tmp_path / "reranker", ["a good film"], query=["good"])
    assert len(heedful.explain(tmp_path / "reranker", ["a good film"], ["gradient"], queries=["good"])) == 1


# --- paths


def test_a_run_on_a_relative_path_is_asked_from_anywhere(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file, of a folder with a file for each split, and of a model on other data."""
    rows = [(text, "ab"[i % 2]) for i, text in enumerate(texts_of(60))]
    home, away = tmp_path / "home", tmp_path / "away"
    (home / "corpus").mkdir(parents=True)
    away.mkdir()
    table(home / "reviews.csv", ("text", "label"), rows)
    table(home / "corpus/train.csv", ("text", "label"), rows[:40])
    table(home / "corpus/test.csv", ("text", "label"), rows[40:])
    table(home / "other.csv", ("text", "label"), [(text, f"LABEL_{i % 2}") for i, (text, _) in enumerate(rows[:8])])
    monkeypatch.chdir(home)
    trained = [
        heedful.train(name, data={"tokenizer": "whitespace"}, runs=home / "runs", progress=QUIET, **SMALL).path
        for name in ("reviews.csv", "corpus")
    ]
    heedful.run("permutation", checkpoint, data="other.csv", runs=home / "runs", limit=4, permutations=2)
    (tried,) = (home / "runs").glob("*-on-*")
    monkeypatch.chdir(away)
    for folder in (*trained, tried):
        for words in (
            ["run", "permutation", str(folder), "--limit", "5", "--set", "permutations=2"],
            ["audit", str(folder), "--budget", "1s", "--dry-run"],
            ["words", str(folder), "--min-texts", "2"],
            *([["report", str(folder), "-o", str(away / "page.html")]] if folder == trained[0] else []),
        ):
            done = CliRunner().invoke(app, words)
            assert not isinstance(done.exception, Mistake), (words, done.exception)
            assert done.exit_code == 0, (words, done.output, done.exception)


# --- the model stands last, or behind --model


def test_the_model_of_run_stands_last(checkpoint: Path, tmp_path: Path) -> None:
    data = table(tmp_path / "x.csv", ("text", "label"), [(t, f"LABEL_{i % 2}") for i, t in enumerate(texts_of(6))])
    rest = ["--data", str(data), "--set", "permutations=2", "--runs", str(tmp_path / "runs"), "--json"]
    first = CliRunner().invoke(app, ["run", "permutation", str(checkpoint), *rest])
    again = CliRunner().invoke(app, ["run", "permutation", "--model", str(checkpoint), *rest])
    assert first.exit_code == again.exit_code == 0
    assert json.loads(first.stdout) == json.loads(again.stdout)
    for words, sentence in (
        (["permutation", "correlation"], "which model is to be asked? Type heedful run permutation correlation MODEL"),
        ([str(checkpoint)], f"which experiment is to be run? Type heedful run EXPERIMENT {checkpoint}"),
    ):
        assert sentence in said(CliRunner().invoke(app, ["run", *words, *rest]))


def test_what_is_typed_again_is_not_what_is_known_to_fail(tmp_path: Path) -> None:
    """A sentence about what was asked for is not followed by the same command; a crash is."""
    task = Task("experiment", "k", "r", RunConfig(dataset="sst"), "s", ask("permutation"))
    report = Report(failed=[Failure(task, "no.", mistake=True), Failure(task, "KeyError: 3", "Traceback")])
    first, second = failures(report, Workspace(tmp_path))
    assert "again" not in first
    assert second["again"].startswith("heedful run permutation --model ")
