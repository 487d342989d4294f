"""Data for language models: rows of prompts become decisions, and what is asked of classifiers is asked of these."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import heedful
import language_zoo as zoo
import transformer_zoo as bert
from heedful.config import DataOptions
from heedful.data.corpora.load import load_split
from heedful.data.generated.facts import planted_fact
from heedful.engine.sources.subject import Subject
from heedful.errors import Mistake
from heedful.records import Example

ROWS = """prompt,say,instead,evidence
the keys to the cabinet,are,is,"[1]"
the cabinet of the teachers,is,are,"[1]"
the best of all,days,the day,"[""best""]"
a film that nobody likes and the teacher,,,
the key to the tables,was,,"[[4, 7]]"
"""
PROMPTS = DataOptions(task="generation")


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "prompts.csv"
    path.write_text(ROWS)
    return str(path)


def read(table: str, family: str = "Llama") -> list[Example]:
    return [*Subject.resolve(zoo.model(family), table).read().examples.values()]


def next_logits(family: str, text: str) -> torch.Tensor:
    ids = zoo.tokenizer(True)(text)["input_ids"]
    found: torch.Tensor = zoo.module(family)(input_ids=torch.tensor([ids])).logits[0, -1]
    return found.detach()


def test_rows_are_decisions_between_two_tokens(table: str) -> None:
    model, examples = zoo.model("Llama"), read(table)
    assert [example.label for example in examples] == [1, 1, 1, None, 1]
    assert [example.evidence for example in examples] == [(1,), (1,), (1,), None, (1,)]
    z = model.network(model.encode(examples).batch(range(len(examples)))).logits[:, 0].detach()
    vocabulary = zoo.tokenizer(True).get_vocab()
    for row, (say, instead) in {0: ("Ġare", "Ġis"), 1: ("Ġis", "Ġare")}.items():
        logits = next_logits("Llama", examples[row].passage.text)
        expected = logits[vocabulary[say]] - logits[vocabulary[instead]]
        assert z[row].item() == pytest.approx(float(expected), abs=1e-4)
    own = next_logits("Llama", examples[3].passage.text)  # what it says, and not its next best
    first, second = own.sort(descending=True).values[:2]
    assert float(z[3]) == pytest.approx(float(first - second), abs=1e-4)
    given = next_logits("Llama", examples[4].passage.text)  # "was", and not the best of all others
    token = zoo.tokenizer(True)(" was")["input_ids"][1]
    others = given.clone()
    others[token] = -torch.inf
    assert float(z[4]) == pytest.approx(float(given[token] - others.max()), abs=1e-4)


def test_a_batch_of_some_that_have_begun_is_each_alone(table: str) -> None:
    model, examples = zoo.model("GPT2"), read(table, "GPT2")
    begun = model.steps(model.prompt("the keys to"), model.tokens_of(model.prompt("the keys to"), "the cabinet is"))
    mixed = [examples[0], begun[1], examples[1], begun[2]]
    together = model.network(model.encode(mixed).batch(range(4))).logits[:, 0].detach()
    alone = torch.cat([model.network(model.encode([one]).batch([0])).logits[:, 0].detach() for one in mixed])
    np.testing.assert_allclose(together.numpy(), alone.numpy(), atol=1e-4)


def test_experiments_have_no_line_of_their_own(table: str, tmp_path: Path) -> None:
    model = zoo.model("GPT2")
    with pytest.raises(Mistake, match="needs their labels"):  # one row does not say what is right
        heedful.run("pointing", model, data=table, methods=["gradient"])
    right = tmp_path / "right.csv"
    right.write_text("".join(line for line in ROWS.splitlines(True) if ",,," not in line))
    examples = read(str(right), "GPT2")
    rows = heedful.run("pointing", model, data=right, methods=["gradient"]).to_pandas()
    z = model.network(model.encode(examples).batch(range(4))).logits[:, 0].detach().numpy()
    counted = rows[(rows.method == "gradient") & rows.hit.notna()].example
    assert set(counted) == set(np.flatnonzero(z > 0).tolist())  # only prompts that it decides rightly
    faith = heedful.run("faithfulness", model, data=table, methods=["omission", "random"], operators=["delete"])
    assert len(faith) == 10
    assert faith.to_pandas().output.between(0, 1).all()


def test_an_audit_of_prompts(table: str) -> None:
    found = heedful.audit(zoo.model("Llama"), data=table, budget="8s")
    assert found.standings.order
    assert any("prompts" in warning for warning in found.warnings)
    assert not any("all texts have the label" in warning for warning in found.warnings)


def test_a_folder_is_asked_and_kept(table: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    zoo.module("Llama").save_pretrained(folder)
    zoo.tokenizer(True).save_pretrained(folder)
    first = heedful.run("rationales", folder, data=table, runs=tmp_path / "runs", methods=["gradient"])
    again = heedful.run("rationales", folder, data=table, runs=tmp_path / "runs", methods=["gradient"])
    assert first.to_pandas().equals(again.to_pandas())
    with pytest.raises(Mistake, match="trains models like the given one"):
        heedful.run("seeds", folder, data=table, runs=tmp_path / "runs")
    explained = heedful.explain(folder, data=table, methods=["gradient"], limit=2)
    assert explained[0].labels == (" is", " are")
    assert len(explained) == 2


def test_corpora_of_minimal_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, list[dict[str, object]]] = {
        "blimp_evidence": [{"id": "a", "text": "Adults kiss", "good": "themselves", "bad": "himself", "evidence": [0]}],
        "agreement_gulordava": [
            {
                "id": "L__NOUN_VERB_VERB-4-1",
                "text": "The key to it is here .",
                "verb_index": 4,
                "correct": "is",
                "wrong": "are",
                "label": 1,
                "n_attractors": 0,
            }
        ],
        "sst": [{"text": "good", "label": 1}],
    }
    for name, some in rows.items():
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "test.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in some)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    (pair,) = load_split("blimp_evidence", "test", options=PROMPTS).examples
    assert (pair.passage.text, pair.evidence) == ("Adults kiss", (0,))
    assert pair.saying is not None
    assert (pair.saying.say, pair.saying.instead) == ("themselves", "himself")
    (agreement,) = load_split("agreement_gulordava", "test", options=PROMPTS).examples
    assert (agreement.passage.text, agreement.evidence) == ("The key to it", (1,))
    with pytest.raises(Mistake, match="data for a classifier"):
        load_split("sst", "test", options=PROMPTS)
    with pytest.raises(Mistake, match="corpus of prompts for language models"):
        load_split("blimp_evidence", "test")


@pytest.mark.parametrize("copies", [1, 2])
def test_planted_facts_are_where_they_are_said_to_be(copies: int) -> None:
    for seed in range(50):
        made = planted_fact(np.random.default_rng(seed), copies)
        marked = [made.prompt[a:b] for a, b in made.evidence]
        assert marked == [made.sentences[i] for i in made.planted]
        assert len(marked) == copies
        name = made.begins.split()[0]
        tell = [s for s in made.sentences if f" {made.say}." in s and name in s.split()[:4]]
        assert sorted(tell) == sorted(marked)  # no other sentence tells it
        assert any(made.instead in s for s in made.sentences)
        assert len(made.sentences) == 12
    assert len(planted_fact(np.random.default_rng(0), copies, 32).sentences) == 32


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("words,say\nthe keys,are\n", "no column 'prompt'"),
        ("text,label\nthe keys,1\n", "no column 'prompt'"),  # of a classifier
        ("prompt,say\n ,are\n", "the prompt is empty"),
        ("prompt,say,instead\nthe keys,are,are\n", "give two that differ"),
        ('prompt,say,evidence\nthe keys,are,"[7]"\n', "outside of the text"),
    ],
)
def test_slips_in_data(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text(text)
    with pytest.raises(Mistake, match=sentence):
        Subject.resolve(zoo.model("Llama"), str(path))


def test_a_classifier_reads_no_prompts() -> None:
    with pytest.raises(Mistake, match="prompts for language models"):
        Subject.resolve(heedful.wrap(bert.module("Bert", num_labels=2), bert.tokenizer_of("Bert")), "planted-facts")
