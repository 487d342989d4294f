"""Bars as lines that GitHub shows beside a change: `::error title=...::...`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from heedful.auditing.outcome.budget import in_time
from heedful.auditing.outcome.table import HEADER, cells
from heedful.explanation.drawing import visible

if TYPE_CHECKING:
    from heedful.auditing.record import Audit


def annotation_lines(audit: Audit) -> Iterator[str]:
    """One line for each requirement, and one for the recommendation."""
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


# Bars as a JUnit file: one test case each, which every CI system can show.


# Characters that XML 1.0 does not allow, not even escaped; a data file's name may hold any.
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(audit: Audit) -> str:
    """Where there are no requirements, the audit itself is the one case, and passes."""
    outcomes = audit.outcomes
    missed = [one for one in outcomes if not one.met]
    suite = Element(
        "testsuite",
        name=_safe(f"heedful audit of {audit.subject.model} on {audit.subject.data}"),
        tests=str(max(1, len(outcomes))),
        failures=str(len(missed)),
        errors="0",
        time=f"{audit.seconds:.3f}",
    )
    for one in outcomes:
        case = SubElement(suite, "testcase", classname="heedful.audit", name=_safe(one.bar.text))
        if not one.met:
            SubElement(case, "failure", message=_safe(one.sentence)).text = _safe(one.sentence)
        else:
            SubElement(case, "system-out").text = _safe(one.sentence)
    if not outcomes:
        case = SubElement(suite, "testcase", classname="heedful.audit", name="audit")
        SubElement(case, "system-out").text = _safe("\n".join(audit.recommendation))
    suites = Element("testsuites")
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _safe(text: str) -> str:
    return FORBIDDEN.sub("\ufffd", text)


# The audit as a section of a model card (Mitchell et al. 2019), in Markdown.


def model_card(audit: Audit) -> str:
    subject = audit.subject
    lines = [
        "## Explanations",
        "",
        f"Which explainer of `{_plain(subject.model)}` can be believed, tested on {audit.texts:,} of {subject.size:,} "
        f"texts of `{_plain(subject.data)}` by heedful {version('heedful')} in {in_time(audit.seconds)}.",
        "",
    ]
    lines += [f"- {_plain(sentence)}" for sentence in audit.recommendation]
    lines += [f"- Mind: {_plain(warning)}" for warning in audit.warnings]
    lines += ["", *_table(HEADER, [line.cells for line in cells(audit)]), ""]
    lines += [
        "*Of the possible*: 0% is a random order of the words, 100% the best order found. "
        f"{audit.standings.thresholds.rule} {audit.sensitivity}",
        "",
    ]
    if audit.outcomes:
        rows = [
            (one.bar.text, "–" if one.value is None else f"{one.value:.4g}", "met" if one.met else "**missed**")
            for one in audit.outcomes
        ]
        lines += ["### Requirements", "", *_table(("requirement", "value", "outcome"), rows), ""]
    if audit.verdicts:
        lines += ["### Its attention", ""]
        lines += [
            f"- {_plain(one.question)} **{_plain(one.answer)}.** {_plain(one.sentence)}"
            for one in audit.verdicts.values()
        ]
        lines.append("")
    if audit.left_out:
        told = "; ".join(_plain(line).rstrip(".") for line in audit.left_out_in_short)
        lines += [f"Left out: {told}.", ""]
    if audit.command:
        lines += ["```", audit.command, "```", ""]
    return "\n".join(lines)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(map(_cell, row))} |" for row in rows),
    ]


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """No control characters, and nothing that Markdown takes for HTML."""
    return visible(text, 2000).replace("<", "&lt;").replace("\n", " ")
