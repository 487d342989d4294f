"""The page: findings, texts and explanations of one run or several -> one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from heedful.report import assets, grades, instances, verdicts
from heedful.report.cards import cards
from heedful.report.chapters import chapters, words_figures
from heedful.report.describe import asked, commands, explainer_rows, facts, score, versions, warning
from heedful.report.drawing import Spec
from heedful.report.findings import Illustrated
from heedful.report.judge import judged
from heedful.report.published import published_tables
from heedful.report.theme import CONFIG

NONE = "–"


def page(runs: Sequence[Illustrated], command: str = "") -> str:
    """One HTML file that needs nothing else. `command` is what was typed to make it."""
    sections, data = [], [("theme", CONFIG)]
    for n, run in enumerate(runs):
        section, specs, listed = _section(run, command)
        sections.append(section)
        data.append((f"figures-{n}", {key: _without_config(spec) for key, spec in specs.items()}))
        if listed:
            data.append((f"instances-{n}", listed))
    style, script, vega = assets.page_style(), assets.page_script(), assets.vega()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    title = (
        sections[0]["headline"]
        if len(runs) == 1
        else f"Can the attention of these {len(runs)} models be believed?"
    )
    return environment.from_string(assets.text_of("page.html")).render(
        title=title,
        runs=sections,
        marks=grades.MARKS,
        rule=grades.HEADLINE_RULE,
        version=version("heedful"),
        policy=Markup(assets.policy([vega, script], [style])),
        style=Markup(style),
        vega=Markup(vega),
        script=Markup(script),
        data=[(name, Markup(assets.embedded(value))) for name, value in data],
    )


def figures(run: Illustrated) -> dict[str, Spec]:
    """Every figure of a run by name, for export."""
    return _section(run, "")[1]


def _section(run: Illustrated, command: str) -> tuple[dict[str, Any], dict[str, Spec], dict[str, Any] | None]:
    """What the template says of one run, its figures by name, and its list of instances."""
    findings = run.findings
    found = judged(run)
    groups, words = chapters(findings), words_figures(run.sample)
    specs = {figure.id: figure.spec for group in groups for figure in group.figures}
    specs |= {figure.id: figure.spec for figure in words}
    listed = None
    if run.examples:
        always = [choice.place for choice in run.choices]
        listed = instances.listed(findings.tables, run.examples, findings.labels, always)
    dataset, encoder, attention = findings.setting
    grade = verdicts.overall(list(found.values()))
    evidence = any(run.examples[place].evidence for place in run.sampled)
    section = {
        "name": findings.name,
        "short": findings.name.rsplit("-", 1)[-1],
        "dataset": dataset,
        "model": f"{encoder}, {attention}",
        "seed": findings.info["config"]["seed"],
        "score": score(findings),
        "line": _line(run, found),
        "grade": grade,
        "believe": grades.BELIEVE[grade],
        "headline": f"{verdicts.HEADLINES[grade]}.",
        "reasons": verdicts.reasons(list(found.values())),
        "relied": _relied(words),
        "warning": warning(run),
        "asked": asked(findings),
        "facts": facts(findings),
        "verdicts": list(found.values()),
        "words": words,
        "sampled": len(run.sample),
        "groups": groups,
        "published": published_tables(findings),
        "explainers": explainer_rows(run),
        "evidence": evidence,
        "examples": cards(run),
        "instances": listed is not None,
        "measures": listed["measures"] if listed else [],
        "labels": listed["labels"] if listed else [],
        "commands": commands(findings, command),
        "versions": versions(findings),
    }
    return section, specs, listed


def _line(run: Illustrated, found: dict[str, verdicts.Verdict]) -> list[str]:
    """The run's numbers in the table that compares runs."""
    summary = run.findings.summaries.get("correlation", {})
    taus = [
        summary.get(pair, {}).get("overall", {}).get("tau", {}).get("mean")
        for pair in verdicts.ATTENTION_PAIRS
    ]
    change, share = (found[name].value if name in found else None for name in ("permutation", "adversarial"))
    return [
        *(NONE if tau is None else f"{tau:.2f}" for tau in taus),
        NONE if change is None else f"{change:.3f}",
        NONE if share is None else f"{share:.0%}",
    ]


def _relied(words: Sequence[Any]) -> str:
    """Which words, in one sentence."""
    parts = [f"{', '.join(figure.top)} for “{figure.label}”" for figure in words if figure.top]
    return f"What it relied on most, by deleting words: {'; '.join(parts)}." if parts else ""


def _without_config(spec: Spec) -> Spec:
    """The theme stands on the page once."""
    return {key: value for key, value in spec.items() if key != "config"}
