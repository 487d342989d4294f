"""Deception: the loss from the paper's formulas, what is marked and hidden, and the experiment from plan to verdict."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
import zoo
from heedful.config import (
    FINE_TUNING,
    DataOptions,
    EditConfig,
    EvaluationConfig,
    ModelConfig,
    RunConfig,
    SourceConfig,
    TrainingConfig,
)
from heedful.data.corpora import load as corpora
from heedful.data.edits.anonymise import ANONYMOUS
from heedful.data.text.batching import Encoded, encode
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import load_corpus
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import ask, plan
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS
from heedful.experiments.other_training.deception import CONTROL, DeceptionConfig, name_of, runs
from heedful.models import AttentiveClassifier, build
from heedful.models.network import AttendedOutput, read_attention
from heedful.models.objectives.deception import DECEPTION, DeceptionOptions, penalty, permissible_mass
from heedful.models.training import fit
from heedful.records import Example

QUIET = Progress(quiet=True)
TEXTS = ["he came", "she saw that he was there", "they all won the game .", "her dog and his cat"]
PRONOUNS = ("he", "she", "her", "his")


def examples(texts: list[str] = TEXTS) -> list[Example]:
    split = tokenizer("whitespace")
    made = [split(text) for text in texts]
    return [
        Example(str(i), words, i % 2, evidence=tuple(p for p, w in enumerate(words.forms) if w in PRONOUNS))
        for i, words in enumerate(made)
    ]


def encoded(some: list[Example] | None = None) -> tuple[Encoded, int]:
    made = some or examples()
    vocabulary = Vocabulary.build([e.passage for e in made], 1)
    return encode(made, WordEncoder(vocabulary, "whitespace"), 2), len(vocabulary)


def network(n_words: int, seed: int = 0) -> AttentiveClassifier:
    return build(ModelConfig(embedding_dim=6, hidden_dim=8), n_words, 2, seed=seed).double()


def slow_loss(model: AttentiveClassifier, data: Encoded, weight: float) -> float:
    """One text at a time, as the paper writes it: cross-entropy - lambda log(1 - sum of alpha at hidden words)."""
    total = 0.0
    for i in range(len(data)):
        batch = data.batch([i])
        output = model(batch)
        assert batch.labels is not None
        p = float(output.probabilities[0, int(batch.labels[0])])
        mass = sum(float(a) for a, hidden in zip(output.alpha[0], batch.targets["evidence"][0], strict=True) if hidden)
        total += -math.log(p) - weight * math.log(1 - mass)
    return total


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0, 7.5])
def test_the_loss_is_the_papers(weight: float) -> None:
    data, n_words = encoded()
    model = network(n_words)
    options = DeceptionOptions(penalty=weight)
    loss = DECEPTION.loss(model, data, TrainingConfig(class_weights=False), options, {})
    batch = data.batch(range(len(data)))
    assert loss(model.learn(batch), batch).item() == pytest.approx(slow_loss(model, data, weight), rel=1e-9)


def test_several_heads_are_the_papers() -> None:
    """R = -lambda / |H| sum_h log(1 - alpha_h . m), or -lambda min_h log(1 - alpha_h . m)."""
    rng = np.random.default_rng(0)
    alpha = torch.from_numpy(rng.dirichlet(np.ones(5), size=(3, 2, 4)))  # (texts, layers, heads, from)
    marked = torch.from_numpy(rng.random((3, 4)) < 0.5)  # of a passage that is shorter than passage and query
    marked[0] = False
    ours = {how: penalty(permissible_mass(alpha, marked), how) for how in ("mean", "max")}
    for text in range(3):
        costs = [
            -math.log(1 - sum(float(alpha[text, a, h, t]) for t in range(4) if marked[text, t]))
            for a in range(2)
            for h in range(4)
        ]
        assert ours["mean"][text] == pytest.approx(sum(costs) / len(costs))
        assert ours["max"][text] == pytest.approx(max(costs))
    assert ours["mean"][0] == pytest.approx(0)


def test_the_attention_of_the_token_that_is_read() -> None:
    batch = zoo.batch([3, 1])
    weights = torch.rand(2, 3, 2, 5, 5)  # 3 words and two markers
    output = AttendedOutput(torch.zeros(2, 2), zoo.network().link, weights)
    first = read_attention(output, batch, "first", (-1,))
    assert torch.equal(first, weights[:, 2:, :, 0])
    last = read_attention(output, batch, "last", None)
    assert torch.equal(last[0], weights[0, :, :, 4])
    assert torch.equal(last[1], weights[1, :, :, 2])
    with pytest.raises(Mistake, match="there is no layer 3"):
        read_attention(output, batch, "first", (3,))


def test_gradients_flow_where_the_paper_says() -> None:
    """The penalty moves what makes the attention (scores, states, embeddings), and not what reads the context."""
    data, n_words = encoded()
    batch = data.batch(range(len(data)))

    def gradients(weight: float) -> dict[str, torch.Tensor]:
        model = network(n_words)
        loss = DECEPTION.loss(model, data, TrainingConfig(class_weights=False), DeceptionOptions(penalty=weight), {})
        loss(model.learn(batch), batch).backward()  # type: ignore[no-untyped-call]
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    plain, deceived = gradients(0.0), gradients(1.0)
    moved = {name for name in plain if not torch.equal(plain[name], deceived[name])}
    assert {name.partition(".")[0] for name in moved} == {"embedding", "encoder", "attention"}


def test_attention_that_is_all_impermissible_or_nothing_is_permitted() -> None:
    """A text of nothing but hidden words has no gradient, and no infinite loss; one without any has no penalty."""
    all_hidden = torch.ones(1, 1, 3, requires_grad=True) / 3
    mass = permissible_mass(all_hidden[:, None], torch.tensor([[True, True, True]]))
    cost = penalty(mass, "mean")
    assert torch.isfinite(cost).all()
    assert penalty(permissible_mass(all_hidden[:, None], torch.tensor([[False] * 3])), "max").item() == pytest.approx(
        0, abs=1e-6
    )


def test_a_trained_copy_hides_the_words_and_the_epoch_is_that_of_the_least_dev_loss() -> None:
    data, n_words = encoded(examples(TEXTS * 8))
    model = network(n_words)
    options = {"penalty": 1.0}
    config = TrainingConfig(
        epochs=12, batch_size=8, learning_rate=0.02, objective="deception", objective_options=options
    )
    (*_, state) = fit(model, data, data, config, 0)
    batch = data.batch(range(4))
    mass = (model(batch).alpha * batch.targets["evidence"]).sum(1)
    assert mass.max() < 0.05
    scores = [epoch.score for epoch in state.history]
    kept = next(i for i, epoch in reversed(list(enumerate(state.history))) if epoch.best)
    assert scores[kept] == max(scores)
    assert all(score < 0 for score in scores)
    expected = DECEPTION.loss(model, data, config, DeceptionOptions(penalty=1.0), {})
    whole = data.batch(range(len(data)))
    assert -scores[kept] == pytest.approx(expected(model(whole), whole).item() / len(data), rel=1e-6)


def test_data_without_marked_words_are_refused() -> None:
    data, n_words = encoded()
    bare = Encoded(data.passages, None, None, data.labels)
    with pytest.raises(Mistake, match=r"these data mark none: name a column with\s+evidence_column"):
        DECEPTION.loss(network(n_words), bare, TrainingConfig(), DeceptionOptions(), {})


def test_words_of_a_list_are_marked_and_hidden(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    rows = ["text,label", *(f"{text},{i % 2}" for i, text in enumerate(["She saw HIS dog's bone.", "nobody left"] * 8))]
    file.write_text("\n".join(rows) + "\n")
    marked = DataOptions(evidence_words=("she", "his"))
    texts = [e for split in corpora.load(file, options=marked).splits.values() for e in split]
    first = next(e for e in texts if len(e.passage) > 2)
    assert first.evidence == (0, 2)
    assert {e.evidence for e in texts} == {(0, 2), ()}
    hidden = load_corpus(str(file), marked.model_copy(update={"edit": EditConfig(name="anonymise")}))
    edited = next(e for split in hidden.splits.values() for e in split if len(e.passage) > 2)
    assert edited.passage.text == f"{ANONYMOUS} saw {ANONYMOUS} dog's bone."
    surfaces = [edited.passage.surface(i) for i in range(len(edited.passage))]
    assert surfaces[:3] == [ANONYMOUS, "saw", ANONYMOUS]
    assert edited.passage.forms[3:] == first.passage.forms[3:]
    assert edited.evidence == first.evidence
    part = corpora.load_split(file, "test", 2, options=marked)
    whole = corpora.load(file, options=marked)["test"]
    assert [e.evidence for e in part.examples] == [whole[p].evidence for p in part.places]
    assert "evidence_words" not in DataOptions().model_dump()


def test_the_runs_that_are_needed() -> None:
    about = configure("pronoun", data={"tokenizer": "whitespace"})
    named = runs(DeceptionConfig(words=PRONOUNS, penalties=(0.1, 1.0, 0.1)), about)
    assert list(named) == ["lambda 0.1", "lambda 1", CONTROL]
    assert named["lambda 0.1"].training.objective_options["penalty"] == 0.1
    assert named["lambda 1"].data.evidence_words == PRONOUNS
    assert named[CONTROL].data.edit == EditConfig(name="anonymise")
    assert named[CONTROL].training == about.training
    edited = about.model_copy(update={"data": named[CONTROL].data})
    with pytest.raises(Mistake, match="are edited"):
        runs(DeceptionConfig(), edited)
    source = SourceConfig(place="hf:somewhere", name="somewhere", fingerprint="0" * 64)
    trial = EvaluationConfig(source=source, dataset="pronoun")
    copies = runs(DeceptionConfig(), trial)
    assert list(copies) == ["lambda 0", "lambda 0.1", "lambda 1", CONTROL]
    assert all(one.start == source for one in copies.values())
    assert copies["lambda 0"].training == FINE_TUNING


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Texts in which one of two words decides, somewhere among others; it is the evidence."""
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", np.random.default_rng(0)
    others = ["film", "actor", "story", "time", "music", "scene", "the", "a", "of", "and"]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label", "evidence"))
        for i in range(240):
            words = [str(word) for word in rng.choice(others, int(rng.integers(4, 9)))]
            at, label = int(rng.integers(len(words))), ("negative", "positive")[i % 2]
            words[at] = ("bad", "good")[i % 2]
            rows.writerow((" ".join(words), label, json.dumps([at])))
    return str(path)


