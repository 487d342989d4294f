"""How often intervals hold the true value, as checks/coverage_of_intervals.py simulates it."""

from __future__ import annotations

import json
from pathlib import Path

from commands import script

SCRIPT = Path(__file__).parent.parent / "checks" / "coverage_of_intervals.py"


def coverage_of(*kinds: str, texts: int, repeats: int) -> dict[str, float]:
    """The share of samples of each kind whose name has one of these."""
    done = script(SCRIPT, "--json", "--repeats", str(repeats), "--sizes", str(texts), "--only", *kinds)
    assert done.returncode == 0, done.stderr
    return {kind: float(share[str(texts)]) for kind, share in json.loads(done.stdout).items()}
