"""For pytest: bars on explanations, in one's own test suite.

    @pytest.mark.heedful(model="my-checkpoint", data="reviews.csv", budget="2m")
    def test_explanations(heedful_audit):
        heedful_audit.check("faithfulness(lrp).comprehensiveness >= 0.2")

or, without a body of its own:

    @pytest.mark.heedful(model="my-checkpoint", data="reviews.csv", bars=["performance.accuracy >= 0.9"])
    def test_bars(): ...

The marker takes what `heedful.audit` takes. An audit is made once for equal markers, and kept as the command keeps it.
heedful itself is loaded when a test asks for the fixture: a suite without such tests does not feel the plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heedful.auditing.record import Audit

MARKER = "heedful(model, data, budget, bars, ...): audit a model; the test gets it as the fixture heedful_audit"
AUDITS: pytest.StashKey[dict[str, AuditedModel]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.stash[AUDITS] = {}


class AuditedModel:
    """An audit, and `check`, which fails the test at a bar that is missed."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    def check(self, *bars: str) -> None:
        """Fail with one sentence for each bar that is missed; a bar with a slip is an error."""
        __tracebackhide__ = True
        missed = [outcome.sentence for outcome in self.audit.check(*bars) if not outcome.met]
        if missed:
            pytest.fail("\n".join(missed), pytrace=False)


@pytest.fixture(autouse=True)
def _heedful_bars(request: pytest.FixtureRequest) -> None:
    """A marker's bars are checked, too, where the test does not ask for the fixture."""
    if request.node.get_closest_marker("heedful") is not None:
        request.getfixturevalue("heedful_audit")


@pytest.fixture
def heedful_audit(request: pytest.FixtureRequest) -> AuditedModel:
    """The audit that the test's marker `heedful` asks for; its bars are checked before the test begins."""
    marker = request.node.get_closest_marker("heedful")
    if marker is None:
        pytest.fail("heedful_audit needs the marker: @pytest.mark.heedful(model=..., data=...).", pytrace=False)
    asked: dict[str, Any] = dict(marker.kwargs)
    if marker.args or "model" not in asked:
        pytest.fail("the marker heedful takes names: @pytest.mark.heedful(model=..., data=...).", pytrace=False)
    bars = asked.pop("bars", ())
    bars = (bars,) if isinstance(bars, str) else tuple(bars)
    found = _audited(request.config.stash[AUDITS], asked, bars)
    found.check(*bars)
    return found


def _audited(known: dict[str, AuditedModel], asked: Mapping[str, Any], bars: tuple[str, ...]) -> AuditedModel:
    """Once for the same arguments. Bars come along: they may name what is asked only if named."""
    from inspect import signature

    from heedful.auditing.ask.audit import audit
    from heedful.errors import Mistake, one_of

    key = repr((sorted(asked.items(), key=lambda item: item[0]), bars))
    if key not in known:
        try:
            takes = list(signature(audit).parameters)
            for name in asked:
                if name not in takes:
                    raise one_of("argument of the marker", name, takes)
            known[key] = AuditedModel(audit(bars=bars, **asked))
        except Mistake as mistake:
            pytest.fail(f"heedful: {mistake}", pytrace=False)
    return known[key]
