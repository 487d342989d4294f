"""The page: findings, texts and explanations of one run or several -> one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heedful.experiments import EXPERIMENTS, find
from heedful.experiments.framework.caveats import not_made_sentence
from heedful.experiments.framework.description import Statistic, number_at
from heedful.experiments.framework.verdict import BELIEVE, HEADLINE_RULE, HEADLINES, Verdict, grade_of, reasons
from heedful.explanation.drawing import visible
from heedful.figures.figure import Figure, Spec, method_name
from heedful.report import instances
from heedful.report import shell as assets
from heedful.report.cards import cards
from heedful.report.describe import commands, doubts, explainer_rows, facts, question, score, versions, warning
from heedful.report.effect import against, dumbbells, strongest_sentence
from heedful.report.findings import Findings, Illustrated, verdicts_of_report
from heedful.report.opening import draw_opening
from heedful.report.published import published_tables
from heedful.report.shell import render
from heedful.report.words import LabelWords, apart_sentence, minimum_texts, relied_sentence, words_by_label
from heedful.studies.seeds import verdicts_by_configuration

NONE = "–"


def page(runs: Sequence[Illustrated], command: str = "") -> str:
    """One HTML file that needs nothing else. `command` is what was typed to make it."""
    sections, data = [], list[tuple[str, Any]]()
    verdicts = verdicts_of_report(runs)
    for n, run in enumerate(runs):
        section, specs, texts, opening = _section(run, verdicts[n], command)
        sections.append(section)
        data.append((f"figures-{n}", {key: _without_config(spec) for key, spec in specs.items()}))
        if texts:
            data.append((f"instances-{n}", texts))
        if opening:
            data.append((f"opening-{n}", opening))
    title = sections[0]["headline"] if len(runs) == 1 else f"Can the attention of these {len(runs)} models be believed?"
    statistics = _statistics(runs)
    return render(
        assets.text_of("page.html"),
        data,
        title=title,
        runs=sections,
        rule=HEADLINE_RULE,
        statistics=statistics,
        lines=[_line(run.findings, statistics) for run in runs],
        by_seeds=verdicts_by_configuration(
            (run.findings.but_seed, run.findings.seed, run.findings.setting, found)
            for run, found in zip(runs, verdicts, strict=True)
        ),
        tested=sum(verdict.p is not None for found in verdicts for verdict in found.values()),
        papers=_papers(runs),
        method=method_name,
    )


def figures(run: Illustrated) -> dict[str, Spec]:
    """Every figure of a run by name, for export."""
    return {figure.id: figure.spec for group in _figures(run.findings).values() for figure in group}


def _section(
    run: Illustrated, verdicts: Mapping[str, Verdict], command: str
) -> tuple[dict[str, Any], dict[str, Spec], dict[str, Any] | None, dict[str, Any] | None]:
    """What the template says of one run and its verdicts; its figures by name, its list of texts, and what the script
    needs to decode the first text under other attention."""
    findings, found = run.findings, list(verdicts.values())
    by_experiment = _figures(findings)
    words = words_by_label(run.counted, run.counted_places)
    texts = None
    if run.examples:
        always = [choice.place for choice in run.choices]
        texts = instances.list_texts(findings.tables, run.examples, findings.labels, always)
    asked = "Hypothesis" if findings.info["task"] == "nli" else "Question"
    opening, numbers, apart = None, None, None
    if run.opening is not None:
        example = run.examples[run.opening.place]
        opening, numbers = draw_opening(run.opening, example, findings.tables, asked)
        apart = against(run.opening.explained)
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
        "opening": opening,
        "dumbbells": None if apart is None else dumbbells(apart),
        "same_strongest": strongest_sentence(run.counted),
        "relied": relied_sentence(words),
        "apart": apart_sentence(words),
        "warnings": [sentence for sentence in (warning(run), *doubts(findings), *findings.warnings) if sentence],
        "rests": not_made_sentence(verdicts, "source" in findings.info["config"], findings.path),
        "asked": question(findings),
        "facts": facts(findings),
        "verdicts": _verdict_rows(verdicts, by_experiment),
        "words": [_words(one, findings.labels) for one in words],
        "counted": len(run.counted),
        "minimum": minimum_texts(len(run.counted)),
        "sampled": len(run.sample),
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
    specs = {figure.id: figure.spec for drawn in by_experiment.values() for figure in drawn}
    return section, specs, texts, numbers


def _words(one: LabelWords, labels: Sequence[str]) -> dict[str, Any]:
    rows = [row | {"shown": visible(row["word"], 28).replace("\n", " ")} for row in one.relied]
    return {
        "label": visible(one.label, 40),
        "number": labels.index(one.label) if one.label in labels else "",
        "texts": one.texts,
        "rows": rows,
    }


def _verdict_rows(
    verdicts: Mapping[str, Verdict], by_experiment: Mapping[str, Sequence[Figure]]
) -> list[dict[str, Any]]:
    """A row for each verdict with the figures of its experiment; then experiments without one."""
    rows = [
        {"question": one.question, "verdict": one, "figures": by_experiment.get(name, ())}
        for name, one in verdicts.items()
    ]
    return rows + [
        {"question": find(name).question, "verdict": None, "figures": drawn}
        for name, drawn in by_experiment.items()
        if name not in verdicts
    ]


def _figures(findings: Findings) -> dict[str, list[Figure]]:
    """By experiment. An id that two experiments give their figures is made longer for the second."""
    found: dict[str, list[Figure]] = {}
    taken: set[str] = set()
    for name in findings.tables:
        found[name] = [
            replace(figure, id=f"{name}-{figure.id}") if figure.id in taken else figure
            for figure in find(name).figures(findings.trial(name))
        ]
        taken |= {figure.id for figure in found[name]}
    return found


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
