"""`heedful.cite`: what supports a statement, found in functions that are known, and said of tiny models as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import language_zoo as languages
import zoo
from commands import heedful as command
from heedful import cite
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.explainers.sources.context import ASKS, Context, Document, log_probability, statements
from heedful.explainers.sources.support import Bools, Floats, Function, Support, hierarchical, support
from heedful.models.model import Model

DOCUMENTS = {"a": "the keys are on the table. a good day!", "b": "nobody likes the film."}
QUESTION = "the best day"


def noise(keep: Bools) -> Floats:
    """What leaving units out does to a statement that none of them supports."""
    weights = np.random.default_rng(3).normal(scale=0.05, size=keep.shape[1])
    return (keep @ weights).astype(np.float64)


def single(keep: Bools) -> Floats:
    return 4.0 * keep[:, 2] + noise(keep)


def double(keep: Bools) -> Floats:
    return 4.0 * (keep[:, 2] | keep[:, 5]) + noise(keep)


def many(keep: Bools) -> Floats:
    """Any three of the units would do."""
    enough: Floats = 4.0 * (keep.sum(1) >= 3) + noise(keep)
    return enough


def found(f: Function, units: int, passes: int) -> Support:
    return support(f, lambda z: z, units, passes, 64, np.random.default_rng(0))


@pytest.mark.parametrize(("units", "passes"), [(8, 256), (8, 255), (30, 256)])
@pytest.mark.parametrize(
    ("f", "verdict", "first"), [(single, "single", 2), (double, "together", (2, 5)), (noise, "none", None)]
)
def test_what_supports_a_statement(
    f: Function, verdict: str, first: int | tuple[int, int] | None, units: int, passes: int
) -> None:
    got = found(f, units, passes)
    assert got.verdict == verdict
    assert got.exact == (2**units <= passes)
    if verdict == "single":
        assert got.single == [first]
    elif verdict == "together":
        assert got.together == [first]
        assert got.single == []
    whole = np.ones((1, units), np.bool_)
    np.testing.assert_allclose(
        got.falls, [(f(whole) - f(whole & ~np.eye(units, dtype=bool)[i]))[0] for i in range(units)]
    )


def test_documents_that_support_only_together() -> None:
    assert found(many, 8, 256).verdict == "context"


@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_sentences_documents_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(10), 10)
    at = int(rng.integers(100))
    asked = 0

    def f(keep: Bools) -> Floats:
        nonlocal asked
        asked += len(keep)
        return 5.0 * keep[:, at] + noise(keep)

    got = hierarchical(f, lambda z: z, document, 256, 64, rng)
    assert got.single == [at]
    assert set(got.unseen).isdisjoint(np.flatnonzero(document == document[at]).tolist())
    assert len(got.unseen) >= 50
    assert np.isnan(got.falls[list(got.unseen)]).all()
    assert asked < 2 * 100 + 200


def test_the_falls_are_the_models_own() -> None:
    model = languages.model("Llama")
    documents = [Document(name, text) for name, text in DOCUMENTS.items()]
    context = Context.of(model, documents, QUESTION)
    assert [context.text_of(i) for i in range(3)] == ["the keys are on the table.", "a good day!", DOCUMENTS["b"]]
    assert context.document.tolist() == [0, 0, 1]
    assert ASKS.format(context="\n\n".join(DOCUMENTS.values()), question=QUESTION) in context.prompt.text
    said = cite(model, DOCUMENTS, QUESTION, "the table")
    assert said.passes == 2**3
    (statement,) = said.statements
    ids = model.text.encode([context.prompt], "passage").flat
    given = languages.tokenizer(True)(context.prompt.text, add_special_tokens=False, return_offsets_mapping=True)
    spans = given["offset_mapping"]
    assert given["input_ids"] == ids.tolist()
    tokens = model.tokens_of(context.prompt, "the table")

    def slow(gone: tuple[int, int] | None) -> float:
        inside = [gone is not None and gone[0] <= b - 1 < gone[1] and b > a for a, b in spans]
        read = [int(i) for i, out in zip(ids, inside, strict=True) if not out]
        total = 0.0
        for token in tokens:
            with torch.no_grad():
                logits = model.network.module(input_ids=torch.tensor([read]), use_cache=False).logits[0, -1]
            total += float(logits.double().log_softmax(-1)[token])
            read.append(token)
        return total

    np.testing.assert_allclose(statement.support.whole, slow(None), atol=1e-4)
    for i, span in enumerate(context.spans):
        np.testing.assert_allclose(statement.support.falls[i], slow(None) - slow(span), atol=1e-4)
    told = json.loads(said.to_json())
    assert told["sources"][2] == {"number": 3, "document": "b", "text": DOCUMENTS["b"]}
    assert told["statements"][0]["verdict"] == statement.support.verdict
    assert ("UNSUPPORTED" in str(said)) == (statement.support.verdict == "none")


def test_statements_are_the_sentences_of_an_answer() -> None:
    model = languages.model("GPT2")
    prompt = model.prompt("the keys")
    ids = model.tokens_of(prompt, "are on the table. a good day! the film")
    parts = statements(model, ids)
    assert parts[0][0] == 0
    assert parts[-1][1] == len(ids)
    texts = [model.text.said(ids[a:b]).text.strip() for a, b in parts]
    assert texts == ["are on the table.", "a good day!", "the film"]
    assert statements(model, ids[:2]) == [(0, 2)]


def test_log_odds_of_a_sure_statement_have_a_log_probability() -> None:
    np.testing.assert_allclose(log_probability(np.array([0.0, 60.0, -60.0])), [np.log(0.5), 0, -60], atol=1e-12)


def raising(call: Callable[[], object], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        call()


def test_wrong_input_is_one_sentence() -> None:
    model = languages.model("Llama")
    raising(lambda: cite(model, [], QUESTION), "there is no document")
    raising(lambda: cite(model, "one text", QUESTION), "give a list of documents")
    raising(lambda: cite(model, ["a", 3], QUESTION), "document 2 is not a text")  # type: ignore[list-item]
    raising(lambda: cite(model, ["a", " "], QUESTION), "document 2 is empty")
    raising(lambda: cite(model, ["a"], " "), "the question is empty")
    raising(lambda: cite(model, ["a"], QUESTION, units="line"), "a sentence, a paragraph or a document")
    raising(lambda: cite(model, ["a"], QUESTION, ablations=2), "ablations must be a whole number of at least 8")
    raising(lambda: cite(model, ["the table " * 60], QUESTION), r"the prompt has \d+ tokens, and Llama reads 64")
    raising(lambda: cite(languages.model("T5"), ["a"], QUESTION), "encoder-decoder")
    vocabulary = Vocabulary((*MARKERS, *tokenizer("spacy")("a good day").forms))
    classifier = Model("toy", zoo.network(), WordEncoder(vocabulary), ("no", "yes"))
    raising(lambda: cite(classifier, ["a"], QUESTION), "toy is a classifier, which gives no answers")


def test_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    languages.module("Llama").save_pretrained(folder)
    languages.tokenizer(True).save_pretrained(folder)
    for name, text in DOCUMENTS.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    files = ["-c", str(tmp_path / "a.txt"), "-c", str(tmp_path / "b.txt")]
    done = command("cite", str(folder), *files, QUESTION, "--say", "the table", "-q")
    assert done.returncode == 0, done.stderr
    assert "log P falls by" in done.stdout
    assert "P 0." in done.stdout
    done = command("cite", str(folder), *files, QUESTION, "--say", "the table", "-o", str(tmp_path / "said.json"), "-q")
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "said.json").read_text())["sources"]) == 3
    done = command("cite", str(folder), *files[:2], *files[:2], QUESTION)
    assert done.returncode == 2
    assert "is given twice" in done.stderr
    done = command("cite", str(folder), "-c", str(tmp_path / "none.txt"), QUESTION)
    assert done.returncode == 2
    assert "none.txt: No such file" in done.stderr
