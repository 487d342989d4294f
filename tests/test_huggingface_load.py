"""Strangers' folders: what is read, under which names, and what is refused with the reason."""

from __future__ import annotations

import copy as copy_module
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import transformers

import heedful
import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.models.huggingface import fingerprint, load, load_pipeline, wrap
from heedful.models.huggingface.files import read_labels
from heedful.models.link import IDENTITY, LOG_ODDS, SIGMOIDS, SOFTMAX


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("saved") / "odd labels"
    module = zoo.module("Bert", id2label={0: "schlecht 👎", 1: "LABEL_1", 2: "gut"})
    module.save_pretrained(made)
    zoo.tokenizer_of("Bert").save_pretrained(made)
    return made


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


def config_of(**changes: Any) -> Any:
    return transformers.BertConfig(**changes)


def test_a_folder(folder: Path) -> None:
    before = torch.get_rng_state()
    made = load(folder)
    assert torch.equal(torch.get_rng_state(), before)
    assert made.labels == ("schlecht 👎", "LABEL_1", "gut")
    assert made.name == "odd labels"
    own = zoo.own_logits(zoo.module("Bert"), zoo.tokenizer_of("Bert"), "a good film").softmax(-1)
    np.testing.assert_allclose(made.predict(["a good film"]), own, atol=1e-6)
    assert load(folder, labels=["a", "b", "c"], dtype="float64").network.dtype == torch.float64
    with pytest.raises(Mistake, match="text 2 has no words"):
        made.predict(["good", " \n"])


def test_given_labels_must_fit(folder: Path) -> None:
    with pytest.raises(Mistake, match=r"2 labels were given \(neg, pos\), and the model has 3"):
        load(folder, labels=["neg", "pos"])
    with pytest.raises(Mistake, match="same name"):
        load(folder, labels=["a", "a", "b"])


def test_pickled_weights_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(Mistake, match=r"only pickled weights \(pytorch_model.bin\).*save_pretrained"):
        load(copy)
    (copy / "pytorch_model.bin").unlink()
    with pytest.raises(Mistake, match="has no weights"):
        load(copy)


def test_code_that_comes_with_a_model_is_refused(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "mine.py").write_text("raise SystemExit('this must never run')")
    with pytest.raises(Mistake, match="never run"):
        load(copy)


def test_a_head_that_nobody_trained_is_refused(tmp_path: Path) -> None:
    zoo.module("Bert").bert.save_pretrained(tmp_path)
    zoo.tokenizer_of("Bert").save_pretrained(tmp_path)
    with pytest.raises(
        Mistake, match=r"\(a BertModel\) is not a trained classifier: its weights lack 'classifier.bias' and 1"
    ):
        load(tmp_path)


def test_what_is_no_model(tmp_path: Path, copy: Path) -> None:
    with pytest.raises(Mistake, match=r"no config\.json"):
        load(tmp_path)
    (copy / "config.json").write_text("[")
    with pytest.raises(Mistake, match=r"config\.json cannot be read"):
        load(copy)
    (copy / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(Mistake, match="cannot be read as a sequence classifier"):
        load(copy)
    with pytest.raises(Mistake, match="revision='x' is for models of the hub"):
        load(copy, revision="x")
    with pytest.raises(Mistake, match="no dtype 'float8'"):
        load(zoo_folder(tmp_path / "fine"), dtype="float8")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", {"hidden_size": "wide"}, "'hidden_size' expected int"),
        ("config.json", {"hidden_size": 8}, r"weights '\S+' of \S+ are \(16,\), .* they should be \(8,\)"),
        ("config.json", {"id2label": {"0": "a", "1": "b"}}, r"'classifier.bias' .*\(3,\), .*\(2,\).*other labels"),
        ("config.json", {"id2label": ["a", "b", "c"]}, "cannot be read as a sequence classifier"),
        ("tokenizer_config.json", [], "no tokenizer that can be read"),
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1", "Error while deserializing header"),
    ],
)
def test_damaged_files(name: str, content: Any, said: str, copy: Path) -> None:
    """One sentence, whichever of the libraries finds it."""
    if isinstance(content, dict):
        content = json.loads((copy / name).read_text()) | content
    (copy / name).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(Mistake, match=said):
        heedful.load(copy)