def small(file: str, **training: Any) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace", "evidence_column": "evidence"},
        model={"encoder": "bilstm", "embedding_dim": 12, "hidden_dim": 12},
        training={"epochs": 8, "batch_size": 16, "learning_rate": 0.02, "metric": "dev_loss", **training},
    )


def test_from_plan_to_verdict(reviews: str, tmp_path: Path) -> None:
    """A copy keeps its accuracy without a look at the word that decides, and gradients still see that word."""
    config, place = small(reviews), Workspace(tmp_path / "runs")
    alone = Workspace(tmp_path / "alone")
    assert execute(plan([config]), alone, QUIET, "here", cores=1).complete
    made = plan([config], [ask("deception", {"penalties": [1.0]})])
    assert len(made.of("train")) == 3
    assert execute(made, place, QUIET, "here", cores=1).complete
    run = place.run(made.of("train")[0].run)
    assert run.check()["model.safetensors"] == alone.run(run.name).check()["model.safetensors"]  # by no bit
    summary = run.summary("deception")
    own, deceived = (summary["by_model"][name] for name in ("lambda 0", "lambda 1"))
    assert own["accuracy"]["mean"] > 0.9
    assert deceived["accuracy"]["mean"] > 0.9
    assert summary["control"]["mean"] < 0.7
    assert own["attention_mass"]["mean"] > 0.3
    assert deceived["attention_mass"]["mean"] < 0.02
    seen = {method: models["lambda 1"]["auc"] for method, models in summary["by_method"].items()}
    assert seen["attention"]["mean"] < 0.5
    assert seen["omission"]["low"] > 0.5
    table = run.results.rows("deception")
    assert len(table) == 48 * 2 * 5
    verdict = summary["verdict"]
    assert verdict["grade"] == "against"
    assert verdict["value"] < 0.1
    assert "leave-one-out" in verdict["sentence"]
    assert not execute(made, place, QUIET, "here", cores=1).done


