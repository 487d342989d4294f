"""Which explainer to use, which not, and how sure that is, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from heedful.auditing.findings import Answer, Gain, Thresholds
from heedful.auditing.standings import Standing, Standings, again
from heedful.figures.names import join_words, method_name

ATTENTION = "attention"
ANSWERS: dict[Answer, str] = {
    "better": "yes",
    "no better": "no better than random",
    "worse": "worse than random",
    "cannot tell": "cannot tell",
}


def choose(standings: Standings) -> Standing | None:
    """Of those that cannot be told from the best: one that keeps its promises, then the one of fewest passes."""
    return min(standings.level_with_best(), key=_trouble, default=None)


def _trouble(one: Standing) -> tuple[bool, bool, float]:
    cost = one.explained.cost
    broken = any(not check.ok for check in one.explained.checks)
    return one.torn, broken, math.inf if cost is None else cost.passes


def recommend(standings: Standings) -> tuple[str, ...]:
    """Sentences, the most important first."""
    return tuple(_sentences(standings))


def _sentences(standings: Standings) -> Iterator[str]:
    if not standings.order:
        yield "No experiment that compares explainers could be asked of this model: nothing can be recommended."
        return
    chosen, level = choose(standings), standings.level_with_best()
    methods = [one for one in standings.order if one.explained.kind != "control"]
    if chosen is None:
        yield "None of these explainers was found to be better than a random order: none can be recommended."
    else:
        yield f"Use {method_name(chosen.method)}: it gets {share(chosen.share)}, {sure(chosen.share)}."
        others = [one for one in level if one is not chosen]
        if others:
            yield _level(chosen, others)
        if chosen.explained.removal is not None:
            yield (
                f"{_Name(chosen)} itself removes words ({chosen.explained.removal}), which is what is measured here: "
                "a head start that the others do not have."
            )
        if any(not check.ok for check in chosen.explained.checks):
            yield f"Mind its own checks: {'; '.join(c.told for c in chosen.explained.checks if not c.ok)}."
    behind = [
        one for one in methods if one.answer == "better" and one not in level and one.method != ATTENTION
    ]
    if chosen is not None and behind:
        best = next(one for one in methods if one.behind is None)
        told = join_words([f"{method_name(one.method)} ({percent(one.share.mean)})" for one in behind])
        yield f"Better than random, but behind {method_name(best.method)}: {told}."
    yield from _attention(standings, chosen)
    for answer, said in (
        ("no better", "no better than a random order"),
        ("worse", "worse than a random order: the words it names matter less than words drawn at random"),
    ):
        found = [
            method_name(one.method) for one in methods if one.answer == answer and one.method != ATTENTION
        ]
        if found:
            yield f"Do not use {join_words(found)}: {said}."
    untold = [one for one in methods if one.answer == "cannot tell" and one.method != ATTENTION]
    for n in dict.fromkeys(one.share.n for one in untold):
        yield _cannot_tell([one for one in untold if one.share.n == n])
    for one in methods:
        if one.torn:
            yield (
                f"What is said of {method_name(one.method)} depends on how words are removed "
                f"({one.agreement}): do not rest on it alone."
            )


def _level(chosen: Standing, others: Sequence[Standing]) -> str:
    told = join_words([f"{method_name(one.method)} ({percent(one.share.mean)})" for one in others])
    cheapest = _trouble(chosen)[2] <= min(_trouble(one)[2] for one in others)
    why = (
        "none takes fewer passes"
        if cheapest
        else "of those that keep their own checks none takes fewer passes"
    )
    return f"With these texts {told} cannot be told from it; {why}."


def _attention(standings: Standings, chosen: Standing | None) -> Iterator[str]:
    one = standings.of(ATTENTION)
    if one is None or one is chosen:
        return
    if one.answer == "no better":
        yield f"Do not take attention for an explanation: it is no better than a random order ({share(one.share)})."
    elif one.answer == "worse":
        yield f"Do not take attention for an explanation: it is worse than a random order ({share(one.share)})."
    elif one.answer == "cannot tell":
        yield _cannot_tell([one])
    elif one not in standings.level_with_best():
        best = next(other for other in standings.order if other.behind is None)
        yield (
            f"Attention is better than a random order ({share(one.share)}), and behind {method_name(best.method)} "
            f"({percent(best.share.mean)}; q = {q_value(one.behind)})."
        )


def _cannot_tell(some: Sequence[Standing]) -> str:
    """Of explainers that as many texts were asked about."""
    names, n = join_words([method_name(one.method) for one in some]), some[0].share.n
    they = "it is" if len(some) == 1 else "they are"
    if n == 0:
        return f"Of {names} it cannot be told whether {they} better than random: none of these texts tells."
    if n == 1:
        return f"Of {names} it cannot be told from one text whether {they} better than random."
    needed = join_words(["more than can be had" if one.needed is None else f"{one.needed:,}" for one in some])
    about = "about " if needed[0].isdigit() else ""
    return (
        f"Of {names} it cannot be told with these {n} texts whether {they} better than random; "
        f"{about}{needed} would be needed."
    )


def _Name(one: Standing) -> str:
    name = method_name(one.method)
    return name[:1].upper() + name[1:]


def share(gain: Gain) -> str:
    """ "62% (95% CI 55% to 69%) of the way from a random order to the best order found"."""
    if math.isnan(gain.worth):
        return f"{gain.mean:.3g} (95% CI {gain.low:.3g} to {gain.high:.3g}) more than a random order"
    ends = "" if math.isnan(gain.low) else f" (95% CI {percent(gain.low)} to {percent(gain.high)})"
    return f"{percent(gain.mean)}{ends} of the way from a random order to the best order found"


def sure(gain: Gain) -> str:
    return f"which is better than random on {gain.n} texts (q = {q_value(gain.q)})"


def percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value + 0.0:.0%}".replace("-0%", "0%")


def q_value(q: float | None) -> str:
    if q is None or math.isnan(q):
        return "–"
    return f"{q:.3f}" if q >= 0.001 else f"{q:.1g}"


def power(standings: Standings) -> str:
    """What these texts could have shown, from how much the explainers differ between them."""
    known = [one.share for one in standings.order if one.explained.kind != "control" and one.share.n > 1]
    if not known:
        return ""
    least, most = (end(gain.detectable(standings.thresholds) for gain in known) for end in (min, max))
    shown = percent if not math.isnan(known[0].worth) else "{:.2g}".format
    ends = shown(least) if shown(least) == shown(most) else f"{shown(least)} to {shown(most)}, by explainer"
    what = "of the possible" if shown is percent else "more than a random order"
    return f"With these texts {ends} {what} would be told from nothing in four audits of five."


def sensitivity(standings: Standings) -> str:
    """Would the answers be others, with thresholds half or twice as high?"""
    own, used = again(standings, standings.thresholds), standings.thresholds
    changes = []
    for what, name in (("level", "a level of error"), ("negligible", "a negligible share")):
        for factor in (0.5, 2.0):
            value = getattr(used, what) * factor
            other = Thresholds(**{"level": used.level, "negligible": used.negligible} | {what: value})
            moved = [
                f"{method_name(method)} “{ANSWERS[answer]}”"
                for method, answer in again(standings, other).items()
                if answer != own[method]
            ]
            if moved:
                changes.append(f"with {name} of {value:g}: {join_words(moved)}")
    if not changes:
        return "With thresholds half or twice as high every answer would be the same."
    return f"Other thresholds would change answers: {'; '.join(changes)}."
