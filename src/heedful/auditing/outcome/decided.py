"""What of an audit is decided, what is open, and what more time would buy."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from heedful.auditing.outcome.findings import LEVEL
from heedful.auditing.outcome.standings import Standing, Standings
from heedful.figures.figure import join_words, method_name

NAMED = 4  # explainers in a list, before it is cut


def still_open(standings: Standings) -> tuple[str, ...]:
    """The methods of which more texts would tell something: whether they are better than random, or whether they or
    the best are the one to use."""
    best, level = standings.best, standings.thresholds.level
    equal = {one.method for one in standings.within_margin()}

    def rivals(one: Standing) -> bool:
        behind = one.to_best is not None and one.to_best.low > 0 and one.to_best.q <= level
        return one.answer in ("better", "cannot tell") and not behind and one.method not in equal

    explainers = [one for one in standings.order if one.explained.kind != "control"]
    others = [one for one in explainers if one is not best and rivals(one)]
    found = [one.method for one in standings.order if one.answer == "cannot tell"]
    found += [one.method for one in others]
    if best is not None and any(one.answer == "better" for one in others):
        found.append(best.method)
    return tuple(dict.fromkeys(found))


def told(standings: Standings, pace: float) -> str:
    """How many are decided, at which error rate, and what the next minute would buy. `pace`: texts a minute."""
    methods = [one for one in standings.order if one.explained.kind != "control"]
    if not methods:
        return ""
    decided = [one for one in methods if one.answer != "cannot tell"]
    looked = any(one.share.looked for one in methods)
    how = ", however often one looks," if looked else ""
    said = (
        f"Decided against random: {len(decided)} of {len(methods)} explainers; of the answers{how} at most {LEVEL:.0%} "
        "are expected to be chance."
    )
    waiting = [one for one in methods if one.answer == "cannot tell"]
    if not waiting or math.isnan(pace):
        return said
    soon = [one for one in waiting if one.needed is not None and one.needed - one.share.n <= pace]
    more = (
        f"Another minute would ask about {pace:,.0f} more texts" if pace >= 1 else "Another minute is less than a text"
    )
    if soon:
        return f"{said} {more}, enough to expect an answer on {names(soon)}."
    known = [one.needed - one.share.n for one in waiting if one.needed is not None]
    if known and pace > 0:
        minutes = math.ceil(min(known) / pace)
        return f"{said} {more}; for the next answer about {minutes:,} minutes more are needed."
    return f"{said} {more}, too few to expect another answer."


def names(some: list[Standing]) -> str:
    shown = [method_name(one.method) for one in some[:NAMED]]
    return join_words([*shown, *([f"{len(some) - NAMED} more"] if len(some) > NAMED else [])])


def in_short(left_out: Mapping[str, str]) -> Iterator[str]:
    """What was left out, those of one reason together: "lime and shap: it takes long"."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, why in left_out.items():
        groups[re.split(r"[:(]", re.sub(rf"^{re.escape(name)}\b", "it", why))[0].strip()].append(name)
    for reason, some in groups.items():
        if len(some) == 1:
            yield f"{some[0]}: {left_out[some[0]]}"
            continue
        ask = {option for name in some for option in re.findall(rf"(--\w+) {re.escape(name)}", left_out[name])}
        yield f"{join_words(some)}: {reason}" + (f" (ask for one with {join_words(sorted(ask))} NAME)" if ask else "")
