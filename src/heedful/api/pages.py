"""Pages about runs: `heedful report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.api.experiments import workspace_of
from heedful.api.models import as_paths, load, open_run
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import Subject, SubjectOptions
from heedful.engine.tasks.plan import plan_questions
from heedful.errors import Mistake
from heedful.explanation.explanation import Explanation
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.explanation.record import Explained
    from heedful.models.model import Model
    from heedful.report.export import Written
    from heedful.report.findings import Findings, Illustrated
    from heedful.store.run import Run


FAST_AT_ONCE, SLOW_AT_ONCE = 64, 4  # texts: of models whose structure saves most of the work, and of others


def write_report(
    runs: Sequence[str | Path | Run],
    output: str | Path,
    *,
    figures: str | Path | None = None,
    texts: bool = True,
    data: str | Path | None = None,
    options: SubjectOptions | None = None,
    folder: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    command: str = "",
) -> Written:
    """One HTML page about runs that have results; with `figures`, each figure as PNG and SVG in that folder.

    `texts=False` leaves out everything that shows or needs a text. With `data` the runs are models that were
    asked about these, whose answers are kept in `folder`, and `options` say how model and data are read. Returns
    the files and the verdicts.
    """
    from heedful.report import export, findings, page

    if not runs:
        raise Mistake("give at least one run folder.")
    export.check_page(Path(output))
    progress = progress or Progress(quiet=True)
    options = options or SubjectOptions(data_dirs=as_paths(data_dirs))
    opened = [open_answers(run, data, options, folder, progress) for run in runs]
    found = [findings.read(run) for run in opened]
    folders, device = options.data_dirs, options.device
    subjects = list(map(findings.Illustrated, found))
    for place, run in enumerate(opened if texts else ()):
        subjects[place] = illustrate(run, found[place], (*folders, *run.data_folders), progress, device)
    progress.say("draw the page and its figures")
    export.write_page(page.page(subjects, command), Path(output))
    drawn: list[Path] = []
    for subject in subjects if figures is not None else ():
        folder = Path(figures or ".")
        several = len(subjects) > 1
        drawn += export.write_figures(page.figures(subject), folder / subject.findings.name if several else folder)
    verdicts = findings.verdicts_of_report(subjects)
    by_run = {s.findings.name: found for s, found in zip(subjects, verdicts, strict=True)}
    return export.Written(Path(output), tuple(drawn), by_run)


def open_answers(
    model: str | Path | Run,
    data: str | Path | None,
    options: SubjectOptions,
    folder: str | Path | None,
    progress: Progress,
) -> Run:
    """The folder of a run, or that of a model on other data: what it was asked must be there."""
    if data is None:
        return open_run(model)
    subject = Subject.resolve(model, data, options).say(progress)
    workspace = workspace_of(subject, folder)
    planned = plan_questions(subject, (), workspace.runs, workspace.data_dirs, workspace.hash_file)
    run = workspace.run([*planned.tasks.values()][-1].run)
    if not run.finished:
        raise Mistake(
            f"{subject.source.name} has no results on {data} yet (in {workspace.runs}): first type heedful run "
            f"EXPERIMENT {model} with the same options."
        )
    return run


def illustrate(
    run: Run, findings: Findings, data_dirs: Sequence[Path], progress: Progress, device: str | None = None
) -> Illustrated:
    """Findings with the texts they are of: the chosen ones and a sample explained by every method."""
    from heedful.engine.sources.run_texts import texts_of
    from heedful.report.findings import Illustrated, choose
    from heedful.report.opening import Opening, typical
    from heedful.report.sample import choose_sample, counted_size, leave_words_out

    asked = dict.fromkeys(i for table in findings.tables.values() for i in table["example"].to_pylist())
    examples = texts_of(run, findings.split, list(asked), data_dirs)
    model = load(run, device=device)
    choices, places = choose(map(findings.trial, findings.tables), examples), choose_sample(examples)
    first = typical(findings.tables, examples)
    opened = [] if first is None else [first]
    wanted = list(dict.fromkeys([*opened, *(choice.place for choice in choices), *places]))
    explained = explain_for_people(model, [examples[place] for place in wanted], progress)
    by_place = dict(zip(wanted, explained, strict=True))
    chosen, sample = (
        Explanation(tuple(by_place[place] for place in some), run.name)
        for some in ([choice.place for choice in choices], places)
    )
    counted_places = choose_sample(examples, counted_size(model))
    if set(counted_places) <= set(by_place):  # what was asked is not asked again
        counted = looked_and_relied([by_place[place] for place in counted_places])
    else:
        with progress.bar(f"leave out the words of {len(counted_places):,} texts", len(counted_places)) as bar:
            counted = leave_words_out(model, [examples[place] for place in counted_places], bar.advance)
    opening = None if first is None else Opening(first, by_place[first], arithmetic_of(model, examples[first]))
    return Illustrated(findings, examples, choices, chosen, sample, places, counted, counted_places, opening)


def arithmetic_of(model: Model, example: Example) -> dict[str, Any] | None:
    """What a page needs to decode this text under other attention; None of a model that only itself can be asked."""
    if "pools_by_attention" not in model.network.can:
        return None
    from heedful.experiments.edited_attention.pooled import PooledStates

    seen = PooledStates.observer(model.network)(np.zeros(1, dtype=np.int64), model.encode([example]).batch([0]))
    return seen.arithmetic() if int(seen.n_words[0]) == len(example.passage) else None


def explain_for_people(model: Model, examples: list[Example], progress: Progress) -> Explanation:
    """Every default method that the model allows, word by word.

    What a missing word changes is told of the probability, a number people know.
    """
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.methods import usual, usual_control
    from heedful.explainers.perturbation.one_word import has_structure
    from heedful.explainers.run import explain
    from heedful.report.cards import STEPS, takes_steps

    able = [EXPLAINERS[name] for name in usual() if EXPLAINERS[name].fits(model.network)]
    able = able or [usual_control()]
    by_path = [(one.name, STEPS if takes_steps(one) else {}) for one in able if not one.one_word]
    by_word = [(one.name, {"of": "probability"}) for one in able if one.one_word]
    at_once = FAST_AT_ONCE if has_structure(model.network) else SLOW_AT_ONCE
    explained: list[Explained] = []
    with progress.bar(
        f"explain {len(examples):,} texts by {', '.join(one.label for one in able)}", len(examples)
    ) as bar:
        for first in range(0, len(examples), at_once):
            some = examples[first : first + at_once]
            shown = [explain(model, some, methods).by_word() for methods in (by_path, by_word) if methods]
            explained += [
                replace(parts[0], attributions=tuple(a for part in parts for a in part.attributions))
                for parts in zip(*shown, strict=True)
            ]
            bar.advance(len(some))
    return Explanation(explained, model.name)


def looked_and_relied(explained: Sequence[Explained]) -> Explanation:
    """Attention and leave-one-out of texts that were explained; nothing of a model that does not attend."""
    from heedful.explainers.attention import ATTENTION
    from heedful.explainers.perturbation import OMISSION

    wanted = (ATTENTION.name, OMISSION.name)
    if not all(set(wanted) <= {a.method for a in one.attributions} for one in explained):
        return Explanation(())
    return Explanation(
        replace(one, attributions=tuple(a for a in one.attributions if a.method in wanted)) for one in explained
    )