def test_an_adapter_alone(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(Mistake, match="holds only an adapter: merge it"):
        heedful.load(tmp_path)


def zoo_folder(path: Path) -> Path:
    zoo.module("Bert").save_pretrained(path)
    zoo.tokenizer_of("Bert").save_pretrained(path)
    return path


def test_a_folder_without_a_tokenizer(copy: Path) -> None:
    for path in copy.glob("*token*"):
        path.unlink()
    with pytest.raises(Mistake, match="tokenizer"):
        load(copy)


def test_the_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub

    def unreachable(name: str, *, local_files_only: bool, **given: Any) -> str:
        if local_files_only:
            raise huggingface_hub.errors.LocalEntryNotFoundError("nothing here")
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(Mistake, match=r"no folder someone/model, .*the hub cannot be reached"):
        load("someone/model")
    with pytest.raises(Mistake, match="not to be asked"):
        load("someone/model", offline=True)


def test_files_that_are_here_are_not_asked_for(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    import huggingface_hub

    def cached(name: str, *, local_files_only: bool, **given: Any) -> str:
        assert local_files_only, "the hub was asked for what is here"
        assert given["revision"] == "v1"
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    assert load("someone/model", revision="v1").name == "someone/model"


def test_a_pipeline() -> None:
    module, tokenizer = zoo.module("Bert"), zoo.tokenizer_of("Bert")
    pipeline = transformers.pipeline("text-classification", model=module, tokenizer=tokenizer, device="cpu")
    made = load_pipeline(pipeline)
    told = pipeline("a good film", top_k=None)
    expected = {each["label"]: each["score"] for each in told}
    for label, p in zip(made.labels, made.predict(["a good film"])[0], strict=True):
        assert p == pytest.approx(expected[label], abs=1e-5)
    with pytest.raises(Mistake, match="has no model and tokenizer"):
        load_pipeline(object())
    for option in ({"device": "meta"}, {"dtype": "float64"}):
        with pytest.raises(Mistake, match="is not an option of a pipeline"):
            heedful.load(pipeline, **option)


@pytest.mark.parametrize("function", ["sigmoid", "softmax", "none"])
def test_what_a_pipeline_applies_to_its_logits(function: str) -> None:
    pipeline = transformers.pipeline(
        "text-classification",
        model=zoo.module("Bert"),
        tokenizer=zoo.tokenizer_of("Bert"),
        device="cpu",
        function_to_apply=function,
    )
    told = {each["label"]: each["score"] for each in pipeline("a good film", top_k=None)}
    made = heedful.load(pipeline)
    found = dict(zip(made.labels, made.predict(["a good film"])[0], strict=True))
    assert found == pytest.approx(told, abs=1e-5)


@pytest.mark.parametrize(
    ("config", "given", "link", "labels"),
    [
        ({"num_labels": 2}, {}, SOFTMAX, ("LABEL_0", "LABEL_1")),
        ({"num_labels": 2}, {"labels": ["neg", "pos"]}, SOFTMAX, ("neg", "pos")),
        ({"num_labels": 3, "problem_type": "multi_label_classification"}, {}, SIGMOIDS, None),
        ({"num_labels": 3}, {"problem_type": "multi_label_classification"}, SIGMOIDS, None),
        ({"num_labels": 1}, {}, IDENTITY, ("LABEL_0",)),
        ({"num_labels": 1, "problem_type": "regression"}, {"labels": ["stars"]}, IDENTITY, ("stars",)),
        ({"num_labels": 1}, {"labels": ["neg", "pos"]}, LOG_ODDS, ("neg", "pos")),
        (
            {"num_labels": 1, "problem_type": "multi_label_classification"},
            {"labels": ["toxic"]},
            LOG_ODDS,
            ("not toxic", "toxic"),
        ),
        ({"num_labels": 2, "problem_type": "regression"}, {}, IDENTITY, None),
    ],
)
def test_links(config: dict[str, Any], given: dict[str, Any], link: Any, labels: Any) -> None:
    found, names = read_labels(config_of(**config), **given)
    assert found is link
    assert labels is None or names == labels


def test_labels_that_cannot_be_read() -> None:
    with pytest.raises(Mistake, match="the same name"):
        read_labels(config_of(id2label={0: "a", 1: "a"}))
    with pytest.raises(Mistake, match="no problem type 'ranking'"):
        read_labels(config_of(num_labels=2), problem_type="ranking")
    with pytest.raises(Mistake, match=r"give labels=\[...\]"):
        read_labels(None)
    assert read_labels(None, ["a", "b"])[1] == ("a", "b")
    for labels in ("ab", [0, 1], {"a", "b"}, {0: "a", 1: "b"}, ["a", None]):
        with pytest.raises(Mistake, match="give a list of names"):
            read_labels(config_of(num_labels=2), labels)  # type: ignore[arg-type]
    swapped = config_of(id2label={0: "neg", 1: "pos"}, label2id={"neg": 1, "pos": 0})
    with pytest.raises(Mistake, match=r"its label 0 'neg' \(id2label\), and gives 'neg' the number 1 \(label2id\)"):
        read_labels(swapped)
    assert read_labels(swapped, ["neg", "pos"])[1] == ("neg", "pos")
    stale = config_of(id2label={0: "neg", 1: "pos"}, label2id={"LABEL_0": 0, "LABEL_1": 1})
    assert read_labels(stale)[1] == ("neg", "pos")


@pytest.mark.parametrize(
    ("options", "given", "read"),
    [
        ({"num_labels": 2, "problem_type": "multi_label_classification"}, {}, torch.sigmoid),
        ({"num_labels": 1}, {}, lambda z: z),
        ({"num_labels": 1}, {"labels": ["no", "yes"]}, lambda z: torch.cat([(-z).sigmoid(), z.sigmoid()], -1)),
    ],
)
def test_predictions_of_every_link(options: dict[str, Any], given: dict[str, Any], read: Any) -> None:
    module, tokenizer = zoo.module("Bert", **options), zoo.tokenizer_of("Bert")
    made = wrap(module, tokenizer, **given)
    own = torch.cat([zoo.own_logits(module, tokenizer, text) for text in zoo.SOME])
    np.testing.assert_allclose(made.predict(zoo.SOME), read(own), atol=1e-5)


def test_weights_that_are_not_finite() -> None:
    module = zoo.module("Bert")
    with torch.no_grad():
        module.bert.embeddings.word_embeddings.weight[250, 0] = torch.nan  # a word that no sample has
    with pytest.raises(Mistake, match=r"word_embeddings.weight' hold numbers that are not finite"):
        wrap(module, zoo.tokenizer_of("Bert"))
    with torch.no_grad():  # finite, and too large for one text
        module.bert.embeddings.word_embeddings.weight.nan_to_num_(0.0)
        strange = int(zoo.tokenizer_of("Bert")("waste", add_special_tokens=False).input_ids[0])
        module.bert.embeddings.word_embeddings.weight[strange] = 1e30
    with pytest.raises(Mistake, match="answers a text with numbers that are not finite"):
        heedful.explain(wrap(module, zoo.tokenizer_of("Bert")), zoo.SOME, ["lrp"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_16_bits(dtype: torch.dtype) -> None:
    """Probabilities sum to 1, and explanations are those of the same weights in 32 bits, to what 16 can hold."""
    half = zoo.module("Bert").to(dtype)
    whole = wrap(copy_module.deepcopy(half).float(), zoo.tokenizer_of("Bert"))
    methods = ["gradient_x_input", "integrated_gradients", "lrp", "omission"]
    ours, theirs = (
        heedful.explain(made, zoo.TEXTS, methods, target=0) for made in (wrap(half, zoo.tokenizer_of("Bert")), whole)
    )
    for a, b in zip(ours, theirs, strict=True):
        assert a.probabilities.sum() == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose(a.probabilities, b.probabilities, atol=0.01)
        for name in methods:
            found, right = a.attribution(name).flat(), b.attribution(name).flat()
            np.testing.assert_allclose(found, right, atol=0.15 * np.abs(right).max(), err_msg=name)


def test_ones_own_module() -> None:
    """Not of transformers at all: ids and a mask in, logits out."""

    class Mine(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(zoo.N_IDS, 2)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            x = self.table(input_ids) * attention_mask.unsqueeze(-1)
            mean: torch.Tensor = x.sum(1) / attention_mask.sum(1, keepdim=True)
            return mean

    made = wrap(Mine(), zoo.tokenizer("wordpiece"), labels=["a", "b"])
    assert made.network.can == {"predicts"}
    assert made.predict(zoo.SOME).shape == (3, 2)
    without = made.predict([zoo.SOME[1].replace("best ", "")])
    told = heedful.explain(made, zoo.SOME, ["omission"], of="probability")[1].by_word()
    score = told.attribution("omission").flat()[told.passage.forms.index("best")]
    drop = (told.probabilities - without[0])[made.labels.index(told.predicted)]
    assert score == pytest.approx(drop, abs=1e-6)
    with pytest.raises(Mistake, match="has 2 logits, and 3 labels"):
        wrap(Mine(), zoo.tokenizer("wordpiece"), labels=["a", "b", "c"])

    class Unmasked(Mine):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return ids

    class Weightless(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return input_ids

    with pytest.raises(Mistake, match=r"Unmasked\.forward takes no attention_mask"):
        wrap(Unmasked(), zoo.tokenizer("wordpiece"), labels=["a", "b"])
    with pytest.raises(Mistake, match="Weightless has no weights"):
        wrap(Weightless(), zoo.tokenizer("wordpiece"), labels=["a", "b"])
    with pytest.raises(Mistake, match="query='no': it should be true or false"):
        wrap(Mine(), zoo.tokenizer("wordpiece"), labels=["a", "b"], query="no")  # type: ignore[arg-type]


def test_fingerprint(folder: Path, copy: Path) -> None:
    assert fingerprint(folder) == fingerprint(copy)
    (copy / "README.md").write_text("words")
    (copy / "training_args.json").write_text("{}")
    assert fingerprint(folder) == fingerprint(copy)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        before, old = fingerprint(copy), (copy / name).read_bytes()
        (copy / name).write_bytes(old[:-1] + b" ")
        assert fingerprint(copy) != before
        (copy / name).write_bytes(old)


STRANGERS: dict[str, dict[str, Any]] = {
    "odd labels": {"id2label": {0: "schlecht 👎", 1: "LABEL_1", 2: "<b>gut</b>"}},
    "several at once": {"num_labels": 3, "problem_type": "multi_label_classification"},
    "a number": {"num_labels": 1, "problem_type": "regression"},
    "two numbers": {"num_labels": 2, "problem_type": "regression"},
}
METHODS = ["gradient_x_input", "integrated_gradients", "lrp", "omission", "mask", "attention"]


@pytest.mark.parametrize("kind", list(STRANGERS))
def test_a_strangers_folder_is_explained(kind: str, tmp_path: Path) -> None:
    """Scores sum to what they should, and everything can be shown, saved and loaded."""
    made = tmp_path / "model"
    zoo.module("Bert", **STRANGERS[kind]).save_pretrained(made)
    zoo.tokenizer_of("Bert").save_pretrained(made)
    found = heedful.explain(made, zoo.SOME, METHODS, n_steps=40)
    for e in found:
        relevance = e.attribution("lrp")
        z = float(own_score(made, e.passage.text, e.labels.index(relevance.target)))
        assert relevance.special is not None
        assert relevance.rest is not None
        assert relevance.flat().sum() + relevance.special + relevance.rest == pytest.approx(z, abs=1e-5)
        check = e.attribution("integrated_gradients").check
        assert check is not None
        assert check.ok
    assert found.to_json() == type(found).from_json(found.to_json()).to_json()
    found.save(tmp_path / "why.parquet")
    assert type(found).load(tmp_path / "why.parquet") == found
    assert "special tokens" in found.to_html()
    assert "<b>gut</b>" not in found.to_html()
    p = np.stack([e.probabilities for e in found])
    np.testing.assert_allclose(p, heedful.load(made).predict(zoo.SOME), atol=1e-5)


@torch.no_grad()
def own_score(folder: Path, text: str, label: int) -> float:
    module: Any = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return float(module(**tokenizer(text, return_tensors="pt")).logits[0, label])


def test_a_text_of_5000_words_and_an_empty_one(folder: Path) -> None:
    long = " ".join(zoo.TEXTS[:3] * 180)
    made = heedful.load(folder)
    with pytest.warns(UserWarning, match="longer than the 64 tokens .* windows that overlap"):
        found = heedful.explain(made, [long], ["gradient_x_input", "lrp"])
    assert len(found[0].by_word().passage) > 5000
    relevance = found[0].attribution("lrp")
    assert relevance.check is not None
    assert relevance.check.ok
    assert np.count_nonzero(relevance.flat()) == len(relevance.flat())
    for empty in ("", " \n"):
        with pytest.raises(Mistake, match="text 2 has no words"):
            heedful.explain(made, ["good", empty], ["gradient"])


def test_a_folder_whose_tokenizer_has_no_offsets(copy: Path) -> None:
    for path in copy.glob("*token*"):
        path.unlink()
    kind: Any = transformers.CanineTokenizer
    kind().save_pretrained(copy)
    with pytest.raises(Mistake, match=r"CanineTokenizer is a tokenizer without offsets .*tokenizer\.json"):
        load(copy)
