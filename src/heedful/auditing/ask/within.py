"""All questions of an audit within its time: explainers are put in order block by block, the others have what is left.

Every other question is first put to LEAST texts, the cheapest first, so that one that takes long starves none; what is
left of the time they share. None is asked about fewer texts than that: so few would not be told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heedful.auditing.ask.blocks import AuditBlocks, ask_in_blocks
from heedful.auditing.ask.plan import AuditPlan, Clock, cost_of, counted, importance
from heedful.auditing.ask.subject import Answered, AskedRows, AuditSubject
from heedful.auditing.outcome.budget import LEAST, PILOTS, WORK, Timing, next_texts
from heedful.auditing.outcome.standings import MethodFacts
from heedful.engine.running.processors import stopped_after
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.experiments import find

RANKING = 0.65  # of the time, for the experiments that put explainers in order; the rest is for all others


@dataclass(slots=True)
class AskedQuestions:
    """What came of it."""

    answers: dict[str, Answered] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # experiments, and why
    without: tuple[str, ...] = ()  # texts, and why
    pace: float = math.nan  # texts a minute that the order of explainers was asked about at the end
    looked: str = ""  # the experiment whose texts were asked about one block after the other


def ask_within(
    subject: AuditSubject, plan: AuditPlan, clock: Clock, known: Mapping[str, MethodFacts], progress: Progress
) -> AskedQuestions:
    """Those that put explainers in order have most of the time, and the others what these leave."""
    asked, places = AskedQuestions(without=plan.without), list(plan.places)
    ranking = [name for name in plan.experiments if importance(find(name)) == 0]
    others = [name for name in plan.experiments if name not in ranking]
    left = WORK * clock.budget
    for name in ranking:
        seconds = left * (RANKING if others else 1.0) / len(ranking)
        blocks = AuditBlocks(
            name, plan.experiments[name], places, {place: cost_of(subject, name, place) for place in places}
        )
        answer, why = ask_in_blocks(subject, blocks, known, seconds, clock, progress)
        if answer is None:
            asked.left_out[name] = why
            continue
        asked.answers[name], asked.looked = answer, asked.looked or name
        if slow := blocks.slow(seconds):
            places = [place for place in places if place not in slow]
            longest = max(len(subject.looked[place].passage) for place in slow)
            told = f"{counted(len(slow))} left out of this budget, the longest of {longest:,} words: each would take "
            asked.without += (f"{told}more than a tenth of its time",)
        usual = sorted(blocks.costs.values())[len(blocks.costs) // 2] * blocks.pace
        asked.pace = 60 / usual if usual > 0 else math.nan
        left -= answer.seconds
    ask_others(subject, plan, clock, others, places, min(left, clock.left), asked, progress)
    return asked


def ask_others(
    subject: AuditSubject,
    plan: AuditPlan,
    clock: Clock,
    names: Sequence[str],
    places: Sequence[int],
    left: float,
    asked: AskedQuestions,
    progress: Progress,
) -> None:
    """First each about LEAST texts, then about as many as fit, named ones first and then the cheapest."""

    def attempt(name: str, texts: int, seconds: float) -> AskedRows | None:
        """One experiment must not end the others, nor take their time: why it could not be asked is said."""
        try:
            with stopped_after(min(seconds, clock.left), clock.spent):
                return subject.rows(name, plan.experiments[name], sorted(places[:texts]))
        except Mistake as mistake:
            asked.left_out[name] = str(mistake)
        except Exception as error:
            asked.left_out[name] = f"it failed ({type(error).__name__}: {error})"
        return None

    rows: dict[str, AskedRows] = {}
    usual = sorted(places, key=lambda place: len(subject.looked[place].passage))[
        len(places) // 2 : len(places) // 2 + 1
    ]
    cheapest = sorted(names, key=lambda name: (name not in plan.named, [cost_of(subject, name, p) for p in usual]))
    for number, name in enumerate(cheapest):
        if (asked.answers or rows) and min(left, clock.left) <= 0:
            asked.left_out[name] = clock.spent
            continue
        fair = math.inf if name in plan.named or not (asked.answers or rows) else 2 * left / (len(cheapest) - number)
        for texts in dict.fromkeys(min(n, len(places)) for n in (LEAST, PILOTS[1])):  # not every text has evidence
            found = attempt(name, texts, fair)
            if found is not None:
                asked.left_out.pop(name, None)
                rows[name] = found
                left -= found.seconds
                break
            if asked.left_out[name] == clock.spent:
                few = min(LEAST, len(places))
                asked.left_out[name] = (
                    f"{few} texts do not fit into the time that is left for it: give more with --budget"
                )
                break
    by_time = sorted(rows, key=lambda name: (name not in plan.named, rows[name].seconds / rows[name].texts))
    for number, name in enumerate(by_time):
        spare = max(0.0, min(left, clock.left)) / (len(by_time) - number)
        found = rows[name]
        while (n := next_texts(Timing(found.texts, found.seconds), spare, len(places))) is not None:
            progress.say(f"{name}: {n:,} of {subject.size:,} texts")
            more = attempt(name, n, math.inf)
            if more is None:
                asked.left_out[name] = f"only {found.texts} texts: with {n}, {asked.left_out[name]}"
                break
            found, spare, left = more, spare - more.seconds, left - more.seconds
        try:
            asked.answers[name] = subject.answer(name, plan.experiments[name], found)
        except (Mistake, KeyError, ValueError, ArithmeticError) as error:
            asked.left_out[name] = f"its {found.texts} texts cannot be summed up ({error})"