def test_it_is_refused_without_a_folder(reviews: str) -> None:
    model = heedful.wrap(lambda texts: np.full((len(texts), 2), 0.5), labels=["a", "b"])
    with pytest.raises(Mistake):
        heedful.run("deception", model, ["he came"])


@pytest.mark.long
def test_a_checkpoint_is_deceived(reviews: str, tmp_path: Path) -> None:
    """Fine-tuned copies of a checkpoint, by folder and as a run, attention of all layers."""
    pytest.importorskip("transformers")
    import transformer_zoo

    folder = tmp_path / "tiny"
    labels = {0: "negative", 1: "positive"}
    transformer_zoo.module("Bert", num_labels=2, id2label=labels, max_position_embeddings=200).save_pretrained(folder)
    transformer_zoo.tokenizer_of("Bert").save_pretrained(folder)
    config = configure(
        reviews,
        data={"tokenizer": "whitespace", "evidence_column": "evidence", "train_rows": 60},
        start=folder,
        training={"epochs": 2, "learning_rate": 3e-3, "metric": "dev_loss"},
    )
    options = {"penalties": [5.0], "layers": None, "heads": "max", "methods": ["attention", "omission"]}
    made = plan([config], [ask("deception", options, limit=20)])
    place = Workspace(tmp_path / "runs")
    assert execute(made, place, QUIET, "here", cores=1, strict=True).complete
    summary = place.run(made.of("train")[0].run).summary("deception")
    before, after = (summary["by_model"][name]["max_attention_mass"]["mean"] for name in ("lambda 0", "lambda 5"))
    assert after < before
    rows = heedful.run(
        "deception",
        folder,
        data=reviews,
        limit=4,
        runs=tmp_path / "runs",
        progress=QUIET,
        penalties=(5.0,),
        methods=("attention",),
        data_options={**config.data.model_dump(exclude_none=True)},
    )
    assert set(rows.table["model"].to_pylist()) == {"as it is", "lambda 0", "lambda 5"}


def test_it_is_registered() -> None:
    assert EXPERIMENTS.find("deception").name == "deception"
    assert name_of(1.0) == "lambda 1"
