"""The audit as a section of a model card (Mitchell et al. 2019), in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from heedful.auditing.budget import in_time
from heedful.auditing.record import Audit
from heedful.auditing.table import HEADER, cells
from heedful.heatmap import visible


def model_card(audit: Audit) -> str:
    subject = audit.subject
    lines = [
        "## Explanations", "",
        f"Which explainer of `{_plain(subject.model)}` can be believed, tested on {audit.texts:,} of {subject.size:,} "
        f"texts of `{_plain(subject.data)}` by heedful {version('heedful')} in {in_time(audit.seconds)}.", "",
    ]  # fmt: skip
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
            (
                one.bar.text,
                "–" if one.value is None else f"{one.value:.4g}",
                "met" if one.met else "**missed**",
            )
            for one in audit.outcomes
        ]
        lines += ["### Bars", "", *_table(("bar", "found", "outcome"), rows), ""]
    if audit.verdicts:
        lines += ["### Its attention", ""]
        lines += [
            f"- {_plain(one.question)} **{_plain(one.answer)}.** {_plain(one.sentence)}"
            for one in audit.verdicts.values()
        ]
        lines.append("")
    if audit.left_out:
        told = "; ".join(f"{name} ({_plain(why).rstrip('.')})" for name, why in audit.left_out.items())
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
