"""The view of heads in a real browser: keyboard and mouse choose heads, change them, and the prediction follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webruns
from browser import Opened, opened, until
from browser import browser as chromium
from heedful.engine.tasks.train import load
from heedful.server.answer import run_address
from heedful.store.run import Run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXTS = ("a good film", "unbelievably bad film of all", "it is good of it", "bad bad film, a waste")
VIEW = ".heads-view canvas"


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return webruns.make_trial(tmp_path_factory.mktemp("heads"), "Bert", TEXTS)


@pytest.fixture(scope="module")
def address(trial: Run) -> Iterator[str]:
    with webruns.serve(trial.path.parent) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def chosen(seen: Opened) -> list[int]:
    found: list[int] = seen.ask(
        "(({ layer, head }) => [Number(layer), Number(head)])(document.querySelector('a.head[aria-current]').dataset)"
    )
    return found


def numbers(seen: Opened, name: str) -> list[float]:
    cells = seen.page.locator(f".heads-view [data-{name}]").all()
    return [float(cell.get_attribute(f"data-{name}") or "nan") for cell in cells]


def test_arrows_move_over_the_heads_and_the_matrix_follows(browser: Browser, address: str, trial: Run) -> None:
    model = load(trial)
    batch = model.encode(model.examples([TEXTS[1]])).batch([0])
    weights = model.network.attentions(batch)[0].double().numpy()  # type: ignore[attr-defined]
    place = run_address(trial.name, "attention", text=TEXTS[1], layer=0, head=0)
    with opened(browser, address + place, offline=False, ready=VIEW) as seen:
        assert seen.ask("[...document.querySelectorAll('a.head')].filter(a => a.tabIndex === 0).length") == 1
        seen.page.locator("a.head[aria-current]").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
            seen.page.keyboard.press(key)
        assert chosen(seen) == [1, 1]
        assert seen.ask("document.activeElement === document.querySelector('a.head[aria-current]')")
        seen.page.keyboard.press("ArrowDown")  # there is no layer below: nothing happens
        seen.page.keyboard.press("End")
        assert chosen(seen) == [1, 3]
        assert seen.page.locator("[data-title]").inner_text().startswith("Layer 1, head 3")
        shown = seen.ask(
            "[...document.querySelectorAll('table.matrix tbody tr')].map(r => [...r.cells].slice(1).map(c => c.title))"
        )
        found = np.array([[float(title.rsplit(" ", 1)[1]) for title in row] for row in shown])
        np.testing.assert_allclose(found, weights[1, 3], atol=5e-3)  # a byte of its square root, three digits
        said = seen.page.locator("[data-most]").inner_text()
        assert said.startswith("[CLS] looks most at")
        assert f"{weights[1, 3, 0].max():.2f}" in said
        summary = trial.summary("heads")["by_operation"]["uniform"]["heads"]
        (line,) = (one for one in summary if (one["layer"], one["head"]) == (1, 3))
        told = seen.page.locator('.head-worth tr[data-operation="uniform"] [data-mean]').inner_text()
        assert told == f"{line['mean']:.3f} ({line['low']:.3f} to {line['high']:.3f})"
        assert seen.complaints == []


def test_a_changed_head_moves_the_prediction_and_keeps_the_focus(browser: Browser, address: str, trial: Run) -> None:
    rows = [row for row in trial.results.rows("heads").to_pylist() if row["example"] == 3]
    place = run_address(trial.name, "attention", example=3, split="test")
    with opened(browser, address + place, offline=False, ready=VIEW) as seen:
        before = numbers(seen, "before")
        seen.page.locator('a.head[data-layer="1"][data-head="2"]').click()
        seen.page.get_by_role("link", name="Make this head uniform").press("Enter")
        until(seen.page, "document.querySelectorAll('a.head.uniform').length === 1")
        (row,) = (r for r in rows if (r["layer"], r["head"], r["operation"]) == (1, 2, "uniform"))
        assert numbers(seen, "before") == pytest.approx(before)
        moved = np.abs(np.array(numbers(seen, "after")) - before).sum() / 2
        assert moved == pytest.approx(row["tvd"], abs=1e-6)
        assert chosen(seen) == [1, 2]
        assert seen.ask("document.activeElement.textContent") == "Make this head uniform"
        assert "uniform=1.2" in seen.page.url
        seen.page.get_by_role("link", name="Make all of layer 1 uniform").click()
        until(seen.page, "document.querySelectorAll('a.head.uniform').length === 4")
        seen.page.get_by_role("link", name="Reset all heads").click()
        until(seen.page, "document.querySelectorAll('a.head.uniform').length === 0")
        assert numbers(seen, "after") == pytest.approx(before)
        seen.page.go_back()
        until(seen.page, "document.querySelectorAll('a.head.uniform').length === 4")
        assert seen.complaints == []


def test_the_playground_keeps_the_changed_heads_for_the_next_text(browser: Browser, address: str, trial: Run) -> None:
    with opened(browser, address + run_address(trial.name, "playground"), offline=False) as seen:
        seen.page.locator("#text").fill(TEXTS[0])
        seen.page.wait_for_selector("p[data-heads], .heads-view", state="attached")
        seen.page.locator("p[data-heads], .heads-view").scroll_into_view_if_needed()
        seen.page.wait_for_selector(VIEW)
        seen.page.locator('a.head[data-layer="0"][data-head="3"]').click()
        seen.page.get_by_role("link", name="Switch it off").click()
        until(seen.page, "document.querySelectorAll('a.head.off').length === 1")
        seen.page.locator("#text").fill(TEXTS[3])
        until(seen.page, "JSON.parse(document.querySelector('.prediction-view').dataset.source).text.startsWith('bad')")
        seen.page.locator("p[data-heads], .heads-view").scroll_into_view_if_needed()
        until(seen.page, "document.querySelectorAll('a.head.off').length === 1")
        (row,) = (
            r
            for r in trial.results.rows("heads").to_pylist()
            if (r["example"], r["layer"], r["head"], r["operation"]) == (3, 0, 3, "off")
        )
        moved = np.abs(np.array(numbers(seen, "after")) - numbers(seen, "before")).sum() / 2
        assert moved == pytest.approx(row["tvd"], abs=1e-6)
        assert seen.complaints == []


def test_the_instance_page_measures_heads_when_asked(browser: Browser, address: str, trial: Run) -> None:
    place = run_address(trial.name, "attention", text="what is the best of all")
    with opened(browser, address + place, offline=False, ready=VIEW) as seen:
        assert seen.page.locator("[data-here]").all_inner_texts() == ["–", "–"]
        seen.page.get_by_role("link", name="Measure all heads on this text").click()
        until(seen.page, "document.querySelector('[data-here]').textContent !== '–'")
        assert seen.complaints == []
    with opened(browser, address + run_address(trial.name, "examples", 1), offline=False) as seen:
        seen.page.wait_for_selector("p[data-heads], .heads-view", state="attached")
        seen.page.locator("p[data-heads], .heads-view").scroll_into_view_if_needed()
        seen.page.wait_for_selector(VIEW)
        assert "–" not in seen.page.locator("[data-here]").all_inner_texts()
        assert seen.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_text_on_a_phone(browser: Browser, address: str, trial: Run, scheme: str) -> None:
    hostile = "<img src=x onerror=alert(1)> </script> \u202egood\u202c \"'><b>bad</b> film"
    place = run_address(trial.name, "attention", text=hostile)
    with opened(browser, address + place, width=360, scheme=scheme, offline=False, ready=VIEW) as seen:  # type: ignore[arg-type]
        seen.page.locator("a.head").nth(5).click()
        assert seen.page.locator("main img, main script, main b:not(.mark)").count() == 0
        assert seen.sideways <= 0
        assert seen.complaints == []
        middle = seen.ask(
            "(c => [...c.getContext('2d').getImageData(0, 0, 1, 1).data])(document.querySelector('a.head canvas'))"
        )
        assert middle[3] == 255


def test_without_script_links_do_the_same(browser: Browser, address: str, trial: Run) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(address + run_address(trial.name, "attention", example=3, split="test"))
    page.locator('a.head[data-layer="1"][data-head="2"]').click()
    assert page.locator("[data-title]").inner_text().startswith("Layer 1, head 2")
    page.get_by_role("link", name="Make this head uniform").click()
    assert page.locator("a.head.uniform").count() == 1
    assert "1 of 8 heads changed" in page.locator("[data-changed]").inner_text()
    context.close()
