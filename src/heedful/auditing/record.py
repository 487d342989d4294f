"""What an audit found, whole: `heedful.audit` returns it, and every output is made from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.auditing.outcome.decided import in_short, told
from heedful.auditing.outcome.recommend import choose, power, recommend, sensitivity
from heedful.auditing.outcome.repeats import repeats, told_of_repeats
from heedful.auditing.outcome.requirements import Outcome
from heedful.auditing.outcome.sequences import MOST
from heedful.auditing.outcome.standings import Standings
from heedful.experiments.framework.verdict import Verdict
from heedful.explanation.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """Which model, on which texts."""

    model: str
    description: str
    data: str
    split: str
    size: int  # texts that there are
    labels: tuple[str, ...]
    folder: Path | None = None  # that holds every row; None: the model is in memory alone


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """An experiment that was asked: of how many texts, and how long it took."""

    experiment: str
    question: str
    paper: str
    texts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Audit:
    subject: AuditSummary
    standings: Standings
    questions: tuple[AuditQuestion, ...]
    verdicts: Mapping[str, Verdict]  # of experiments about attention, by name
    outcomes: tuple[Outcome, ...]
    left_out: Mapping[str, str]  # experiments and methods that were not asked, and why
    warnings: tuple[str, ...]
    budget: float
    seconds: float  # that it took, with everything
    summaries: Mapping[str, Mapping[str, Any]]  # of every experiment, and of the model's performance
    sample: Explanation  # some texts explained by every method
    command: str = ""
    pace: float = math.nan  # texts a minute, of those that explainers are ordered by

    @property
    def texts(self) -> int:
        """That the explainers were ordered by; where none were ordered, the most that anything was asked about."""
        ordered = [one.texts for one in self.questions if one.experiment == self.standings.experiment]
        return max(ordered or [one.texts for one in self.questions], default=0)

    @property
    def recommendation(self) -> tuple[str, ...]:
        """Which explainer to use, which not, and how sure that is; the most important first."""
        said, again = recommend(self.standings), told_of_repeats(self.standings)
        return (*said[:2], again, *said[2:]) if again else said

    @property
    def recommended(self) -> str | None:
        """The explainer that it recommends, by name; None where it recommends none."""
        chosen = choose(self.standings)
        return None if chosen is None else chosen.method

    @property
    def decided(self) -> str:
        """How many explainers are decided, how sure that is, and what another minute would buy."""
        return told(self.standings, self.pace if self.texts < min(self.subject.size, MOST) else math.nan)

    @property
    def left_out_in_short(self) -> tuple[str, ...]:
        """What was not asked, a line for each reason."""
        return tuple(in_short(self.left_out))

    @property
    def sensitivity(self) -> str:
        """What these texts could show, and what other thresholds would change."""
        return " ".join(filter(None, (power(self.standings), sensitivity(self.standings))))

    @property
    def passed(self) -> bool:
        """Whether every bar is met."""
        return all(outcome.met for outcome in self.outcomes)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each method, the best first."""
        import pandas as pd

        from heedful.auditing.outcome.table import cells

        return pd.DataFrame([line.plain() for line in cells(self)])

    def check(self, *bars: str) -> tuple[Outcome, ...]:
        """Further bars, against what was found."""
        from heedful.auditing.outcome.requirements import check_bar, parse_bars

        return tuple(check_bar(bar, self.standings.findings, self.summaries, self.left_out) for bar in parse_bars(bars))

    def to_html(self) -> str:
        """One self-contained page."""
        from heedful.auditing.pages.page import page

        return page(self)

    def to_markdown(self) -> str:
        """A section for a model card."""
        from heedful.auditing.pages.exports import model_card

        return model_card(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is undefined is None."""
        from heedful.auditing.outcome.table import HEADER, cells

        lines = list(cells(self))
        return {
            "model": self.subject.model,
            "data": self.subject.data,
            "folder": None if self.subject.folder is None else str(self.subject.folder),
            "recommended": self.recommended,
            "recommendation": list(self.recommendation),
            "thresholds": self.standings.thresholds.rule,
            "sensitivity": self.sensitivity,
            "decided": self.decided,
            "repeats": repeats(self.standings),
            "warnings": list(self.warnings),
            "methods": [line.plain() for line in lines],
            "header": list(HEADER),
            "cells": [list(line.cells) for line in lines],
            "findings": [{"name": one.name, **asdict(one)} for one in self.standings.findings],
            "verdicts": {name: asdict(verdict) for name, verdict in self.verdicts.items()},
            "bars": [
                {"bar": one.bar.text, "value": one.value, "met": one.met, "sentence": one.sentence}
                for one in self.outcomes
            ],
            "questions": [asdict(one) for one in self.questions],
            "left_out": dict(self.left_out),
            "budget": self.budget,
            "seconds": self.seconds,
        }


def plain(value: Any) -> Any:
    """JSON values: nan and infinity are None, records are objects."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(inner) for inner in value]
    return value
