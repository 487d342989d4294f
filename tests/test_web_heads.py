"""The server's view of heads: weights, changed heads and their worth, against the network asked by hand."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from starlette.testclient import TestClient
from torch import Tensor

import heedful
import webruns
from heedful.engine.tasks.train import load
from heedful.experiments import find
from heedful.models.model import Model
from heedful.server.app import create_app
from heedful.server.live import self_attention
from heedful.server.stored.library import Library
from heedful.store.run import Run

TEXTS = ("a good film", "unbelievably bad film of all", "it is good of it", "bad bad film, a waste")
LAYERS, HEADS = 2, 4  # of the zoo


@pytest.fixture(scope="module", params=["Bert", "GPT2"])  # reads its first place, or its last
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return webruns.make_trial(tmp_path_factory.mktemp("heads"), request.param, TEXTS)


@pytest.fixture(scope="module")
def client(trial: Run) -> TestClient:
    return TestClient(create_app(Library(trial.path.parent)), base_url="http://localhost")


@pytest.fixture(scope="module")
def model(trial: Run) -> Model:
    return load(trial)


def ask(client: TestClient, trial: Run, **asked: Any) -> Any:
    found = client.post(f"/runs/{trial.name}/attention?format=json", json=asked)
    assert found.status_code == 200, found.text
    return found.json()


def every_head(told: dict[str, Any]) -> NDArray[np.float64]:
    n = len(told["pieces"])
    roots = np.frombuffer(b64decode(told["every_head"]), dtype=np.uint8).astype(np.float64) / 255
    return roots.reshape(told["layers"], told["heads"], n, n) ** 2


def test_weights_are_those_of_the_model(client: TestClient, trial: Run, model: Model) -> None:
    batch = model.encode(model.examples([TEXTS[1]])).batch([0])
    weights = model.network.attentions(batch)[0].double().numpy()  # type: ignore[attr-defined]
    told = ask(client, trial, text=TEXTS[1], layer=1, head=2)
    assert (told["layers"], told["heads"]) == (LAYERS, HEADS)
    np.testing.assert_allclose(told["weights"], weights[1, 2], atol=1e-5)
    roots = np.sqrt(every_head(told)) - np.sqrt(weights.clip(0, 1))
    assert np.abs(roots).max() <= 0.5 / 255 + 1e-6
    assert len(told["pieces"]) == told["n_pieces"] == batch.passage.ids.shape[1]
    words = [piece["word"] for piece in told["pieces"]]
    index = batch.passage.word_index
    assert index is not None
    assert [word for word in words if word is not None] == index[0][batch.passage.mask[0]].tolist()
    joined = "".join(piece["text"].removeprefix("-") for piece in told["pieces"] if piece["word"] is not None)
    assert joined == TEXTS[1].replace(" ", "")
    assert told["before"] == told["after"]
    np.testing.assert_allclose(told["before"], model.predict([TEXTS[1]])[0], atol=1e-6)


@pytest.mark.parametrize("how", [{"uniform": ["0.3", "1"]}, {"off": ["1.1"], "uniform": ["0.0"]}])
def test_changed_heads_give_what_the_network_gives_under_them(
    client: TestClient, trial: Run, model: Model, how: dict[str, list[str]]
) -> None:
    batch = model.encode(model.examples([TEXTS[3]])).batch([0])
    seen = []

    def by_hand(layer: int, weights: Tensor) -> Tensor:
        changed = weights.clone()
        for operation, places in how.items():
            for place in places:
                of, _, head = place.partition(".")
                if int(of) != layer:
                    continue
                for one in [int(head)] if head else range(HEADS):
                    for to in range(weights.shape[2]):
                        may = [j for j in range(weights.shape[3]) if float(weights[0, :, to, j].max()) > 0]
                        changed[0, one, to] = 0.0
                        if operation == "uniform":
                            changed[0, one, to, may] = 1 / len(may)
        seen.append(changed[0])
        return changed

    with torch.no_grad():
        expected = model.network(batch, edit=by_hand).probabilities[0].double().numpy()
    told = ask(client, trial, text=TEXTS[3], **how)
    np.testing.assert_allclose(told["after"], expected, atol=1e-6)
    np.testing.assert_allclose(told["before"], model.predict([TEXTS[3]])[0], atol=1e-6)
    assert told["change"] == pytest.approx(np.abs(expected - np.array(told["before"])).sum() / 2, abs=1e-6)
    assert told["change"] > 1e-6
    roots = np.sqrt(every_head(told)) - np.sqrt(torch.stack(seen).numpy().clip(0, 1))
    assert np.abs(roots).max() <= 0.5 / 255 + 1e-6  # later layers as they are under the change
    changed = {(c["layer"], c["head"]): c["operation"] for c in told["changes"]}
    assert len(changed) == (5 if how.get("uniform") == ["0.3", "1"] else 2)


def test_methods_of_several_layers_are_offered_and_answered(client: TestClient, trial: Run, model: Model) -> None:
    names = ["rollout", "attention_flow", "attention_x_norm", "value_zeroing"]
    for page in ("playground", "examples/1"):
        assert all(f'value="{name}"' in client.get(f"/runs/{trial.name}/{page}").text for name in names)
    told = client.post(f"/runs/{trial.name}/playground?format=json", json={"text": TEXTS[1], "methods": names}).json()
    right = heedful.explain(model, [TEXTS[1]], names)[0].by_word()
    assert [each["method"] for each in told["attributions"]] == names
    for each in told["attributions"]:
        np.testing.assert_allclose(each["scores"]["passage"], right.attribution(each["method"]).flat(), atol=1e-6)


def test_worth_is_what_the_experiment_found(client: TestClient, trial: Run) -> None:
    rows = trial.results.rows("heads").to_pylist()
    summary = trial.summary("heads")["by_operation"]
    stored = ask(client, trial, example=2, split="test")["worth"]
    measured = ask(client, trial, text=TEXTS[2], measure="1")["worth"]
    assert len(stored) == len(measured) == 2 * LAYERS * HEADS
    for one, other in zip(stored, measured, strict=True):
        (row,) = (r for r in rows if r["example"] == 2 and all(r[k] == one[k] for k in ("layer", "head", "operation")))
        line = next(
            h for h in summary[one["operation"]]["heads"] if (h["layer"], h["head"]) == (one["layer"], one["head"])
        )
        assert one["here"] == row["tvd"]
        assert other["here"] == pytest.approx(row["tvd"], abs=1e-6)
        assert [one[k] for k in ("mean", "low", "high", "n")] == [line[k] for k in ("mean", "low", "high", "n")]
    alone = ask(client, trial, text=TEXTS[2], uniform=["1.3"])
    (of_it,) = (w for w in measured if (w["layer"], w["head"], w["operation"]) == (1, 3, "uniform"))
    assert alone["change"] == pytest.approx(of_it["here"], abs=1e-6)


def test_page_and_twin(client: TestClient, trial: Run) -> None:
    address = f"/runs/{trial.name}/attention?example=1&uniform=1&off=0.2&layer=1&head=3"
    page = client.get(address)
    assert page.status_code == 200, page.text
    told = client.get(f"{address}&format=json").json()
    assert len(told["changes"]) == HEADS + 1
    assert page.text.count('class="head') >= LAYERS * HEADS
    assert "with 5 of 8 heads changed" in page.text
    assert 'aria-label="layer 1, head 3, made uniform' in page.text
    for place in (f"/runs/{trial.name}/examples/1?live=1", f"/runs/{trial.name}/playground?text=good+film&live=1"):
        assert "Look inside: every head" in client.get(place).text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"uniform": ["9"]}, "this model has layers 0 to 1 of heads 0 to 3"),
        ({"off": ["0.4"]}, "this model has layers 0 to 1 of heads 0 to 3"),
        ({"off": ["x"]}, "is not a head"),
        ({"off": ["1.-1"]}, "is not a head"),
        ({"uniform": 7}, "list of heads"),
        ({"layer": 2}, "layer=2: it can be 0 to 1"),
        ({"head": "y"}, "head=y: it can be 0 to 3"),
        ({"window": 1}, "window=1: it can be 0 to 0"),
        ({"text": ""}, "there is no word in this text"),
        ({"text": None, "example": "1; drop"}, "an instance is named by"),
    ],
)
def test_mistakes_are_one_sentence(client: TestClient, trial: Run, asked: dict[str, Any], says: str) -> None:
    body = {name: value for name, value in ({"text": "good"} | asked).items() if value is not None}
    found = client.post(f"/runs/{trial.name}/attention", json=body)
    assert found.status_code == 422
    assert says in found.json()["error"]


def test_what_is_drawn_and_read_is_bounded(client: TestClient, trial: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_attention, "MOST_PIECES", 4)
    monkeypatch.setattr(self_attention, "MOST_READ", 100)
    text = "it is bad of all good time"
    told = ask(client, trial, text=text)
    assert len(told["pieces"]) == 4
    assert told["n_pieces"] > 4
    assert told["begin"] == (0 if trial.name.startswith("Bert") else told["n_pieces"] - 4)
    page = client.get(f"/runs/{trial.name}/attention", params={"text": text}).text
    assert "4 of" in page
    assert "pieces are drawn" in page
    refused = client.post(f"/runs/{trial.name}/attention", json={"text": text, "measure": "1"})
    assert refused.status_code == 504
    assert "reads this text 16 times" in refused.json()["error"]


def test_a_text_longer_than_the_model_reads_is_shown_in_windows(client: TestClient, trial: Run, model: Model) -> None:
    text = " ".join(["the best of all good things is a film of one dollar"] * 10)
    first = ask(client, trial, text=text)
    assert first["window"]["of"] > 1
    assert first["window"]["first"] == 0
    spans = []
    for number in range(first["window"]["of"]):
        told = ask(client, trial, text=text, window=number)
        assert told["n_pieces"] <= 64
        np.testing.assert_allclose(told["before"], model.predict([told["text"]])[0], atol=1e-6)
        spans.append((told["window"]["first"], told["window"]["last"]))
    covered = {word for begin, end in spans for word in range(begin, end)}
    assert covered == set(range(len(model.text.split(text))))
    assert "overlapping windows" in client.get(f"/runs/{trial.name}/attention", params={"text": text}).text
    live = client.get(f"/runs/{trial.name}/playground", params={"text": text, "live": 1})
    assert live.status_code == 200, live.text
    assert "This text has no attention that could be moved" in live.text


def test_weights_that_can_only_be_read_are_shown_and_not_changed(tmp_path: Path) -> None:
    trial = webruns.make_trial(tmp_path, "DebertaV2", TEXTS, "correlation", pairs=[["attention", "omission"]])
    client = TestClient(create_app(Library(trial.path.parent)), base_url="http://localhost")
    told = ask(client, trial, text="a good film")
    assert not told["editable"]
    assert told["worth"] == []
    assert np.array(told["weights"]).sum(1) == pytest.approx(1, abs=1e-3)
    assert "can be read but not changed" in client.get(f"/runs/{trial.name}/attention?text=good").text
    refused = client.post(f"/runs/{trial.name}/attention", json={"text": "good", "uniform": ["0"]})
    assert refused.status_code == 422
    assert "cannot be asked under other attention weights" in refused.json()["error"]


def test_our_own_transformer_encoder_shows_its_heads(tmp_path: Path) -> None:
    """Softmax and mixture by hand, block by block; without changes the classifier's own output to the last bit."""
    from heedful.models.attentive.classifier import AttentiveClassifier
    from heedful.models.attentive.encoder_heads import EncoderHeads, self_attending

    run = webruns.make_run(tmp_path, "own", webruns.examples(webruns.SENTENCES), encoder="transformer", experiments=[])
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    model = load(run)
    network = model.network
    assert isinstance(network, AttentiveClassifier)
    inside = self_attending(network)
    assert isinstance(inside, EncoderHeads)
    batch = model.encode(model.examples(["a waste of good time", "dull film"])).batch([0, 1])
    assert torch.equal(inside(batch).logits, network(batch).logits)
    with torch.no_grad():
        same = inside(batch, edit=lambda layer, weights: weights)
    torch.testing.assert_close(same.logits, network(batch).logits, atol=1e-5, rtol=1e-5)
    weights, states = inside.attentions(batch), inside.states(batch)
    present = batch.passage.present
    assert weights.sum(-1)[:, 0, 0].numpy() == pytest.approx(present.numpy().astype(float), abs=1e-5)
    block: Any = inside.encoder.blocks[1]
    qkv = block.project_in(block.norm_attention(states[:, 1]))
    n = qkv.shape[-1] // 3
    for head in range(block.heads):
        part = slice(head * n // block.heads, (head + 1) * n // block.heads)
        q, k = qkv[0, :, :n][:, part], qkv[0, :, n : 2 * n][:, part]
        for to in range(int(present[0].sum())):
            scores = torch.stack([(q[to] * k[j]).sum() / q.shape[1] ** 0.5 for j in range(int(present[0].sum()))])
            torch.testing.assert_close(weights[0, 1, head, to, : len(scores)], scores.softmax(0), atol=1e-5, rtol=1e-4)
    told = ask(client, run, text="dull film", layer=1, head=2, off=["0"])
    assert told["editable"]
    assert [piece["text"] for piece in told["pieces"]] == ["<s>", "dull", "film", "</s>"]
    with torch.no_grad():
        off = inside(batch.rows(torch.tensor([1])), edit=lambda i, w: torch.zeros_like(w) if i == 0 else w)
    np.testing.assert_allclose(told["after"], off.probabilities[0].double().numpy(), atol=1e-5)
    measured = ask(client, run, text="dull film", measure="1")["worth"]
    alone = ask(client, run, text="dull film", uniform=["1.2"])["change"]
    (worth,) = (w["here"] for w in measured if (w["layer"], w["head"], w["operation"]) == (1, 2, "uniform"))
    assert worth == pytest.approx(alone, abs=1e-6)
    assert "Look inside" in client.get(f"/runs/{run.name}/playground?text=good+film&live=1").text


def test_a_model_without_self_attention_refuses(tmp_path: Path) -> None:
    run = webruns.make_run(tmp_path, "made", webruns.examples(webruns.SENTENCES), experiments=[])
    client = TestClient(create_app(Library(tmp_path)), base_url="http://localhost")
    refused = client.post(f"/runs/{run.name}/attention", json={"text": "good"})
    assert refused.status_code == 422
    assert "the view of heads needs a model in whose layers every token attends" in refused.json()["error"]
    assert "Look inside" not in client.get(f"/runs/{run.name}/playground?text=good&live=1").text


def test_the_changes_of_a_batch_are_each_texts_own() -> None:
    """`change_heads` for several texts against one text at a time; nothing else of a layer moves."""
    from heedful.experiments.attention.head_changes import change_heads

    weights = torch.softmax(torch.randn(3, HEADS, 5, 5, generator=torch.Generator().manual_seed(0)), -1)
    asked: list[Any] = [{(0, 1): "off"}, {}, {(0, 0): "uniform", (0, 3): "off", (1, 2): "off"}]
    together = change_heads(asked)(0, weights)
    for i, changes in enumerate(asked):
        alone = change_heads([changes])(0, weights[i : i + 1])[0]
        assert torch.equal(together[i], alone)
    assert torch.equal(together[1], weights[1])
    assert torch.equal(together[2, 1:3], weights[2, 1:3])
    assert (together[0, 1] == 0).all()
    assert together[2, 0] == pytest.approx(0.2)
    assert change_heads(asked)(2, weights) is weights
    assert find("heads").needs == {"attends", "edits_attention"}


def test_the_view_opens_at_the_head_that_is_worth_most(
    client: TestClient, trial: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    told = ask(client, trial, example=1)
    worth = {(one["layer"], one["head"]): one["mean"] for one in told["worth"] if one["operation"] == "uniform"}
    best = max((one for one in told["worth"]), key=lambda one: one["mean"])
    assert (told["layer"], told["head"]) == (best["layer"], best["head"])
    assert len(worth) == LAYERS * HEADS
    assert (ask(client, trial, example=1, layer=0)["layer"], ask(client, trial, example=1, head=1)["head"]) == (0, 1)
    bare = webruns.make_trial(tmp_path_factory.mktemp("bare"), "Bert", TEXTS, "permutation")
    alone = TestClient(create_app(Library(bare.path.parent)), base_url="http://localhost")
    assert ask(alone, bare, text=TEXTS[0])["layer"] == 0  # nothing is known of any
    measured = ask(alone, bare, text=TEXTS[0], measure="1")
    best = max((one for one in measured["worth"]), key=lambda one: one["here"])
    assert (measured["layer"], measured["head"]) == (best["layer"], best["head"])
