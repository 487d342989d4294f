"""What `heedful demo` leaves on the screen."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heedful.cli.demo import last_screen
from heedful.experiments.framework.verdict import Verdict, headline

WIDTH, MOST = 80, 12

# As the experiments of the demonstration said them of the default run.
CLAUSES = (
    "often finds the words that decide",
    "agrees with other explanations only in part",
    "moves the prediction somewhat when it is shuffled",
    "finds only some of the items that the decision rests on",
)
PLANTED = (
    "In this corpus the deciding words are known. The most attended word is one of them in 60% (95% CI 57% to 63%) of "
    "1,000 texts; a random word would be in 5%. The strongest word by other methods: leave-one-out 87%."
)


@pytest.mark.parametrize("rule", ["single", "negation"])
def test_the_last_screen_is_short_and_ends_with_the_report(rule: str) -> None:
    verdicts = [Verdict("?", "mixed", "Partly", "", "", clause) for clause in CLAUSES]
    run = SimpleNamespace(
        path=Path(f"runs/planted-{rule}-bilstm-additive-s0-c2adacf4"),
        summary=lambda name: {"accuracy": 0.962, "examples": 1000},
    )
    shown = SimpleNamespace(run=run, trained_on=4000, headline=headline(verdicts), planted=PLANTED)
    lines = last_screen(cast("Any", shown), rule, Path("heedful-demo.html"))
    assert sum(len(wrap(line, WIDTH)) for line in lines) <= MOST
    assert lines[-1].endswith(" heedful-demo.html")
    assert "right in 96.2% of 1,000" in lines[0]
    assert all(line[0].isupper() or line.startswith("heedful") for line in lines)
