"""The page of an audit: one HTML file that needs nothing else, in the form of the report's pages."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from heedful.auditing.outcome.budget import in_time
from heedful.auditing.outcome.recommend import choose, percent, q_value
from heedful.auditing.outcome.table import HEADER, cells
from heedful.auditing.pages.figures import COLOURS, audit_figures
from heedful.experiments.framework.verdict import headline
from heedful.explanation.drawing import html, visible
from heedful.explanation.record import Explained
from heedful.figures.figure import method_name
from heedful.report.shell import render

if TYPE_CHECKING:
    from heedful.auditing.record import Audit

SHOWN = 3  # texts


def page(audit: Audit) -> str:
    figures = list(audit_figures(audit.standings))
    specs = {one.id: {key: value for key, value in one.spec.items() if key != "config"} for one in figures}
    best = choose(audit.standings)
    said = audit.recommendation
    title = (
        f"Use {method_name(best.method)} to explain this model" if best is not None else "No explainer is recommended"
    )
    return render(
        files("heedful.auditing.pages").joinpath("page.html").read_text(encoding="utf-8"),
        [("figures-0", specs)],
        title=title,
        audit=audit,
        subject=_subject(audit),
        said=[visible(sentence, 2000) for sentence in said],
        warnings=[visible(warning, 500) for warning in audit.warnings],
        header=HEADER,
        lines=[{"answer": COLOURS[line.standing.answer], "cells": line.cells} for line in cells(audit)],
        findings=[_finding(one) for one in audit.standings.findings],
        outcomes=[{"met": one.met, "text": visible(one.sentence, 500)} for one in audit.outcomes],
        verdicts=list(audit.verdicts.values()),
        headline=headline(list(audit.verdicts.values())) if audit.verdicts else "",
        figures=figures,
        texts=[_text(one) for one in audit.sample[:SHOWN]],
        left_out=[visible(line, 500) for line in audit.left_out_in_short],
        rule=audit.standings.thresholds.rule,
        sensitivity=audit.sensitivity,
        took=in_time(audit.seconds),
        budget=in_time(audit.budget),
        command=visible(audit.command, 2000),
    )


def _subject(audit: Audit) -> list[tuple[str, str, str]]:
    one = audit.subject
    scores = audit.summaries.get("performance", {})
    accuracy = scores.get("accuracy")
    labels = [visible(label, 30) for label in one.labels]
    return [
        ("model", visible(one.model, 80), visible(one.description, 120)),
        ("data", visible(one.data, 80), f"{one.size:,} texts of the {one.split} split"),
        ("texts used", f"{audit.texts:,}", "drawn at random"),
        ("labels", str(len(labels)), ", ".join(labels[:4]) + (" …" if len(labels) > 4 else "")),
        (
            "accuracy",
            "–" if accuracy is None else f"{accuracy:.3f}",
            f"of {scores.get('examples', 0):,} texts" if accuracy is not None else "",
        ),
        ("time", in_time(audit.seconds), f"of {in_time(audit.budget)}"),
    ]


def _finding(one: Any) -> dict[str, str]:
    gain = one.gain
    return {
        "name": one.name,
        "about": one.about,
        "value": f"{one.value.value:.3f} ({one.value.low:.3f} to {one.value.high:.3f})",
        "chance": "–" if one.chance != one.chance else f"{one.chance:.3f}",
        "share": percent(one.share.value),
        "effect": "–" if gain.effect != gain.effect else f"{gain.effect:.2f}",
        "q": q_value(gain.q),
        "n": str(gain.n),
    }


def _text(explained: Explained) -> dict[str, Any]:
    sure = f"with probability {float(explained.probabilities.max()):.2f}"
    return {
        "outcome": f"Predicted {visible(explained.predicted)} {sure}. ({visible(explained.id, 80)})",
        "methods": [
            {
                "name": method_name(a.method),
                "html": Markup(
                    html(explained.passage, a.scores["passage"], a.signed, label=visible(a.method), peak=a.peak)
                ),
            }
            for a in explained.attributions
        ],
    }
