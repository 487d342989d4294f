"""axe-core finds nothing on any page of the server, nor on the report: light and dark, desktop and phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import webruns
from axe import axe_script, violations
from browser import browser as chromium
from browser import opened, until
from heedful.report.page import page as report_page
from heedful.server.answer import run_address
from material import illustrated

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

A, B = "made-average-additive-s0-1", "made-average-additive-s1-2"
TEXTS = ("a good film", "unbelievably bad film of all", "it is good of it", "bad bad film, a waste")
SETTLED = "!document.querySelector('.plot:not([data-drawn]), [data-live], [data-part], [data-refresh], [data-waiting]')"
PAGES = {
    "overview": "/",
    "list": "/?view=list",
    "compare": f"/compare?a={A}&b={B}",
    "run": run_address(A),
    "words": run_address(A, "words"),
    "correlation": run_address(A, "correlation"),
    "adversarial": run_address(A, "adversarial", label=1),
    "instance": run_address(A, "examples", 2),
    "playground": run_address(A, "playground", text="a good unknownword film"),
    "empty playground": run_address(A, "playground"),
    "mistake": "/runs/nobody",
}


@pytest.fixture(scope="module")
def script() -> str:
    return axe_script()


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = webruns.make_trial(tmp_path_factory.mktemp("trial"), "Bert", TEXTS)
    for name, seed in ((A, 0), (B, 1)):
        webruns.make_run(run.path.parent, name, webruns.examples(webruns.SENTENCES * 3), seed=seed)
    return str(run.path)


@pytest.fixture(scope="module")
def address(trial: str) -> Iterator[str]:
    with webruns.serve(Path(trial).parent) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def in_both_schemes(page: Page, script: str) -> list[str]:
    """What axe-core finds in a page that is open and light, and then in the dark, where only contrast can differ."""
    light = violations(page, script)
    page.emulate_media(color_scheme="dark")
    return light + violations(page, script, ["color-contrast"])


@pytest.mark.parametrize("width", [1200, pytest.param(375, marks=pytest.mark.long)])
def test_no_page_has_a_violation(browser: Browser, address: str, trial: str, script: str, width: int) -> None:
    heads = {
        "heads": run_address(Path(trial).name, "attention", example=1, uniform="1", off="0.2"),
        "experiment of heads": run_address(Path(trial).name, "heads"),
    }
    found = {}
    for name, place in (PAGES | heads).items():
        with opened(browser, address + place, width=width, offline=False) as seen:
            until(seen.page, SETTLED)
            found[name] = in_both_schemes(seen.page, script)
            assert seen.sideways <= 0, name
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("width", [1200, pytest.param(375, marks=pytest.mark.long)])
def test_the_report_has_no_violation(browser: Browser, tmp_path: Path, script: str, width: int) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page([illustrated()]), encoding="utf-8")
    with opened(browser, path, width=width, ready="html[data-ready=yes]") as seen:
        assert in_both_schemes(seen.page, script) == []


def test_contrast_is_looked_at_in_the_dark(browser: Browser, tmp_path: Path, script: str) -> None:
    """What is legible in the light only is found."""
    path = tmp_path / "page.html"
    dark = "@media (prefers-color-scheme: dark) { p { color: #111; background: #000 } }"
    head = f"<title>a page</title><style>{dark}</style>"
    path.write_text(f"<!doctype html><html lang=en>{head}<main><h1>a title</h1><p>some words</p></main>")
    with opened(browser, path, width=1200) as seen:
        (found,) = in_both_schemes(seen.page, script)
    assert found.startswith("color-contrast")
