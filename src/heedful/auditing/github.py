"""Bars as lines that GitHub shows beside a change: `::error title=...::...`."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.auditing.record import Audit


def annotation_lines(audit: Audit) -> Iterator[str]:
    """One line for each bar, and one for the recommendation."""
    for one in audit.outcomes:
        kind = "notice" if one.met else "error"
        yield f"::{kind} title={_property('heedful audit')}::{_message(one.sentence)}"
    for warning in audit.warnings:
        yield f"::warning title={_property('heedful audit')}::{_message(warning)}"
    yield f"::notice title={_property('heedful audit')}::{_message(audit.recommendation[0])}"


def _message(text: str) -> str:
    """As the workflow commands of GitHub want them escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
