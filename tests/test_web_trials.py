"""A checkpoint on one's own texts, in the server: words, not pieces; attention that can be moved, or not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import heedful
import transformer_zoo as zoo
from heedful.server.app import create_app
from heedful.server.stored.library import Library

TEXTS = ("a good film", "unbelievably bad film of all", "it is good of it", "bad bad film")


@pytest.fixture(scope="module", params=["Bert", "DebertaV2"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, str, str]:
    folder = tmp_path_factory.mktemp("trial")
    checkpoint = folder / "model"
    module = zoo.module(request.param)
    names = ("no", "yes", "perhaps")[: module.config.num_labels]
    module.config.id2label, module.config.label2id = (dict(enumerate(names)), {name: i for i, name in enumerate(names)})
    module.save_pretrained(checkpoint)
    zoo.tokenizer_of(request.param).save_pretrained(checkpoint)
    with (folder / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((text, ("no", "yes")[i % 2]) for i, text in enumerate(TEXTS))])
    heedful.run(
        "correlation", checkpoint, data=folder / "reviews.csv", runs=folder / "runs", pairs=[["attention", "omission"]]
    )
    (name,) = (path.name for path in (folder / "runs").iterdir() if not path.name.startswith("."))
    return TestClient(create_app(Library(folder / "runs")), base_url="http://localhost"), name, request.param


def ask(client: TestClient, address: str, **asked: Any) -> Any:
    found = client.post(address, json=asked, headers={"Accept": "application/json"})
    assert found.status_code == 200, found.text
    return found.json()


def test_pages_are_there(client: tuple[TestClient, str, str]) -> None:
    site, name, _ = client
    for page in ("/", f"/runs/{name}", f"/runs/{name}/correlation", f"/runs/{name}/examples/1?live=1"):
        found = site.get(page)
        assert found.status_code == 200, found.text
    assert "Open the playground" in site.get(f"/runs/{name}").text


def test_the_playground_shows_words(client: tuple[TestClient, str, str]) -> None:
    site, name, family = client
    told = ask(site, f"/runs/{name}/playground", text=TEXTS[1])
    words = [one["word"] for one in told["words"]]
    assert words == TEXTS[1].split()
    assert sum(told["probabilities"]) == pytest.approx(1)
    for said in told["attributions"]:
        assert len(said["scores"]["passage"]) == len(words)
    if family == "DebertaV2":
        assert told["attention"] == []
        refused = site.post(f"/runs/{name}/decode", json={"text": TEXTS[1], "weights": [1.0] * 5})
        assert refused.status_code == 422
        assert "cannot be asked under other attention weights" in refused.text
        return
    assert sum(told["attention"]) == pytest.approx(1)
    same = ask(site, f"/runs/{name}/decode", text=TEXTS[1], weights=told["attention"])
    assert same["distance"] == pytest.approx(0, abs=1e-9)
    apart = np.abs(np.array(same["probabilities"]) - told["probabilities"]).sum() / 2  # all heads as their mean
    assert same["change"] == pytest.approx(apart, abs=1e-5)
    moved = ask(site, f"/runs/{name}/decode", text=TEXTS[1], weights=[0, 0, 0, 0, 1])
    assert moved["change"] > 0
    other = ask(site, f"/runs/{name}/adversary", text=TEXTS[1])
    assert other["change"] <= 0.01 + 1e-6
    assert 0 <= other["distance"] <= other["bound"] + 1e-9


def test_labels_that_were_given_to_a_checkpoint_are_the_servers(tmp_path: Path) -> None:
    """One whose own are LABEL_0, LABEL_1: the folder holds what they were called, and the playground says it."""
    module = zoo.module("Bert")
    names = ["no", "yes", "perhaps"][: module.config.num_labels]
    module.config.id2label = {i: f"LABEL_{i}" for i in range(len(names))}
    module.config.label2id = {f"LABEL_{i}": i for i in range(len(names))}
    module.save_pretrained(tmp_path / "model")
    zoo.tokenizer_of("Bert").save_pretrained(tmp_path / "model")
    rows = "".join(f"{text},{names[i % 2]}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "reviews.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    few: dict[str, Any] = {"pairs": [["attention", "omission"]], "runs": tmp_path / "runs", "labels": names}
    heedful.run("correlation", tmp_path / "model", data=tmp_path / "reviews.csv", **few)
    (name,) = (path.name for path in (tmp_path / "runs").iterdir() if not path.name.startswith("."))
    site = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    for page in (f"/runs/{name}", f"/runs/{name}/correlation", f"/runs/{name}/playground"):
        found = site.get(page)
        assert found.status_code == 200, found.text
        assert "LABEL_" not in found.text
    told = ask(site, f"/runs/{name}/playground", text=TEXTS[1])
    assert "LABEL_" not in str(told)
    assert any(label in str(told) for label in names)
