"""Bars: what an audit has to reach, in words that a machine can check.

faithfulness(lrp).comprehensiveness >= 0.2          the mean over the texts
faithfulness(lrp, mask).comprehensiveness >= 0.2    under one condition; without, under the first
faithfulness(lrp).comprehensiveness.low >= 0.1      the lower end of its 95% interval
correlation.attention/omission.overall.tau.mean > 0.3   a number of an experiment's summary
performance.accuracy >= 0.9                         a score of the model
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.auditing.outcome.findings import Finding
from heedful.errors import Mistake, one_of
from heedful.experiments import EXPERIMENTS
from heedful.experiments.framework.description import number_at
from heedful.registry import EXPLAINERS

PERFORMANCE = "performance"
EXAMPLE = "faithfulness(lrp).comprehensiveness >= 0.2"
FORM = re.compile(
    r"\s*(?P<experiment>\w+)\s*(?:\(\s*(?P<method>[^(),]*?)\s*(?:,\s*(?P<condition>[^(),]*?)\s*)?\))?"
    r"\s*\.\s*(?P<statistic>[^<>=!≥≤]+?)\s*(?P<sign>[<>=!≥≤]+)\s*(?P<bar>\S*)\s*"
)
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
SPELLINGS = {"≥": ">=", "≤": "<="}
# What a finding tells beside its mean, by the name behind a second dot.
PARTS: dict[str, Callable[[Finding], float]] = {
    "value": lambda found: found.value.value,
    "low": lambda found: found.value.low,
    "high": lambda found: found.value.high,
    "chance": lambda found: found.chance,
    "gain": lambda found: found.gain.mean,
    "share": lambda found: found.share.value,
    "p": lambda found: found.gain.p,
    "q": lambda found: found.gain.q,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    text: str  # as it was typed
    experiment: str
    method: str | None
    condition: str | None
    statistic: str  # of a method: a measure's name; else a path into the summary
    part: str
    sign: str
    bar: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """A bar, what was found, and whether it is met. `note` says why nothing was found, or how near it was."""

    bar: Requirement
    value: float | None
    met: bool
    note: str = ""

    @property
    def sentence(self) -> str:
        if self.value is None:
            return f"{self.bar.text}: not measured: {self.note}"
        told = f"{self.bar.text}: {'met' if self.met else 'missed'}, it is {self.value:.4g}"
        return f"{told} {self.note}".strip() + "."


def parse_bar(text: str) -> Requirement:
    """Names are checked at once: a bar with a slip is found before anything is computed."""
    form = FORM.fullmatch(text)
    if form is None:
        raise Mistake(f"--require {text!r}: expected EXPERIMENT(method).statistic >= NUMBER, for example {EXAMPLE!r}.")
    sign = SPELLINGS.get(form["sign"], form["sign"])
    if sign not in SIGNS:
        raise Mistake(f"--require {text!r}: use one of the signs {', '.join(SIGNS)}, not {form['sign']!r}.")
    try:
        bar = float(form["bar"])
    except ValueError:
        bar = math.nan
    if not form["bar"]:
        raise Mistake(f"--require {text!r}: a number is missing after {form['sign']}.")
    if not math.isfinite(bar):
        raise Mistake(f"--require {text!r}: {form['bar']!r} is not a number; write one to compare with, like 0.2.")
    experiment, method, statistic, part = form["experiment"], form["method"], form["statistic"], "value"
    if method is None:
        if experiment != PERFORMANCE:
            _among("experiment", experiment, [*EXPERIMENTS, PERFORMANCE], text)
        measured = _measured(experiment) if experiment != PERFORMANCE else []
        if statistic.split(".")[0] in measured:
            first = statistic.split(".")[0]
            raise Mistake(
                f"--require {text!r}: {first} is measured for each method; name one, like {experiment}(lrp).{first}."
            )
    else:
        _among("experiment", experiment, list(EXPERIMENTS), text)
        if not _measured(experiment):
            known = [name for name in EXPERIMENTS if _measured(name)]
            raise Mistake(
                f"--require {text!r}: {experiment} has no numbers by method (these have: {', '.join(known)}). For a "
                f"number of its summary write {experiment}.PATH, without a method."
            )
        _among("method", method, list(EXPLAINERS), text)
        known = _measured(experiment)
        statistic, _, part = statistic.partition(".")
        _among(f"statistic of {experiment}", statistic, known, text)
        part = part or "value"
        _among(f"part of {statistic}", part, list(PARTS), text)
        conditions = EXPERIMENTS.find(experiment).conditions
        if form["condition"] and conditions:
            _among(f"condition of {experiment}", form["condition"], conditions, text)
    return Requirement(text.strip(), experiment, method, form["condition"] or None, statistic, part, sign, bar)


def _measured(experiment: str) -> list[str]:
    return [measure.name for measure in EXPERIMENTS.find(experiment).audit.measures]


def _among(what: str, given: str, known: Sequence[str], text: str) -> None:
    if given not in known:
        raise Mistake(f"--require {text!r}: {one_of(what, given, list(known))}")


def parse_bars(texts: Sequence[str]) -> tuple[Requirement, ...]:
    return tuple(parse_bar(text) for text in dict.fromkeys(texts))


def check_bar(
    bar: Requirement,
    findings: Sequence[Finding],
    summaries: Mapping[str, Mapping[str, Any]],
    left_out: Mapping[str, str],
) -> Outcome:
    """What was found decides; a bar about what was not measured is not met. `left_out`: reasons by name."""
    if bar.method is not None:
        asked = [
            f for f in findings if (f.experiment, f.method, f.measure) == (bar.experiment, bar.method, bar.statistic)
        ]
        found = next((f for f in asked if bar.condition in (None, f.condition)), None)
        if found is None:
            return Outcome(bar, None, False, _why(bar, [f.condition for f in asked], left_out))
        return _compare(bar, PARTS[bar.part](found), _ends(bar, found))
    if bar.experiment not in summaries:
        return Outcome(bar, None, False, _why(bar, [], left_out))
    summary = summaries[bar.experiment]
    value = number_at(summary, bar.statistic)
    if value is None:
        return Outcome(bar, None, False, _nearest(bar, numbers_in(summary)))
    texts = summary.get("examples") if bar.experiment == PERFORMANCE else None
    return _compare(bar, value, "" if texts is None else f"({texts:,} texts)")


def _compare(bar: Requirement, value: float, note: str) -> Outcome:
    if math.isnan(value):
        return Outcome(bar, None, False, "it is undefined for these texts.")
    return Outcome(bar, value, SIGNS[bar.sign](value, bar.bar), note)


def _ends(bar: Requirement, found: Finding) -> str:
    """The interval, and a warning where it holds the bar."""
    if bar.part not in ("value", "share"):
        return ""
    told = found.value if bar.part == "value" else found.share
    if math.isnan(told.low):
        return ""
    holds = (
        "; the interval contains the threshold, so other texts could change this"
        if told.low < bar.bar < told.high
        else ""
    )
    return f"(95% CI {told.low:.3g} to {told.high:.3g}, {found.gain.n} texts{holds})"


def _why(bar: Requirement, conditions: Sequence[str], left_out: Mapping[str, str]) -> str:
    if bar.condition is not None and conditions:
        return f"it was asked under {', '.join(conditions)}."
    for name in (bar.method, bar.experiment):
        if name is not None and name in left_out:
            return left_out[name]
    return f"{bar.experiment} has no answer about {bar.method or bar.statistic} for this model and these texts."


def _nearest(bar: Requirement, known: list[str]) -> str:
    """A summary can have hundreds of numbers: the nearest are named."""
    from difflib import get_close_matches

    near = get_close_matches(bar.statistic, known, n=5, cutoff=0.3) or known[:5]
    return f"{bar.experiment} has no number {bar.statistic!r}. The nearest: {', '.join(near)}."


def numbers_in(summary: Mapping[str, Any], before: str = "") -> list[str]:
    """The paths of a summary's numbers."""
    found: list[str] = []
    for key, value in summary.items():
        if isinstance(value, Mapping):
            found += numbers_in(value, f"{before}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append(f"{before}{key}")
    return found
