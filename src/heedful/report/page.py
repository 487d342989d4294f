"""The page: findings, texts and explanations of one run or several -> one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heedful.experiments import EXPERIMENTS, find
from heedful.experiments.caveats import not_made_sentence
from heedful.experiments.description import Statistic, number_at
from heedful.experiments.verdict import BELIEVE, HEADLINE_RULE, HEADLINES, MARKS, Verdict, grade_of, reasons
from heedful.figures.figure import Figure, Spec
from heedful.report import assets, instances
from heedful.report.cards import cards
from heedful.report.describe import commands, explainer_rows, facts, question, score, versions, warning
from heedful.report.findings import Findings, Illustrated, verdicts_of_report
from heedful.report.published import published_tables
from heedful.report.seeds import verdicts_by_configuration
from heedful.report.shell import render
from heedful.report.words import relied_sentence, words_figures

NONE = "–"


def page(runs: Sequence[Illustrated], command: str = "") -> str:
    """One HTML file that needs nothing else. `command` is what was typed to make it."""
    sections, data = [], list[tuple[str, Any]]()
    verdicts = verdicts_of_report(runs)
    for n, run in enumerate(runs):
        section, specs, texts = _section(run, list(verdicts[n].values()), command)
        sections.append(section)
        data.append((f"figures-{n}", {key: _without_config(spec) for key, spec in specs.items()}))
        if texts:
            data.append((f"instances-{n}", texts))
    title = (
        sections[0]["headline"]
        if len(runs) == 1
        else f"Can the attention of these {len(runs)} models be believed?"
    )
    statistics = _statistics(runs)
    return render(
        assets.text_of("page.html"),
        data,
        title=title,
        runs=sections,
        marks=MARKS,
        rule=HEADLINE_RULE,
        statistics=statistics,
        lines=[_line(run.findings, statistics) for run in runs],
        by_seeds=verdicts_by_configuration(
            (run.findings.but_seed, run.findings.seed, run.findings.setting, found)
            for run, found in zip(runs, verdicts, strict=True)
        ),
        tested=sum(verdict.p is not None for found in verdicts for verdict in found.values()),
        papers=_papers(runs),
    )


def figures(run: Illustrated) -> dict[str, Spec]:
    """Every figure of a run by name, for export."""
    return _section(run, [], "")[1]


def _section(
    run: Illustrated, found: Sequence[Verdict], command: str
) -> tuple[dict[str, Any], dict[str, Spec], dict[str, Any] | None]:
    """What the template says of one run and its verdicts, its figures by name, and its list of instances."""
    findings = run.findings
    groups = _figures(findings)
    words = words_figures(run.sample)
    specs = {figure.id: figure.spec for group in groups.values() for figure in group}
    specs |= {one.figure.id: one.figure.spec for one in words}
    texts = None
    if run.examples:
        always = [choice.place for choice in run.choices]
        texts = instances.list_texts(findings.tables, run.examples, findings.labels, always)
    dataset, encoder, attention = findings.setting
    grade = grade_of(found)
    evidence = any(run.examples[place].evidence for place in run.sampled)
    section = {
        "name": findings.name,
        "short": findings.name.rsplit("-", 1)[-1],
        "dataset": dataset,
        "model": f"{encoder}, {attention}",
        "seed": findings.seed,
        "score": score(findings),
        "grade": grade,
        "believe": BELIEVE[grade],
        "headline": f"{HEADLINES[grade]}.",
        "reasons": reasons(found),
        "relied": relied_sentence(words),
        "warnings": [sentence for sentence in (warning(run), *findings.warnings) if sentence],
        "rests": not_made_sentence(findings.tables, "source" in findings.info["config"], findings.path),
        "asked": question(findings),
        "facts": facts(findings),
        "verdicts": found,
        "words": [one.figure for one in words],
        "sampled": len(run.sample),
        "groups": groups,
        "published": published_tables(findings),
        "explainers": explainer_rows(run),
        "evidence": evidence,
        "examples": cards(run),
        "instances": texts is not None,
        "measures": texts["measures"] if texts else [],
        "labels": texts["labels"] if texts else [],
        "weights": texts["weights"] if texts else None,
        "commands": commands(findings, command),
        "versions": versions(findings),
    }
    return section, specs, texts


def _figures(findings: Findings) -> dict[str, list[Figure]]:
    """By question. An id that two experiments give their figures is made longer for the second."""
    groups: dict[str, list[Figure]] = {}
    taken: set[str] = set()
    for name in findings.tables:
        experiment = find(name)
        own = [
            replace(figure, id=f"{name}-{figure.id}") if figure.id in taken else figure
            for figure in experiment.figures(findings.trial(name))
        ]
        taken |= {figure.id for figure in own}
        groups.setdefault(experiment.question, []).extend(own)
    return groups


def _statistics(runs: Sequence[Illustrated]) -> list[tuple[str, Statistic]]:
    """(experiment, statistic) for each column of the table that compares runs."""
    asked = {name for run in runs for name in run.findings.tables}
    return [(name, one) for name in EXPERIMENTS if name in asked for one in find(name).statistics]


def _line(findings: Findings, statistics: Sequence[tuple[str, Statistic]]) -> list[str]:
    """The run's numbers in that table."""
    numbers = [(number_at(findings.summaries.get(name), one.path), one.form) for name, one in statistics]
    return [NONE if number is None else f"{number:{form}}" for number, form in numbers]


def _papers(runs: Sequence[Illustrated]) -> list[str]:
    """Where the questions of these runs were first asked."""
    asked = {name for run in runs for name in run.findings.tables}
    return [f"{name} ({find(name).paper})" for name in EXPERIMENTS if name in asked and find(name).paper]


def _without_config(spec: Spec) -> Spec:
    """The theme stands on the page once."""
    return {key: value for key, value in spec.items() if key != "config"}
