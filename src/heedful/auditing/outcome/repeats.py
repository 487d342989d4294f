"""Would an audit of other texts recommend the same explainer? From draws of the texts that there are, with replacement.

In each draw every explainer has another share, and the choice is made again as `recommend.choose` makes it: the highest
of those that are better than random, or one that is still within the margin of it and has something that speaks for it.
An explainer that was asked about fewer texts, because it was decided, keeps those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from heedful.auditing.outcome.recommend import advantage, choose, trouble
from heedful.auditing.outcome.standings import Standing, Standings
from heedful.figures.figure import join_words, method_name

SELDOM = 0.05  # of repeats: what is rarer is not worth a name


def repeats(standings: Standings) -> dict[str, float]:
    """How often each explainer would be recommended, the most often first; empty where nothing is recommended."""
    best, drawn = standings.best, standings.drawn
    if best is None or best.method not in drawn:
        return {}
    better = [one for one in standings.order if one.explained.kind != "control" and one.answer == "better"]
    better = [one for one in better if one.method in drawn]
    shares = np.stack([drawn[one.method] for one in better])  # (methods, draws)
    found: Counter[str] = Counter()
    for column in shares.T:
        highest = int(column.argmax())
        within = [
            one
            for number, one in enumerate(better)
            if number != highest and _within(standings, one, float(column[highest] - column[number]))
        ]
        others = [one for one in within if advantage(one, better[highest])]
        found[min(others, key=trouble, default=better[highest]).method] += 1
    return {method: times / shares.shape[1] for method, times in found.most_common()}


def _within(standings: Standings, one: Standing, behind: float) -> bool:
    """Whether it would be proved to be within the margin, with an interval as wide as it is here."""
    here = one.to_best
    if here is None:  # it is the best here: as wide as the narrowest of the others
        known = [o.to_best for o in standings.order if o.to_best is not None and o.to_best.unit]
        here = min(known, key=lambda to: to.at_most - to.difference, default=None)
    if here is None or not here.within(np.inf):
        return False
    return behind + here.at_most - here.difference < standings.thresholds.margin


def told_of_repeats(standings: Standings) -> str:
    """The probability that an audit of other texts would recommend another one, in words; empty without a choice."""
    chosen, found = choose(standings), repeats(standings)
    if chosen is None or not found:
        return ""
    other = 1 - found.get(chosen.method, 0.0)
    if other < 0.01:
        return f"An audit of other texts, as many as these, would recommend {method_name(chosen.method)} again (99%)."
    return (
        f"An audit of other texts, as many as these, would recommend another explainer with a probability of about "
        f"{other:.0%}{_named(found, chosen.method)}."
    )


def _named(found: Mapping[str, float], chosen: str) -> str:
    some = [f"{method_name(name)} {part:.0%}" for name, part in found.items() if name != chosen and part >= SELDOM]
    return f" ({join_words(some)})" if some else ""
