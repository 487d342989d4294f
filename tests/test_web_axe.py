"""axe-core finds nothing on any page of the server, nor on the report: light and dark, desktop and phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import webruns
from axe import axe_script, violations
from browser import Scheme, opened, until
from browser import browser as chromium
from heedful.report.page import page as report_page
from heedful.web.answer import run_address
from material import illustrated

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


@pytest.mark.parametrize("width", [1200, 375])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_violation(
    browser: Browser, address: str, trial: str, script: str, scheme: Scheme, width: int
) -> None:
    heads = {
        "heads": run_address(Path(trial).name, "attention", example=1, uniform="1", off="0.2"),
        "experiment of heads": run_address(Path(trial).name, "heads"),
    }
    found = {}
    for name, place in (PAGES | heads).items():
        with opened(browser, address + place, width=width, scheme=scheme, offline=False) as seen:
            until(seen.page, SETTLED)
            found[name] = violations(seen.page, script)
            assert seen.sideways <= 0, name
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("width", [1200, 375])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_has_no_violation(
    browser: Browser, tmp_path: Path, script: str, scheme: Scheme, width: int
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page([illustrated()]), encoding="utf-8")
    with opened(browser, path, width=width, scheme=scheme, ready="html[data-ready=yes]") as seen:
        assert violations(seen.page, script) == []
