"""What `heedful demo` asks: every question of the first paper, and two more. Data, like the studies in papers/."""

from __future__ import annotations

from collections.abc import Mapping

# Of how many texts; None: all. `faithfulness` edits each text many times, so it is asked of some. Whether attention
# finds the planted words is asked by the report, of the texts that it shows.
QUESTIONS: Mapping[str, int | None] = {
    "correlation": None,
    "permutation": None,
    "adversarial": None,
    "importance_sets": None,
    "faithfulness": 40,
}
KNOWN_WORDS = "evidence"  # the report's verdict on whether attention finds the words that are known to decide
