"""The README's picture: a screenshot of the demo's report, docs/report.png.

python checks/screenshot.py [REPORT.html] [docs/report.png]

Without a report, the demo is run first (in a temporary folder).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1200, 1500  # headline, facts, verdicts and the first words


def shoot(report: Path, picture: Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=120_000)
        page.screenshot(path=str(picture))
        browser.close()


def main() -> None:
    given = [Path(argument) for argument in sys.argv[1:]]
    picture = given[1] if len(given) > 1 else Path(__file__).parent.parent / "docs" / "report.png"
    with tempfile.TemporaryDirectory() as folder:
        report = given[0] if given else Path(folder) / "demo.html"
        if not given:
            command = [sys.executable, "-c", "from heedful.cli import main; main()"]
            subprocess.run([*command, "demo", "--runs", folder, "-o", str(report)], check=True)
        shoot(report, picture)
    print(picture)


if __name__ == "__main__":
    main()
