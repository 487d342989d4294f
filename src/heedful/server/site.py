"""What all pages share, and how they read what stands in an address."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from anyio import CapacityLimiter
from fastapi import Request

from heedful.errors import Mistake
from heedful.server.live.inference import Models
from heedful.server.stored.figures import Figures
from heedful.server.stored.library import Library, RunEntry
from heedful.server.stored.results import StoredResults
from heedful.server.stored.texts import StoredTexts, split_of
from heedful.server.stored.verdicts import Verdicts


@dataclass(frozen=True)
class Site:
    library: Library
    texts: StoredTexts
    results: StoredResults = field(default_factory=StoredResults)
    models: Models = field(default_factory=Models)
    # Pages of stored rows are drawn by so many threads: dozens would only wait for Python's lock, and for each other.
    drawing: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(3))

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.results)

    @cached_property
    def figures(self) -> Figures:
        return Figures(self.results)

    def split(self, entry: RunEntry, experiment: str | None = None) -> str:
        """The split that the rows of a run are of (of one experiment, or of the first that says so)."""
        names = [experiment] if experiment in entry.tables else list(entry.tables)
        said = [self.results.footer(entry.tables[name]).made_by for name in names]
        return split_of(entry, next((made for made in said if made.get("split")), {}))


def choice(request: Request, name: str, known: list[str], default: str) -> str:
    """A value of the query string that must be one of some names; empty or absent: the default."""
    given = request.query_params.get(name) or default
    if given not in known:
        raise Mistake(f"{name}={given[:80]} is not known here: it can be {', '.join(known[:20])}.")
    return given


def real(request: Request, name: str) -> float | None:
    """A number of the query string."""
    given = request.query_params.get(name)
    if given in (None, ""):
        return None
    try:
        value = float(str(given))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Mistake(f"{name}={str(given)[:80]} is not a number.")
    return value


def whole(request: Request, name: str, default: int, most: int = 10**9) -> int:
    """A whole number of the query string, between 0 and `most`."""
    given = request.query_params.get(name) or str(default)
    if not (given.isascii() and given.isdecimal()) or len(given) > 12:
        raise Mistake(f"{name}={given[:80]} is not a whole number.")
    return min(int(given), most)
