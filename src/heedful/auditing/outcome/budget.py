"""How many texts fit into the time: each question is first put to a few texts, and what that took decides.

The seconds of each question are kept with its rows: an audit that is called again, after an interruption or after its
end, makes the same choices, and finds what was finished.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from heedful.errors import Mistake

PILOTS = (2, 32)  # texts of the first look, and of a second that is cheap beside the rest
LEAST = 8  # texts, below which an answer about attention is not worth telling
WORK = 0.85  # of the budget; the rest is for loading, the explainers' own checks, and the page
SECOND = 0.2  # of the time, at most, for the second look
WORTH = 1.5  # times as many texts, or asking again is not worth what it costs
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
FORM = re.compile(r"(?:\d+(?:\.\d+)?[smh])+")


def parse_budget(text: str | float) -> float:
    """ "5m", "90s", "1h30m" in seconds; a plain number is seconds."""
    given = str(text).strip().lower()
    if FORM.fullmatch(given):
        seconds = sum(float(n) * UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smh])", given))
    else:
        try:
            seconds = float(given)
        except ValueError:
            raise Mistake(f"--budget {text!r}: give a time, for example 90s, 5m or 1h30m.") from None
    if not 0 < seconds < math.inf:
        raise Mistake(f"--budget {text!r}: the time must be greater than zero, for example 5m.")
    return seconds


def in_time(seconds: float) -> str:
    """ "45 s", "3 min 20 s", "1 h 30 min"."""
    whole = round(seconds)
    if whole < 1:
        return f"{seconds:.2g} s"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


@dataclass(frozen=True, slots=True)
class Timing:
    """A question that was put to some texts, what that took, and how much of it was not spent on texts."""

    texts: int
    seconds: float
    around: float = 0.0  # loading, summing up: the same for any number of texts


def texts_that_fit(asked: Timing, seconds: float, size: int) -> int:
    """How many texts of `size` can be asked about in so many seconds; two digits of it, so that it is easily read."""
    each = (asked.seconds - asked.around) / asked.texts
    n = size if each <= 0 else int(max(0.0, seconds - asked.around) / each)
    if n >= size:
        return size
    step = int(10 ** max(0, len(str(max(n, 1))) - 2))
    return n // step * step


def time_for(asked: Timing, texts: int) -> float:
    """The seconds that so many texts take; nothing, where as many have been asked about."""
    if asked.texts >= texts:
        return 0.0
    return asked.around + texts * (asked.seconds - asked.around) / asked.texts


def next_texts(asked: Timing, seconds: float, size: int) -> int | None:
    """The number of texts to ask about next, all of them again; None where that would not be worth it.

    The second look is at PILOTS[1] texts, where that is little of the time: of few texts each takes long.
    """
    n = texts_that_fit(asked, seconds, size)
    if n <= asked.texts or n < min(size, WORTH * asked.texts):
        return None
    if asked.texts < PILOTS[1] < n and texts_that_fit(asked, SECOND * seconds, size) >= PILOTS[1]:
        return PILOTS[1]
    return n
