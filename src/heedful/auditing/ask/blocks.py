"""The experiment that puts explainers in order, asked of one block of texts after another, for all explainers together.

Texts come in a random order that the seed fixes, each first under one way of removing words, so that a pass more buys
another text before it buys the same text again. After each block from the first look on (`outcome/sequences.py`) it is
seen what is decided: an explainer about which nothing is open is asked no further, and its part of the passes goes to
the others. What a text takes is part of the choice: one that would take a tenth of the time is left out, and said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heedful.auditing.ask.subject import Answered, AskedRows, AuditSubject
from heedful.auditing.outcome import sequences
from heedful.auditing.outcome.budget import in_time
from heedful.auditing.outcome.decided import still_open
from heedful.auditing.outcome.recommend import choose
from heedful.auditing.outcome.series import series_of
from heedful.auditing.outcome.standings import MethodFacts, Standings, rank
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.experiments import find
from heedful.figures.figure import join_words, method_name

if TYPE_CHECKING:
    import pyarrow as pa

FIRST, LARGEST = 2, 16  # texts of the first block, which has all the time that it takes; of the largest
BLOCK_TIME = 0.08  # of the time, that a block may take
TEXT_TIME = 0.1  # of the time, above which a text is left out
USUAL = 4.0  # times what a text takes in the median: longer ones wait until it is known what that is
FIRST_WORD = 50.0  # seconds, after which it is said who leads, whatever the number of texts
RECENT = 5  # blocks that say how long texts take
SELDOM = 1.1  # times as many texts, between two looks at many


@dataclass(slots=True)
class AuditBlocks:
    """What was asked so far."""

    name: str
    options: Mapping[str, Any]
    order: Sequence[int]  # of texts, by place
    costs: Mapping[int, float]  # of a text, in units of nobody's: only their ratios count
    done: dict[int, set[str]] = field(default_factory=dict)
    asked: list[AskedRows] = field(default_factory=list)
    paces: list[float] = field(default_factory=list)  # seconds a unit of cost, of each block

    @property
    def pace(self) -> float:
        """Of the last few blocks, the middle one: a busy moment of the machine says nothing about a text."""
        last = sorted(self.paces[-RECENT:])
        return last[(len(last) - 1) // 2] if last else math.nan

    @property
    def usual(self) -> float:
        """What a text costs in the median."""
        return sorted(self.costs[place] for place in self.order)[len(self.order) // 2]

    @property
    def setting(self) -> str | None:
        """The option that says how words are removed."""
        names = [one.setting for one in find(self.name).audit.measures if one.ranks]
        return next((name for name in names if name is not None and len(self.options.get(name, ())) > 1), None)

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("",) if self.setting is None else tuple(self.options[self.setting])

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.asked)

    @property
    def table(self) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([one.table.replace_schema_metadata(None) for one in self.asked])

    def rows(self) -> AskedRows:
        from heedful.engine.tasks.task import key_of

        keys = [one.key for one in self.asked]
        return AskedRows(self.table, len(self.done), self.seconds, key_of("blocks", keys) if all(keys) else "")

    def slow(self, seconds: float) -> list[int]:
        """Texts that would take too much of the time; nobody knows before the first block."""
        least = max(USUAL * self.usual, TEXT_TIME * seconds / self.pace if self.pace > 0 else math.inf)
        return [place for place in self.order if self.costs[place] > least]

    def next(self, seconds: float, left: float) -> tuple[str, list[int]] | None:
        """A way of removing words and the texts of a block; None where none fits into what is left."""
        if math.isnan(self.pace):
            first = [place for place in self.order if self.costs[place] <= USUAL * self.usual][:FIRST]
            return self.conditions[0], first
        slow = set(self.slow(seconds))
        times = {name: sum(name in said for said in self.done.values()) for name in self.conditions}
        for condition in sorted(self.conditions, key=lambda name: times[name]):
            new = [place for place in self.order if place not in self.done and place not in slow]
            again = [p for p in self.order if p in self.done and condition not in self.done[p] and p not in slow]
            block: list[int] = []
            spent, most = 0.0, min(left, BLOCK_TIME * seconds)
            for place in new or again:
                spent += self.costs[place] * self.pace
                if len(block) == LARGEST or spent > (left if not block else most):
                    break
                block.append(place)
            if block:
                return condition, block
        return None

    def ask(self, subject: AuditSubject, condition: str, block: Sequence[int], methods: Sequence[str]) -> None:
        options = dict(self.options)
        if self.setting is not None:
            options[self.setting] = (condition,)
        if "methods" in options:
            options["methods"] = [name for name in options["methods"] if name in methods]
        found = subject.rows(self.name, options, sorted(block))
        self.asked.append(found)
        for place in block:
            self.done.setdefault(place, set()).add(condition)
        self.paces.append(found.seconds / max(1e-9, sum(self.costs[place] for place in block)))


def ask_in_blocks(
    subject: AuditSubject,
    blocks: AuditBlocks,
    known: Mapping[str, MethodFacts],
    seconds: float,
    clock: Any,
    progress: Progress,
) -> tuple[Answered | None, str]:
    """The answer, and why there are not more texts in it; None: nothing could be asked. `clock`: of the audit."""
    from heedful.engine.running.processors import stopped_after

    methods = tuple(blocks.options.get("methods", ()))
    told, looked, why = False, 0, ""
    began = time.perf_counter()
    while True:
        left = min(seconds - blocks.seconds, clock.left) if blocks.asked else math.inf
        following = blocks.next(seconds, left)
        if following is None:
            break
        try:
            with stopped_after(left, clock.spent):
                blocks.ask(subject, *following, methods)
        except Mistake as mistake:
            why = str(mistake)
            break
        except Exception as error:
            why = f"it failed ({type(error).__name__}: {error})"
            break
        n = len(blocks.done)
        late = not told and time.perf_counter() - began > FIRST_WORD
        if (n >= sequences.LEAST and (n <= 4 * sequences.LEAST or n >= SELDOM * looked)) or late:
            looked = n
            standings = standings_so_far(blocks, known)
            if not told or n >= 2 * sequences.LEAST:
                progress.say(leads(standings, n, blocks.seconds))
                told = True
            if n >= sequences.LEAST and bounded(blocks):
                methods = tuple(name for name in methods if name in still_open(standings))
                if not [name for name in methods if known[name].kind != "control"]:
                    break
    if not blocks.asked:
        return None, why
    return subject.answer(blocks.name, blocks.options, blocks.rows()), why


def bounded(blocks: AuditBlocks) -> bool:
    """Whether there are methods to leave out."""
    return "methods" in blocks.options


def standings_so_far(blocks: AuditBlocks, known: Mapping[str, MethodFacts]) -> Standings:
    measures = tuple(one for one in find(blocks.name).audit.measures if one.ranks)
    return rank(series_of(blocks.name, measures, blocks.table), known, looked=blocks.name)


def leads(standings: Standings, n: int, seconds: float) -> str:
    """Who would be recommended now, in a line."""
    methods = [one for one in standings.order if one.explained.kind != "control"]
    decided = sum(one.answer != "cannot tell" for one in methods)
    chosen = choose(standings)
    if chosen is not None:
        who = f"use {method_name(chosen.method)}"
    else:
        highest = join_words([method_name(one.method) for one in methods[:1]])
        who = f"none is known to be better than random yet; {highest} has the highest share"
    return f"after {n} texts ({in_time(seconds)}): {who}; {decided} of {len(methods)} decided against random"
