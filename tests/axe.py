"""axe-core, the accessibility checker, in a page of a browser: what it finds is a violation.

The script comes with the Python package axe-playwright-python. Elsewhere than in continuous integration a missing one
skips the tests; there (CI is set) it fails them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


def axe_script() -> str:
    found = find_spec("axe_playwright_python")
    if found is not None and found.origin is not None:
        return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    missing = "the Python package axe-playwright-python is not installed (pip install axe-playwright-python)."
    if os.environ.get("CI"):
        pytest.fail(f"in continuous integration the accessibility tests must run: {missing}")
    pytest.skip(missing)


def violations(page: Page, script: str, rules: Sequence[str] = ()) -> list[str]:
    """One line for each element that breaks a rule (of these): the rule, what it says, and the element."""
    page.evaluate(script)
    asked = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("async (asked) => (await axe.run(document, asked)).violations", asked)
    return [f"{v['id']}: {v['help']}: {n['html'][:160]}" for v in found for n in v["nodes"]]
