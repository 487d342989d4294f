"""A real browser for tests: Debian's Chromium, headless and without a network.

Elsewhere than in continuous integration a missing browser skips the tests; there (CI is set) it fails them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
Scheme = Literal["light", "dark"]


def executable() -> str:
    """Where the browser is; skips, or in continuous integration fails, where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    try:
        import playwright  # noqa: F401
    except ImportError:
        missing = "the Python package playwright is not installed (pip install playwright)"
    else:
        if found is not None:
            return found
        missing = "there is no Chromium (apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(f"in continuous integration the browser tests must run: {missing}.")
    pytest.skip(f"{missing}.")


@contextmanager
def browser() -> Iterator[Browser]:
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@dataclass
class Opened:
    """A page, and everything it complained about or asked the network for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def ask(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    @property
    def sideways(self) -> int:
        """Pixels that the page is wider than its window."""
        return int(self.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@contextmanager
def opened(
    browser: Browser,
    address: str | Path,
    *,
    width: int = 1200,
    height: int = 900,
    scheme: Scheme = "light",
    offline: bool = True,
    ready: str | None = None,
) -> Iterator[Opened]:
    """Open a file from disk (or an address) and wait for the selector `ready`."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=offline)
    context.set_default_timeout(120_000)  # a busy machine is not a failure
    page = context.new_page()
    seen = Opened(page)
    page.on(
        "console",
        lambda message: seen.complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("dialog", lambda dialog: seen.complaints.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    try:
        page.goto(address.resolve().as_uri() if isinstance(address, Path) else address)
        if ready is not None:
            page.wait_for_selector(ready, state="attached", timeout=120_000)
        yield seen
    finally:
        context.close()


def until(page: Page, expression: str) -> None:
    """Wait until it is true. (Playwright's own wait_for_function needs eval, which our policy forbids.)"""
    deadline = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(30)
