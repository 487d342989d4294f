"""The README's picture: a screenshot of the demo's report, docs/report.png.

python benchmarks/screenshot.py [REPORT.html] [docs/report.png]

Without a report, the demo is run first (in a temporary folder).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser import browser, opened

WIDTH, HEIGHT = 1200, 1500  # headline, facts, verdicts and the first words


def shoot(report: Path, picture: Path) -> None:
    with (
        browser() as started,
        opened(started, report, width=WIDTH, height=HEIGHT, ready="html[data-ready=yes]") as seen,
    ):
        picture.parent.mkdir(parents=True, exist_ok=True)
        seen.page.screenshot(path=str(picture))


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
