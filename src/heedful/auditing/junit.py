"""Bars as a JUnit file: one test case each, which every CI system can show."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from heedful.auditing.record import Audit

# Characters that XML 1.0 does not allow, not even escaped; a data file's name may hold any.
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(audit: Audit) -> str:
    """Where there are no bars, the audit itself is the one case, and passes."""
    outcomes = audit.outcomes
    missed = [one for one in outcomes if not one.met]
    suite = Element(
        "testsuite", name=_safe(f"heedful audit of {audit.subject.model} on {audit.subject.data}"),
        tests=str(max(1, len(outcomes))), failures=str(len(missed)), errors="0", time=f"{audit.seconds:.3f}",
    )  # fmt: skip
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
