"""Figures of an experiment that has none of its own: each column counted, and against the largest weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heedful.experiments.framework.description import Column, Result
from heedful.figures.figure import Figure
from heedful.measure.columns import Bools, Frame

if TYPE_CHECKING:
    from heedful.experiments.framework.experiment import Experiment


def plain_figures(experiment: Experiment, trial: Result) -> list[Figure]:
    types = {name: str(kind) for name, kind in zip(trial.table.schema.names, trial.table.schema.types, strict=True)}
    made = []
    for column in experiment.drawable(types):
        for group in (*experiment.groups(trial.table),) or (None,):
            frame = trial.frame(column, experiment.by, group)
            about = experiment.column(column)
            title = about.title + (f", {experiment.pages.group_title(group)}" if group is not None else "")
            made += column_figures(column, group, frame, about, title, trial.labels)
    return made


def column_figures(
    column: str,
    group: str | None,
    frame: Frame,
    about: Column,
    title: str,
    labels: Sequence[str],
    chosen: Bools | None = None,
) -> list[Figure]:
    """The histogram of a column, and its values against the largest weight where there are any."""
    from heedful.figures.drawing import by_max_attention, histogram

    measure = measure_key(column, group)
    stem = f"{part_of_id(column)}-{part_of_id(group)}" if group is not None else part_of_id(column)
    defined = frame.value[~np.isnan(frame.value)]
    told = "undefined for all texts" if not defined.size else f"mean {defined.mean():.3f} over {defined.size} texts"
    axis = about.title + (f" ({about.unit})" if about.unit else "")
    edges = about.edges_of(frame.value)
    made = [
        Figure(
            stem,
            title,
            f"Each bar counts texts. {about.reading}".strip(),
            f"Histogram of {title}; {told}.",
            histogram(frame, labels, edges.tolist(), measure, axis, chosen=chosen),
        )
    ]
    if not np.isnan(frame.max_attention).all():
        made.append(
            Figure(
                f"{stem}-max-attention",
                f"{title}, and how sharp the attention is",
                "Each point is a text; boxes hold the middle half of the texts, thick lines are medians.",
                f"{title} against the largest attention weight; {told}.",
                by_max_attention(frame, labels, axis, (float(edges[0]), float(edges[-1])), chosen),
            )
        )
    return made


def measure_key(column: str, group: str | None) -> str:
    """What a list of texts calls a number of each text."""
    return column if group is None else f"{column}:{group}"


def part_of_id(name: str) -> str:
    """A name, harmless in the id of a figure."""
    return "".join(c if c.isalnum() or c in "_-" else "-" for c in name)
