"""The text that a report opens with: what the page computes is what the model says, in a real browser, from disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import webruns
import zoo
from browser import browser, opened
from heedful.api import write_report
from heedful.api.pages import arithmetic_of
from heedful.engine.tasks.train import load
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.models.model import Model
from heedful.report.instances import measures
from heedful.report.opening import READABLE, typical
from heedful.report.page import page
from heedful.store.run import Run
from heedful.store.texts import read_texts
from material import illustrated

if TYPE_CHECKING:
    from playwright.sync_api import Browser

READY = "html[data-ready=yes]"
TEXTS = ("a good film that is warm", "unbelievably bad film of all films here", "it is good of it to be dull") * 3


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return webruns.make_run(tmp_path_factory.mktemp("runs"), "made-bilstm", webruns.examples(TEXTS), encoder="bilstm")


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    path = run.path.parent / "report.html"
    write_report([run], path)
    return path


def test_the_arithmetic_of_the_page_is_the_models(chromium: Browser, report: Path) -> None:
    """Linear readouts of one logit and of several, and readouts with a query, with and without candidates."""
    rng = np.random.default_rng(1)
    with opened(chromium, report, ready=READY) as page_seen:
        for task in zoo.TASK_NAMES:
            network, batch = zoo.network(task=task), zoo.batch([7, 4], task)
            seen, mask = PooledStates.observer(network)(np.arange(2), batch), batch.passage.mask
            alpha = torch.zeros(mask.shape, dtype=torch.float64)
            for row in range(2):
                alpha[row, mask[row]] = torch.as_tensor(rng.dirichlet(np.ones(int(mask[row].sum()))))
            with torch.no_grad():
                expected = network(batch, alpha=alpha).probabilities.tolist()
            for row in range(2):
                numbers, weights = seen.arithmetic(row), alpha[row, mask[row]].tolist()
                found = page_seen.ask(f"decodeAttention({json.dumps(numbers)}, {json.dumps(weights)})")
                assert found == pytest.approx(expected[row], abs=1e-6), task


def under(model: Model, text: Any, weights: list[float]) -> list[float]:
    """What the model itself says under these weights of the words."""
    batch = model.encode([text]).batch([0])
    alpha = torch.zeros(batch.passage.mask.shape)
    alpha[batch.passage.mask] = torch.tensor(weights, dtype=torch.float32)
    network: Any = model.network
    with torch.no_grad():
        found: list[float] = network(batch, alpha=alpha).probabilities[0].tolist()
    return found


def test_dragging_a_bar_says_what_the_model_says(chromium: Browser, report: Path, run: Run) -> None:
    model = load(run)
    with opened(chromium, report, ready=READY) as seen:
        panel = seen.page.locator(".opening.live")
        place = int(panel.locator(".sentence p").first.inner_text().split("text ")[1].split()[0])
        text = (read_texts(run.path, "test", [place]) or {})[place]
        chips = panel.locator(".chip")
        assert chips.count() == len(text.passage)

        def check() -> list[float]:
            weights: list[float] = json.loads(panel.get_attribute("data-weights") or "")
            shown = json.loads(panel.get_attribute("data-probabilities") or "")
            assert sum(weights) == pytest.approx(1, abs=1e-6)
            assert shown == pytest.approx(under(model, text, weights), abs=1e-4)
            for i, p in enumerate(shown):
                assert panel.locator(f"tr[data-label='{i}'] .number").inner_text() == f"{p:.2f}"
            assert panel.locator("[data-predicted]").inner_text() == model.labels[int(np.argmax(shown))]
            return weights

        own = check()
        assert own == pytest.approx(model_attention(model, text), abs=1e-6)
        box = chips.nth(2).locator("svg").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 1)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.2 * box["height"], steps=3)
        seen.page.mouse.up()
        assert check()[2] == pytest.approx(0.8, abs=0.03)
        assert "attention has moved" in panel.locator("[data-said]").inner_text()
        before = check()[2]
        seen.page.keyboard.press("ArrowDown")  # the word that was dragged has the focus
        assert check()[2] == pytest.approx(before - 0.05, abs=1e-6)
        seen.page.keyboard.press("ArrowRight")
        seen.page.keyboard.press("End")
        assert check()[3] == 1
        assert panel.locator(".chip[tabindex='0']").count() == 1
        for button in ("even", "shuffle", "other"):
            panel.locator(f"button[data-do={button}]").click()
            assert check() != own
        panel.locator("button[data-do=own]").click()
        assert check() == own
        assert seen.complaints == []


def model_attention(model: Model, text: Any) -> list[float]:
    batch = model.encode([text]).batch([0])
    network: Any = model.network
    with torch.no_grad():
        found: list[float] = network(batch).alpha[0][batch.passage.mask[0]].tolist()
    return found


def test_the_text_is_in_the_middle_of_all() -> None:
    """Its mean distance from the middle rank, over all measures, is the least: by counting."""
    subject = illustrated()
    values, _, predicted = measures(subject.findings.tables)

    def away(place: int) -> float:
        ranks = []
        for found in values.values():
            below = sum(other < found[place] for other in found.values())
            same = sum(other == found[place] for other in found.values())
            ranks.append(abs((below + below + same) / 2 / len(found) - 0.5))
        return sum(ranks)

    able = [
        place
        for place, example in subject.examples.items()
        if READABLE[0] <= len(example.passage) <= READABLE[1] and example.label == predicted[place]
    ]
    chosen = typical(subject.findings.tables, subject.examples)
    assert chosen in able
    assert away(chosen) == pytest.approx(min(map(away, able)))
    assert typical(subject.findings.tables, {}) is None


def test_a_model_that_cannot_be_asked_opens_with_the_scores(run: Run) -> None:
    subject = illustrated()
    assert subject.opening is not None
    made = page([replace(subject, opening=replace(subject.opening, arithmetic=None))])
    assert 'id="opening-0"' not in made
    assert 'class="chip"' not in made
    assert made.index('class="opening"') < made.index('class="headline"')
    model = load(run)
    assert arithmetic_of(model, webruns.examples(TEXTS)[0]) is not None
    assert "pools_by_attention" not in black_box().network.can
    assert arithmetic_of(black_box(), webruns.examples(TEXTS)[0]) is None


def black_box() -> Model:
    from heedful import wrap

    return wrap(lambda texts: np.full((len(texts), 2), 0.5), labels=["negative", "positive"])
