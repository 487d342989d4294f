"""The page in a real browser, from disk, with the network off."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pytest

from browser import Opened, browser, opened, until
from heedful.report.page import figures, page
from heedful.report.words import words_by_label
from material import METHODS, illustrated

if TYPE_CHECKING:
    from playwright.sync_api import Browser

READY = "html[data-ready=yes]"
HISTOGRAM = "figure[data-figure=tau-attention-omission]"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page([illustrated()]), encoding="utf-8")
    return path


def unfold(seen: Opened) -> None:
    """Figures, examples and the filter stand behind "details"."""
    seen.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def test_from_disk_without_network_every_figure_is_drawn_and_nothing_complains(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, ready=READY) as seen:
        assert seen.complaints == []
        assert [address for address in seen.requests if not address.startswith(("file:", "data:"))] == []
        for name in figures(illustrated()):
            box = seen.page.locator(f"figure[data-figure={name}] svg").bounding_box()
            assert box is not None
            assert box["width"] > 200
            assert box["height"] > 100


def test_clicking_a_bar_or_a_point_filters_the_instances(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, ready=READY) as seen:
        status = seen.page.locator(".status")
        assert "60 of 60" in status.inner_text()
        unfold(seen)
        bars = seen.page.locator(f"{HISTOGRAM} .mark-rect path[aria-label]")
        tallest = max(range(bars.count()), key=lambda i: (bars.nth(i).bounding_box() or {"height": 0})["height"])
        texts = int(bars.nth(tallest).get_attribute("aria-label").split("texts: ")[1].split(";")[0])  # type: ignore[union-attr]
        bars.nth(tallest).click()
        assert status.inner_text() == f"{texts} of 60 texts"
        assert seen.page.input_value("select[name=measure]") == "tau:attention/omission"
        shown = seen.page.locator("ol.list li")
        assert shown.count() == min(texts, 8)
        assert seen.page.get_attribute("a.back", "href") == "#run-0-figure-tau-attention-omission"
        seen.page.click("button[type=reset]")
        until(seen.page, "document.querySelector('.status').textContent === '60 of 60 texts'")
        point = seen.page.locator("figure[data-figure=exact-adam] .mark-symbol.role-mark path").first
        point.click(force=True)
        until(seen.page, "document.querySelectorAll('ol.list li').length === 1")
        assert seen.complaints == []


def test_every_figure_can_be_saved(chromium: Browser, report: Path) -> None:
    """What the page gives to the browser. (A headless browser does not let a page save many files in a row.)"""
    keep = "HTMLAnchorElement.prototype.click = function () { given.push([this.download, this.href]); }"
    with opened(chromium, report, ready=READY) as seen:
        seen.ask(f"() => {{ window.given = []; {keep}; }}")
        unfold(seen)
        names = list(figures(illustrated()))
        for i, name in enumerate(names):
            seen.page.locator(f"figure[data-figure={name}] button[data-as=svg]").click()
            until(seen.page, f"given.length === {i + 1}")
            file, address = seen.ask("given.at(-1)")
            assert file == f"{name}.svg"
            kind, drawing = unquote(address).split(",", 1)
            assert kind == "data:image/svg+xml;charset=utf-8"
            assert drawing.startswith("<svg")
            assert "var(--" not in drawing
        seen.page.locator(f"figure[data-figure={names[0]}] button[data-as=png]").click()
        until(seen.page, f"given.length === {len(names) + 1}")
        file, address = seen.ask("given.at(-1)")
        assert file == f"{names[0]}.png"
        kind, image = address.split(",", 1)
        assert kind == "data:image/png;base64"
        assert b64decode(image).startswith(b"\x89PNG")
        assert seen.complaints == []


def test_the_filter_works_by_keyboard_and_tells_screen_readers(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, ready=READY) as seen:
        unfold(seen)
        seen.page.focus("select[name=outcome]")
        seen.page.keyboard.type("wrong")
        wrong = seen.page.locator("ol.list .wrong")
        assert wrong.count() == min(8, seen.page.locator("ol.list li").count()) > 0
        assert seen.page.get_attribute(".status", "aria-live") == "polite"
        unnamed = seen.ask(
            "[...document.querySelectorAll('button,input,select,.plot')]"
            ".filter(e => !(e.innerText || e.ariaLabel || e.labels?.length)).length"
        )
        assert unnamed == 0


def test_no_window_is_scrolled_sideways_and_paper_is_light(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, width=360, scheme="dark", ready=READY) as seen:
        for width in (360, 320, 768, 1200):
            seen.page.set_viewport_size({"width": width, "height": 800})
            seen.page.wait_for_timeout(200)
            assert seen.sideways == 0
        assert seen.ask("getComputedStyle(document.body).backgroundColor") == "rgb(27, 27, 27)"
        seen.page.emulate_media(media="print")
        assert seen.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not seen.page.locator("form.filter").is_visible()
        assert seen.page.pdf().startswith(b"%PDF")


def test_a_word_leads_to_the_texts_that_hold_it(chromium: Browser, report: Path) -> None:
    """Exactly those: as many as the table says, and the word itself, not a part of another ("a" in "warm")."""
    subject = illustrated()
    words = words_by_label(subject.counted, subject.counted_places)
    with opened(chromium, report, ready=READY) as seen:
        links = seen.page.locator("a[data-word]")
        assert links.count() == sum(len(one.relied) for one in words) > 0
        for i in range(links.count()):
            link = links.nth(i)
            word, label = link.get_attribute("data-word"), link.get_attribute("data-label")
            link.click()
            until(seen.page, f"document.querySelector('input[name=text]').value === '\\x22{word}\\x22'")
            listed = {
                place
                for place, example in subject.examples.items()
                if word in [form.lower() for form in example.passage.forms]
            }
            predicted = np.array(subject.findings.tables["permutation"]["predicted"])
            expected = [place for place in listed if predicted[place] == int(label or "")]
            assert seen.page.locator(".status").inner_text() == f"{len(expected)} of 60 texts"
        assert seen.page.get_attribute("a.back", "href") == "#words-0"
        assert seen.complaints == []


def test_few_methods_at_first_all_on_request(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, ready=READY) as seen:
        card = seen.page.locator("details.example").first
        shown = card.locator(".methods > .heedful:visible")
        assert shown.count() == 2
        button = seen.page.locator("button.all-methods")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert card.locator(".methods").first.locator("> .heedful:visible").count() == len(METHODS)


def test_a_touch_shows_what_a_resting_pointer_shows_and_the_page_is_short_on_a_phone(
    chromium: Browser, report: Path
) -> None:
    with opened(chromium, report, width=375, height=812, ready=READY) as seen:
        assert seen.ask("document.documentElement.scrollHeight") < 12_000
        word = seen.page.locator("details.example[open] .hf-text span[title]").first
        word.click()
        tip = seen.page.locator(".tip")
        assert tip.inner_text() == f"{word.inner_text()}: {word.get_attribute('title')}"
        seen.page.locator("h1").click()
        assert tip.count() == 0


def test_paper_has_how_each_verdict_is_judged_and_nothing_to_hover(chromium: Browser, report: Path) -> None:
    with opened(chromium, report, ready=READY) as seen:
        seen.page.emulate_media(media="print")
        seen.ask("dispatchEvent(new Event('beforeprint'))")
        text = seen.page.locator("body").inner_text()
        for verdict in illustrated().verdicts().values():
            assert verdict.rule in text
            assert verdict.sentence in text
        assert not re.search(r"\b[Hh]over|Drag|touch|Rest on|Choose a bar", text)
        assert seen.ask("[...document.querySelectorAll('figure svg')].every((one) => one.checkVisibility())")
        seen.ask("dispatchEvent(new Event('afterprint'))")
        seen.page.emulate_media(media="screen")
        assert seen.page.locator("details.more[open]").count() == 0


def test_a_hostile_corpus_executes_nothing(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page([illustrated(hostile=True)]), encoding="utf-8")
    with opened(chromium, path, width=360, ready=READY) as seen:
        unfold(seen)
        seen.page.locator(f"{HISTOGRAM} .mark-rect path[aria-label]").first.hover()
        seen.page.locator(f"{HISTOGRAM} .mark-rect path[aria-label]").first.click()
        assert seen.ask("window.hacked") is None
        assert seen.complaints == []
        assert seen.sideways == 0
        assert seen.ask("document.querySelectorAll('main img, main svg[onload]').length") == 0
