"""`heedful serve` in a real browser: what is dragged, clicked and typed does what the Python API computes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch

import webruns
from browser import browser as chromium
from browser import until
from heedful.engine.tasks.train import load
from heedful.models import AttentiveClassifier
from heedful.server.answer import run_address
from heedful.store.run import Run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

RUN, EVIL, NLI = ("made-average-additive-s0-1", "<b>evil\"'-average-additive-s0-2", "pairs-average-additive-s0-3")
TEXT = "the film is not good but warm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    webruns.make_run(runs, RUN, webruns.examples(webruns.SENTENCES * 6))
    webruns.make_run(
        runs, EVIL, webruns.examples(webruns.HOSTILE), ("<i>no</i>", '"yes"'), dataset="<script>alert(9)</script>"
    )
    pairs = webruns.examples(webruns.SENTENCES, webruns.SENTENCES[::-1], 3)
    webruns.make_run(
        runs, NLI, pairs, ("no", "yes", "perhaps"), task="nli", dataset="pairs", experiments=["permutation"]
    )
    return runs


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with webruns.serve(folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose console must stay silent, where no dialog may open and nothing may be asked elsewhere."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(60_000)
    opened = context.new_page()
    complaints: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def on_dialog(dialog: Dialog) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def on_request(request: Request) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            complaints.append(request.url)

    opened.on("console", on_console)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", on_dialog)
    opened.on("request", on_request)
    yield opened
    context.close()
    assert complaints == []


def shown_weights(page: Page) -> list[float]:
    """The weights of the prediction that is on the page, once it stands still."""
    until(page, "document.querySelector('.prediction-view').dataset.shown !== undefined")
    page.wait_for_timeout(250)
    weights: list[float] = json.loads(page.locator(".prediction-view").get_attribute("data-shown") or "")
    return weights


def shown_probabilities(page: Page) -> dict[str, float]:
    rows = page.locator("tr[data-label]").all()
    return {
        row.locator("th").inner_text(): float(row.locator("[data-p]").get_attribute("data-p") or "") for row in rows
    }


def decoded(folder: Path, run: str, text: str, query: str | None, weights: list[float]) -> dict[str, float]:
    """What the Python API says under these weights."""
    model = load(Run(folder / run))
    batch = model.encode(model.examples([text], None if query is None else [query])).batch([0])
    with torch.no_grad():
        assert isinstance(model.network, AttentiveClassifier)
        alpha = torch.zeros_like(model.network(batch).alpha)
        alpha[batch.passage.mask] = torch.tensor(weights, dtype=torch.float32)
        p = model.network(batch, alpha=alpha).probabilities[0].tolist()
    return dict(zip(model.labels, p, strict=True))


@pytest.mark.parametrize(("run", "query"), [(RUN, None), (NLI, "it is funny")])
def test_dragging_attention_moves_the_prediction_to_what_the_api_computes(
    page: Page, address: str, folder: Path, run: str, query: str | None
) -> None:
    page.goto(address + run_address(run, "playground", text=TEXT, query=query))
    before = shown_probabilities(page)
    slider = page.locator('.weights li[data-i="3"] [data-weight]')
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    at = float(slider.input_value())
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * at, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2, steps=4)
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    weights = shown_weights(page)
    assert weights[3] > 0.8
    assert sum(weights) == pytest.approx(1)
    assert float(page.locator('.weights li[data-i="3"] [data-number]').input_value()) == pytest.approx(
        weights[3], abs=1e-3
    )
    after, expected = shown_probabilities(page), decoded(folder, run, TEXT, query, weights)
    assert after == pytest.approx(expected, abs=1e-6)
    assert after != pytest.approx(before, abs=1e-3)


def test_keyboard_and_number_field_move_attention_too(page: Page, address: str, folder: Path) -> None:
    page.goto(address + run_address(RUN, "playground", text=TEXT))
    field = page.get_by_label("attention of word 2 as a number")
    field.fill("0.6")
    weights = shown_weights(page)
    assert weights[1] == pytest.approx(0.6)
    assert shown_probabilities(page) == pytest.approx(decoded(folder, RUN, TEXT, None, weights), abs=1e-6)
    page.get_by_label("Move the attention").press("Home")  # to the end of the slider: shuffled
    until(page, "document.querySelector('[data-said]').textContent.startsWith('100 % of the way to the shuffled')")
    own = json.loads(page.locator(".prediction-view").get_attribute("data-attention") or "")
    assert sorted(shown_weights(page)) == pytest.approx(sorted(own), abs=1e-9)
    page.get_by_role("button", name="Back to the model's").press("Enter")
    until(page, "document.querySelector('[data-said]').textContent.startsWith('The model')")
    assert shown_weights(page) == pytest.approx(own, abs=1e-9)


def test_the_adversary_moves_attention_and_not_the_prediction(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN, "examples", 2))
    page.wait_for_selector(".prediction-view")  # the model was asked without a click
    before = shown_probabilities(page)
    page.get_by_role("button", name=re.compile("Find the attention")).click()
    until(page, "document.querySelector('[data-said]').textContent.includes('within ε')")
    weights = shown_weights(page)
    own = json.loads(page.locator(".prediction-view").get_attribute("data-attention") or "")
    assert np.abs(np.array(weights) - own).sum() > 0.5
    assert shown_probabilities(page) == pytest.approx(before, abs=0.0101)
    page.get_by_label("Colour the text by").select_option("omission")
    scores = json.loads(page.locator('[data-method="omission"]').get_attribute("data-scores") or "")
    strongest = page.locator(".attention .hf-text span[title]").nth(int(np.abs(scores).argmax()))
    assert re.fullmatch("hf-[pn]8", strongest.get_attribute("class") or "")


def test_deleting_and_replacing_a_word(page: Page, address: str, folder: Path) -> None:
    page.goto(address + run_address(RUN, "playground", text=TEXT))
    model = load(Run(folder / RUN))
    page.get_by_label("delete word 4, not").click()
    until(page, "document.getElementById('text').value === 'the film is good but warm'")
    expected = dict(zip(model.labels, model.predict(["the film is good but warm"])[0].tolist(), strict=True))
    assert shown_probabilities(page) == pytest.approx(expected, abs=1e-6)
    assert "Before the edit" in page.locator("[data-change]").inner_text()
    page.get_by_label("word 4", exact=True).fill("dull")
    page.get_by_label("word 4", exact=True).press("Enter")
    until(page, "document.getElementById('text').value === 'the film is dull but warm'")
    expected = dict(zip(model.labels, model.predict(["the film is dull but warm"])[0].tolist(), strict=True))
    assert shown_probabilities(page) == pytest.approx(expected, abs=1e-6)
    page.locator("#text").fill("charming")
    until(page, "document.querySelectorAll('.weights li').length === 1")
    assert "charming" in page.url


def test_back_returns_to_the_text_before(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN, "playground"))
    page.locator("#text").fill("a dull film")
    until(page, "document.querySelectorAll('.weights li').length === 3")
    page.get_by_label("delete word 2, dull").click()
    until(page, "document.getElementById('text').value === 'a film'")
    until(page, "location.search.includes('a+film')")
    page.go_back()
    until(page, "document.getElementById('text').value.trim() === 'a dull film'")
    until(page, "document.querySelectorAll('.weights li').length === 3")
    page.go_back()
    until(page, "document.getElementById('text').value.trim() === ''")
    assert page.locator(".weights").count() == 0
    page.go_forward()
    until(page, "document.querySelectorAll('.weights li').length === 3")


def test_the_focus_stays_after_an_edit(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN, "playground", text=TEXT))
    page.get_by_label("delete word 4, not").press("Enter")
    until(page, "document.getElementById('text').value === 'the film is good but warm'")
    until(page, "document.activeElement.getAttribute('aria-label') === 'delete word 4, good'")
    page.get_by_label("word 2", exact=True).fill("time")
    page.get_by_label("word 2", exact=True).press("Enter")
    until(page, "document.getElementById('text').value === 'the time is good but warm'")
    until(page, "document.activeElement.getAttribute('aria-label') === 'word 2'")
    page.get_by_label("delete word 6, warm").press("Enter")
    until(page, "document.activeElement.getAttribute('aria-label') === 'delete word 5, but'")
    page.goto(address + run_address(RUN, "examples", 1, live=1))
    page.get_by_label("LIME").press("Space")
    page.wait_for_selector("[data-method=lime]")
    assert page.evaluate("document.activeElement.value") == "lime"


BARS = ".figures figure:first-of-type .mark-rect path[aria-label]"


def drawn(page: Page) -> None:
    """Until every figure is there."""
    until(page, "document.querySelector('.plot') && !document.querySelector('.plot:not([data-drawn])')")


def test_clicking_a_bar_filters_the_instances(page: Page, address: str, folder: Path) -> None:
    page.goto(address + run_address(RUN, "adversarial"))
    drawn(page)
    bars = page.locator(BARS)
    found = [bars.nth(i).get_attribute("aria-label") or "" for i in range(bars.count())]
    counts = [int(re.findall(r"texts: (\d+)", said)[0]) for said in found]
    place = int(np.argmax(counts))
    bars.nth(place).click(force=True)
    page.wait_for_selector("#instances h2:has-text(' of 36 texts')")
    assert page.locator("#instances h2").inner_text().startswith(f"{counts[place]} of 36 texts")
    assert page.locator(".instances tbody tr").count() == min(counts[place], 25)
    asked = parse_qs(urlsplit(page.url).query)
    low, high = float(asked["low"][0]), float(asked["high"][0])
    values = [float(cell) for cell in page.locator(".instances tbody td:nth-child(3)").all_inner_texts()]
    assert all(low - 1e-3 <= value <= high + 1e-3 for value in values)
    labels = set(page.locator(".instances tbody td:nth-child(2)").all_inner_texts())
    assert len(labels) == 1
    assert f"predicted: {labels.pop()}" in found[place]
    drawn(page)
    page.locator(BARS).nth(place).click(force=True)  # again: it is let go
    page.wait_for_selector("#instances h2:has-text('All 36 texts')")
    page.go_back()
    page.wait_for_selector("#instances h2:has-text(' of 36 texts')")
    page.go_back()
    page.wait_for_selector("#instances h2:has-text('All 36 texts')")
    drawn(page)
    page.locator(".mark-symbol.role-mark path").first.click(force=True)
    page.wait_for_url("**/examples/*")


def test_a_box_selects_the_texts_with_such_attention(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN, "permutation"))
    drawn(page)
    box = page.locator(".figures figure:nth-of-type(2) .mark-rect path[aria-label]").first
    said = box.get_attribute("aria-label") or ""
    box.dispatch_event("click")
    page.wait_for_selector("#instances h2:has-text(' of 36 texts')")
    asked = parse_qs(urlsplit(page.url).query)
    assert {"alow", "ahigh", "label"} <= set(asked)
    texts = re.findall(r"texts: (\d+)", said)[0]
    assert page.locator("#instances h2").inner_text().startswith(f"{texts} of 36 texts")


def test_the_figures_of_the_report_select_texts_too(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN, "correlation"))
    drawn(page)
    figure = page.locator("[data-name=correlation-tau-attention-random]")
    bar = figure.locator(".mark-rect path[aria-label]").first
    texts = re.findall(r"texts: (\d+)", bar.get_attribute("aria-label") or "")[0]
    bar.click(force=True)
    page.wait_for_selector("#instances h2:has-text(' texts')")
    until(page, "location.search.includes('attention%2Frandom')")
    assert page.locator("#instances h2").inner_text().startswith(f"{texts} of 36 texts")
    assert page.locator("select[name=pair]").input_value() == "attention/random"


def test_without_script_the_bars_are_links(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.goto(address + run_address(RUN, "adversarial"))
    assert "Histogram of" in opened.locator(".plot").first.inner_text()
    opened.locator("details.bins summary").click()
    bars = opened.locator("details.bins ul:first-of-type a.bar")
    counts = [int(re.findall(r": (\d+) texts", text)[0]) for text in bars.all_inner_texts()]
    place = int(np.argmax(counts))
    bars.nth(place).click()
    assert opened.locator("#instances h2").inner_text().startswith(f"{counts[place]} of 36 texts")
    assert opened.locator(".instances tbody tr").count() == min(counts[place], 25)
    context.close()


@pytest.mark.parametrize("place", ["adversarial", "compare"])
def test_a_figure_can_be_saved(page: Page, address: str, place: str) -> None:
    page.goto(address + (run_address(RUN, place) if place != "compare" else f"/compare?a={RUN}&b={RUN}"))
    button = page.get_by_role("button", name=re.compile("Save as SVG")).first
    with page.expect_download() as saved:
        button.click()
    drawing = saved.value.path().read_text()
    assert drawing.startswith("<svg")
    assert "var(--" not in drawing
    assert "<a " not in drawing
    assert re.search(r'fill="#[0-9a-f]{6}"', drawing)
    with page.expect_download() as saved:
        page.get_by_role("button", name=re.compile("Save as PNG")).first.click()
    assert saved.value.suggested_filename.endswith(".png")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_the_run_page_says_what_the_model_relied_on(page: Page, address: str) -> None:
    page.goto(address + run_address(RUN))
    page.wait_for_selector(".relied table.words")  # asked without a click
    words = page.locator(".relied table.words tbody th").all_inner_texts()
    known = {word for text in webruns.SENTENCES for word in text.split()}
    assert words
    assert set(words) <= known


def test_a_hostile_corpus_executes_nothing(page: Page, address: str) -> None:
    pages = [
        "/",
        "/?view=list",
        run_address(EVIL),
        run_address(EVIL, "correlation"),
        run_address(EVIL, "words"),
        run_address(EVIL, "playground"),
    ]
    pages += [run_address(EVIL, "examples", i, live=1) for i in range(len(webruns.HOSTILE))]
    for place in pages:
        page.goto(address + place)
        assert page.locator("iframe, img, object, embed, main script, main style").count() == 0
        assert page.evaluate("document.scripts.length") == 3
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(address + run_address(EVIL, "playground"))
    for text in webruns.HOSTILE:
        page.locator("#text").fill(text[:5000])
        page.get_by_role("button", name="Explain").click()
        until(page, "document.getElementById('status').textContent.startsWith('answered')")
        page.evaluate("document.getElementById('status').textContent = ''")
        assert page.locator("iframe, img, main script").count() == 0
    page.get_by_role("button", name=re.compile("Find the attention")).click()
    until(page, "document.querySelector('[data-said]').textContent.includes('within ε')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(browser: Browser, address: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    for place in (
        "/",
        "/?view=list",
        "/compare",
        run_address(RUN),
        run_address(RUN, "correlation"),
        run_address(RUN, "words"),
        run_address(RUN, "examples", 1, live=1),
        run_address(NLI, "playground", text=TEXT, query="it is warm"),
        run_address(EVIL, "examples", 3, live=1),
    ):
        opened.goto(address + place)
        assert opened.evaluate("document.documentElement.scrollWidth") <= 360, place
    context.close()


def test_every_control_has_a_name(page: Page, address: str) -> None:
    """What a screen reader says of each control, and that the keyboard reaches the bars of a figure."""
    for place in (
        "/",
        run_address(RUN, "correlation"),
        run_address(RUN, "playground", text=TEXT),
        run_address(RUN, "examples", 1, live=1),
    ):
        page.goto(address + place)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a")]
              .filter((e) => !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim()))
              .map((e) => e.outerHTML)"""
        )
        assert nameless == []
    page.goto(address + run_address(RUN, "correlation"))
    page.locator("details.bins summary").press("Enter")
    assert "no texts" in page.locator("details.bins").inner_text()  # such bars are not tab stops
    assert page.locator("a.bar:has-text(': 0 texts')").count() == 0
    page.locator("a.bar").nth(2).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("a.bar[aria-current]")
    assert page.evaluate("document.activeElement.matches('a.bar[aria-current]')")
