"""The table of an audit: one line for each explainer, the same in the terminal, on the page and in a model card."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful.auditing.outcome.recommend import ANSWERS, percent, q_value
from heedful.auditing.outcome.standings import Standing
from heedful.figures.figure import method_name

if TYPE_CHECKING:
    from heedful.auditing.record import Audit

HEADER = ("method", "kind", "better than random?", "score (95% CI)", "checks", "cost per text")
MARKS = {"better": "✓", "no better": "✗", "worse": "✗", "cannot tell": "?"}
NONE = "–"


@dataclass(frozen=True, slots=True)
class Line:
    standing: Standing
    cells: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        one = self.standing
        cost = one.explained.cost
        return {
            "method": one.method,
            "kind": one.explained.kind,
            "answer": one.answer,
            "share": one.share.mean,
            "low": one.share.low,
            "high": one.share.high,
            "q": one.share.q,
            "texts": one.share.n,
            "effect_size": one.share.effect,
            "texts_needed": one.needed,
            "behind_best": None if one.to_best is None else one.to_best.difference,
            "behind_best_low": None if one.to_best is None else one.to_best.low,
            "behind_best_high": None if one.to_best is None else one.to_best.high,
            "behind_best_q": one.behind,
            "changes_with_operator": one.torn,
            "checks": "; ".join(check.told for check in one.explained.checks),
            "checks_kept": None if one.explained.unchecked else not one.explained.broken,
            "forward": None if cost is None else cost.forward,
            "backward": None if cost is None else cost.backward,
            "seconds": None if cost is None else cost.seconds,
        }


def cells(audit: Audit) -> Iterator[Line]:
    for one in audit.standings.order:
        yield Line(one, _cells(one))


def _cells(one: Standing) -> tuple[str, ...]:
    answer = f"{MARKS[one.answer]} {ANSWERS[one.answer]}"
    if one.answer in ("better", "worse"):
        answer += f" (q = {q_value(one.share.q)})"
    elif one.answer == "cannot tell" and one.needed is not None:
        answer += f" (about {one.needed:,} texts)"
    return (
        method_name(one.method),
        one.explained.kind,
        answer,
        _share(one),
        " · ".join(_checks(one)) or NONE,
        _cost(one),
    )


def _share(one: Standing) -> str:
    gain = one.share
    if math.isnan(gain.mean):
        return NONE
    if math.isnan(gain.worth):
        return f"{gain.mean:+.3g} ({gain.low:+.3g} to {gain.high:+.3g})"
    ends = "" if math.isnan(gain.low) else f" ({percent(gain.low)} to {percent(gain.high)})"
    return f"{percent(gain.mean)}{ends}"


def _checks(one: Standing) -> Iterator[str]:
    for check in one.explained.checks:
        yield f"{'✓' if check.ok else '✗'} {check.told}"
    if one.explained.unchecked:
        yield "? not checked"
    if one.torn:
        yield f"✗ changes with the operator: {one.agreement}"
    elif len(one.by_condition) > 1 and set(one.by_condition.values()) == {one.answer} != {"cannot tell"}:
        yield f"✓ the same under {len(one.by_condition)} operators"


def _cost(one: Standing) -> str:
    cost = one.explained.cost
    if cost is None:
        return NONE
    passes = [f"{cost.forward} forward"] if cost.forward else []
    passes += [f"{cost.backward} backward"] if cost.backward else []
    time = "" if math.isnan(cost.seconds) else f"{_milliseconds(cost.seconds)}"
    return ", ".join([*passes, *([time] if time else [])]) or NONE


def _milliseconds(seconds: float) -> str:
    return (
        f"{seconds:.1f} s"
        if seconds >= 1
        else f"{1000 * seconds:.2g} ms"
        if seconds < 0.1
        else f"{1000 * seconds:.0f} ms"
    )
