"""Which explainer to use, which not, and how sure that is, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from heedful.auditing.outcome.findings import ENOUGH, Answer, Behind, Gain, points
from heedful.auditing.outcome.standings import Standing, Standings, again
from heedful.explainers.attention import ATTENTION as WEIGHTS
from heedful.figures.figure import join_words, method_name

ATTENTION = WEIGHTS.name  # which has a sentence of its own: it is what the debate is about
ANSWERS: dict[Answer, str] = {
    "better": "yes",
    "no better": "no better than random",
    "worse": "worse than random",
    "cannot tell": "cannot tell",
}


def choose(standings: Standings) -> Standing | None:
    """The best of those that are better than random, unless another one is proved to be within the margin of it and has
    something that speaks for it (`advantage`). Seconds play no part: they differ from one audit to the next."""
    best = standings.best
    if best is None:
        return None
    others = [one for one in standings.within_margin() if advantage(one, best)]
    return min(others, key=trouble, default=best)


def trouble(one: Standing) -> tuple[bool, bool, float]:
    """Of several that have something that speaks for them, the one with the least of this is taken."""
    cost = one.explained.cost
    return one.torn, one.explained.broken, math.inf if cost is None else cost.passes


def advantage(one: Standing, best: Standing) -> str:
    """What speaks for one that is as good as the best: the first that differs, in words; empty where nothing does."""
    if one.torn != best.torn:
        return "" if one.torn else f"does not depend on how words are removed, as {method_name(best.method)} does"
    if one.explained.broken != best.explained.broken:
        if one.explained.broken:
            return ""
        if one.explained.keeps:
            return f"keeps its own checks, which {method_name(best.method)} does not"
    own, its = one.explained.cost, best.explained.cost
    if own is None or its is None or own.passes >= its.passes:
        return ""
    number = "1 pass" if own.passes == 1 else f"{own.passes:,} passes"
    return f"takes {number} instead of {its.passes:,}"


def recommend(standings: Standings) -> tuple[str, ...]:
    """Sentences, the most important first."""
    return tuple(_sentences(standings))


def _sentences(standings: Standings) -> Iterator[str]:
    if not standings.order:
        yield "None of the experiments that compare explainers applies to this model, so nothing can be recommended."
        return
    chosen, best = choose(standings), standings.best
    methods = [one for one in standings.order if one.explained.kind != "control"]
    if chosen is None or best is None:
        yield "None of these explainers was found to be better than a random order, so none can be recommended."
    else:
        yield f"Use {method_name(chosen.method)}: it gets {share(chosen.share)}, {sure(chosen.share)}."
        yield from _basis(standings, chosen, best)
        if chosen.explained.removal is not None:
            yield (
                f"{_Name(chosen)} itself removes words ({chosen.explained.removal}), which is what is measured here: "
                "a head start that the others do not have."
            )
        if chosen.explained.broken:
            yield f"It fails checks of its own: {'; '.join(c.told for c in chosen.explained.checks if not c.ok)}."
    behind = [one for one in standings.behind_best() if one is not chosen and one.method != ATTENTION]
    if best is not None and behind:
        told = join_words([f"{method_name(one.method)} ({_score(one)})" for one in behind])
        yield f"Better than random, but behind {method_name(best.method)}: {told}."
    yield from _attention(standings, chosen)
    for answer, said in (
        ("no better", "no better than a random order"),
        ("worse", "worse than a random order: the words it names matter less than words drawn at random"),
    ):
        found = [method_name(one.method) for one in methods if one.answer == answer and one.method != ATTENTION]
        if found:
            yield f"Do not use {join_words(found)}: {said}."
    untold = [one for one in methods if one.answer == "cannot tell" and one.method != ATTENTION]
    for n in dict.fromkeys(one.share.n for one in untold):
        yield _cannot_tell([one for one in untold if one.share.n == n])
    for one in methods:
        if one.torn:
            yield (
                f"The result for {method_name(one.method)} depends on how words are removed "
                f"({one.agreement}), so do not rely on it alone."
            )


def _basis(standings: Standings, chosen: Standing, best: Standing) -> Iterator[str]:
    """What the choice rests on: the highest share, or a proof; and who may be as good."""
    level, equal = standings.level_with_best(), standings.within_margin()
    better = [one for one in standings.order if one.explained.kind != "control" and one.answer == "better"]
    n, name, margin = best.share.n, method_name(best.method), points(standings.thresholds.margin)
    what = "mean" if math.isnan(best.share.worth) else "score"
    if chosen is not best and chosen.to_best is not None:
        yield (
            f"It scores within {margin} of {name} ({_score(best)}, the highest {what}; {_difference(chosen.to_best)}) "
            f"and {advantage(chosen, best)}."
        )
    elif len(better) > 1:
        yield f"Of the {len(better)} explainers that are better than random, it has the highest {what}."
    else:
        yield "It is the only one of these explainers that was found to be better than random."
    alike = [one for one in level if one in equal and one is not chosen]
    if alike:
        told = join_words([f"{method_name(one.method)} ({_versus(one)})" for one in alike])
        if chosen is best:
            yield (
                f"Shown to be within {margin} of it: {told}. None of these is known to take fewer passes without a "
                "weakness of its own (a check that it fails, an answer that depends on how words are removed)."
            )
        else:
            yield f"Also shown to be within {margin} of {name}: {told}."
    unsure = [one for one in level if one not in equal and one is not best]
    if unsure:
        told = join_words([f"{method_name(one.method)} ({_versus(one)})" for one in unsure])
        yield (
            f"These {n} texts are too few to say whether {told} {'is' if len(unsure) == 1 else 'are'} as good as "
            f"{name}."
        )
    if n < ENOUGH and len(better) > 1:
        yield f"This choice rests on only {n} texts; with others, another explainer may come first."


def _score(one: Standing) -> str:
    return f"{one.share.mean:.3g}" if math.isnan(one.share.worth) else percent(one.share.mean)


def _versus(one: Standing) -> str:
    return _score(one) if one.to_best is None else f"{_score(one)}; {_difference(one.to_best)}"


def _difference(behind: Behind) -> str:
    """ "difference 1, 95% CI -2 to 4", in points where it is one of shares."""

    def told(value: float) -> str:
        return f"{100 * value + 0.0:.0f}".replace("-0", "0") if behind.unit else f"{value:.3g}"

    ends = "" if math.isnan(behind.low) else f", 95% CI {told(behind.low)} to {told(behind.high)}"
    return f"difference {told(behind.difference)}{ends}"


def _attention(standings: Standings, chosen: Standing | None) -> Iterator[str]:
    one = standings.of(ATTENTION)
    if one is None or one is chosen:
        return
    if one.answer == "no better":
        yield f"Do not use attention as an explanation: it is no better than a random order ({share(one.share)})."
    elif one.answer == "worse":
        yield f"Do not use attention as an explanation: it is worse than a random order ({share(one.share)})."
    elif one.answer == "cannot tell":
        yield _cannot_tell([one])
    elif (best := standings.best) is not None and one in standings.behind_best():
        yield (
            f"Attention is better than a random order ({share(one.share)}), but behind {method_name(best.method)} "
            f"({_score(best)}; q = {q_value(one.behind)})."
        )


def _cannot_tell(some: Sequence[Standing]) -> str:
    """Of explainers that as many texts were asked about."""
    names, n = join_words([method_name(one.method) for one in some]), some[0].share.n
    are = "is" if len(some) == 1 else "are"
    if n == 0:
        return (
            f"Whether {names} {are} better than random cannot be said: these texts do not distinguish orders of words."
        )
    if n == 1:
        return f"One text is not enough to say whether {names} {are} better than random."
    needed = join_words(["more than can be had" if one.needed is None else f"{one.needed:,}" for one in some])
    about = "about " if needed[0].isdigit() else ""
    return (
        f"These {n} texts are too few to say whether {names} {are} better than random; {about}{needed} would be needed."
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
    return f"and is better than random on {gain.n} texts (q = {q_value(gain.q)})"


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
    ends = (
        shown(least) if shown(least) == shown(most) else f"{shown(least)} to {shown(most)} (depending on the explainer)"
    )
    what = "a score of" if shown is percent else "a gain over a random order of"
    return f"With this many texts, {what} {ends} would be told apart from zero in four audits out of five."


def sensitivity(standings: Standings) -> str:
    """Would the answers, or the choice, be others, with thresholds half or twice as high?"""
    own, used, chosen = again(standings, standings.thresholds), standings.thresholds, choose(standings)
    controls = {one.method for one in standings.order if one.explained.kind == "control"}
    changes = []
    for what, name in (("level", "a level of error"), ("negligible", "a negligible share"), ("margin", "a margin")):
        for factor in (0.5, 2.0):
            value = getattr(used, what) * factor
            other = replace(used, **{what: value})
            moved = [
                f"{method_name(method)} “{ANSWERS[answer]}”"
                for method, answer in again(standings, other).items()
                if answer != own[method] and method not in controls
            ]
            instead = choose(standings.at(other))
            if chosen is not None and instead is not None and instead.method != chosen.method:
                moved.append(f"{method_name(instead.method)} recommended")
            if moved:
                changes.append(f"with {name} of {value:g}: {join_words(moved)}")
    if not changes:
        return "With thresholds half or twice as high, every answer would be the same."
    return f"Other thresholds would change answers: {'; '.join(changes)}."
