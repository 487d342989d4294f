"""The one figure at the top of a study's page, drawn from the runs' summaries. No torch.

What it shows follows from what the study has: differences between variants where it asks questions of them, the error
of each variant where it compares them with published numbers, and our numbers against the published ones otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.figures.figure import Spec
from heedful.figures.studies import beside_published, differences, errors
from heedful.studies.comparison import Finished, asked_of_variants, comparisons, points_of_variants
from heedful.studies.study import Study
from heedful.studies.variants import effects


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """A drawing, what it is called, and how it is to be read."""

    spec: Spec
    title: str
    caption: str

    def markdown(self, file: str) -> str:
        return f"![{self.title}]({file})\n\n*{self.caption}*"


def study_figure(runs: Sequence[Finished], study: Study) -> StudyFigure | None:
    """None where the runs have nothing that would be drawn."""
    if study.questions:
        return _of_questions(runs, study)
    return _of_variants(runs, study) if study.variants else _of_published(runs, study)


def _of_questions(runs: Sequence[Finished], study: Study) -> StudyFigure | None:
    """The first question: what each variant changes, dataset by dataset."""
    question = study.questions[0]
    made = [
        effect
        for effect in effects(
            [run.variant for run in runs if run.variant], list(study.variants), asked_of_variants(study)
        )
        if effect.asked.measure.key in question.measures
    ]
    if not made:
        return None
    panel_of = {(e.dataset, e.asked.measure.short): f"{e.dataset}: {e.asked.measure.short}" for e in made}
    rows = [
        {
            "panel": panel_of[effect.dataset, effect.asked.measure.short],
            "name": effect.variant,
            "value": effect.change.mean,
            "low": effect.change.low,
            "high": effect.change.high,
            "found": effect.found,
        }
        for effect in made
    ]
    reference = next(iter(study.variants))
    panels = [panel for name in study.datasets for (dataset, _), panel in panel_of.items() if dataset == name]
    spec = differences(rows, panels, list(study.variants)[1:], f"difference from {reference}", question.title)
    caption = (
        f"{question.title} Each point is the difference from {reference} on one dataset, mean over texts and seeds "
        "with its 95% interval. Colour: found to be better or worse by a test that counts all differences of this page."
    )
    return StudyFigure(spec, question.title, caption)


def _of_variants(runs: Sequence[Finished], study: Study) -> StudyFigure | None:
    """Mean absolute error of each variant's numbers to the published ones."""
    rows = [
        {
            "panel": dataset,
            "name": variant,
            "value": sum(abs(point.ours - point.published) for point in points) / len(points),
            "cells": len(points),
        }
        for (dataset, variant), points in points_of_variants(runs, study).items()
        if points
    ]
    if not rows:
        return None
    title = "How far each set-up is from the published numbers"
    panels = [name for name in study.datasets if any(row["panel"] == name for row in rows)]
    spec = errors(rows, panels, list(study.variants), "mean absolute error to the mean of the published sets", title)
    first = next(iter(study.variants))
    caption = (
        f"{title}, dataset by dataset; further to the left is nearer. `{first}` is the set-up of the study proper. "
        "Set-ups of one dataset were not all run for the same encoders and seeds: the table has the number of runs."
    )
    return StudyFigure(spec, title, caption)


def _of_published(runs: Sequence[Finished], study: Study) -> StudyFigure | None:
    """Ours against the mean of the published sets."""
    points = [point for one in comparisons(runs, study) for point in one.points]
    if not points:
        return None
    rows = [
        {
            "encoder": point.setting[1],
            "published": point.published,
            "ours": point.ours,
            "name": f"{' / '.join(point.setting)}: {point.name}",
        }
        for point in points
    ]
    title = "Our numbers against the published ones"
    spec = beside_published(
        rows, list(study.encoders), ("published (mean of the sets)", "ours (mean over seeds)"), title
    )
    caption = (
        f"{title}: {len(points)} mean rank correlations τ, each of one dataset, encoder, attention, pair of "
        "explanations and class. On the dashed line both are equal."
    )
    return StudyFigure(spec, title, caption)
