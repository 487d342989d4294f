"""Audit a model: which of its explainers can be believed, within a budget of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.models import subject_options
from heedful.auditing.ask.plan import AuditPlan, Clock, make_plan, preview
from heedful.auditing.ask.subject import Answered, AuditSubject, Given, open_subject, spread_over
from heedful.auditing.ask.within import ask_within
from heedful.auditing.outcome.budget import parse_budget
from heedful.auditing.outcome.requirements import PERFORMANCE, Requirement, check_bar, parse_bars
from heedful.auditing.outcome.series import series_of
from heedful.auditing.outcome.standings import Standings, rank
from heedful.auditing.record import Audit, AuditQuestion, AuditSummary
from heedful.data.corpora.describe import COPIES
from heedful.data.edits.plant import KINDS
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import SubjectOptions
from heedful.errors import Mistake, short
from heedful.experiments import find
from heedful.experiments.framework.verdict import Verdict
from heedful.explainers.methods import Method
from heedful.figures.figure import method_name
from heedful.records import Example
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.engine.sources.models import ModelSource
    from heedful.models.model import Model
    from heedful.store.run import Run

SAMPLE = 0.08  # of the budget, for what each explainer costs and keeps; with what the questions have left
BARELY = 0.05  # of accuracy above always the same answer
FEW = 30  # texts, below which hardly anything can be told
SIZED = 12  # texts that say what explainers cost by what they declare


def audit(
    model: Model | Run | ModelSource | str | Path,
    examples: Sequence[Example] | Sequence[str] | str | Path | None = None,
    *,
    data: str | Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    queries: Sequence[str] | None = None,
    split: str = "test",
    budget: str | float = "5m",
    bars: Sequence[str] = (),
    methods: Sequence[Method] = (),
    experiments: Sequence[str] = (),
    plant: bool | str = False,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    label_map: Mapping[str, str] | None = None,
    dtype: str | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    runs: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    command: str = "",
) -> Audit:
    """Which explainer of a model to use, which not, and how sure that is; see docs/audit.md.

    Everything that applies to the model is asked about as many texts as fit into `budget` ("5m"), of the examples
    given, of `data`, or of the corpus that a run was trained on. `bars` are checked, like
    "faithfulness(lrp).comprehensiveness >= 0.2". `methods` and `experiments` are asked beside those that are asked
    anyway: slow explainers, experiments that train further models; `plant` asks whether a planted shortcut is found: a
    word, or "single", "ordered", "context" by name.
    `labels` are names for those of a Hugging Face model that has none; `seed` is of the order in which texts are asked
    about.

    Rows, summaries and the audit itself are kept in the folder of the model on these data; an audit that was
    interrupted goes on from there. Of a model in memory, or of given examples, nothing is kept.
    """
    options = subject_options(
        data_options, labels, label_map, split, dtype, device, batch_size, data_dirs, queries is not None
    )
    given = given_texts(examples, queries, data, options, runs)
    prepared = prepare(model, given, budget, bars, methods, experiments, plant, progress, seed)
    found = execute(prepared, command)
    keep(found)
    return found


@dataclass(frozen=True, slots=True)
class PreparedAudit:
    """An audit before anything is computed."""

    subject: AuditSubject
    plan: AuditPlan
    bars: tuple[Requirement, ...]
    budget: float  # seconds
    progress: Progress
    began: float

    def preview(self) -> str:
        """What it would do, in words."""
        return preview(self.subject, self.plan, self.budget)


def given_texts(
    examples: Sequence[Example] | Sequence[str] | str | Path | None,
    queries: Sequence[str] | None = None,
    data: str | Path | None = None,
    options: SubjectOptions | None = None,
    runs: str | Path | None = None,
) -> Given:
    """What was given, typed; `examples` may name the data."""
    if isinstance(examples, str | Path):
        data, examples = examples, None
    where, folder = None if data is None else str(data), None if runs is None else Path(runs)
    return Given(examples, queries, where, options or SubjectOptions(), folder)


def prepare(
    model: object,
    given: Given,
    budget: str | float,
    bars: Sequence[str],
    methods: Sequence[Method],
    experiments: Sequence[str],
    plant: bool | str,
    progress: Progress | None,
    seed: int = 0,
) -> PreparedAudit:
    """Read what was asked for; a slip in it is said here."""
    began = time.perf_counter()
    for name, several in (("bars", bars), ("methods", methods), ("experiments", experiments)):
        if isinstance(several, str):
            raise Mistake(f"{name} are several: give a list, like {name}=[{several!r}].")
    seconds, wanted = parse_budget(budget), parse_bars(bars)
    progress = progress or Progress(quiet=True)
    subject = open_subject(model, given, progress)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise Mistake(f"--seed {short(seed)}: a whole number is needed, 0 or more.")
    plan = make_plan(subject, wanted, methods, experiments, KINDS[0] if plant is True else plant or None, seed)
    return PreparedAudit(subject, plan, wanted, seconds, progress, began)


def execute(prepared: PreparedAudit, command: str) -> Audit:
    """Ask, rank, and judge the bars."""
    subject, plan, seconds, progress = prepared.subject, prepared.plan, prepared.budget, prepared.progress
    clock = Clock(seconds, prepared.began)
    from heedful.auditing.ask.sample import explain_sample, known_of

    some = [example for example in subject.looked.values() if len(example.passage)][:SIZED]
    asking = ask_within(subject, plan, clock, known_of(plan.methods, subject.model, some), progress)
    answers, left_out = asking.answers, asking.left_out
    if plan.experiments and not answers:
        first = next(iter(plan.experiments))
        raise Mistake(f"nothing could be tested on {subject.name}: {first}: {left_out[first]}")
    void = {name: why for name, answer in answers.items() if (why := find(name).audit.void(answer.summary))}
    series = [
        one
        for name, answer in answers.items()
        if name not in void
        for one in series_of(name, find(name).audit.measures, answer.table)
        if one.method in EXPLAINERS
    ]
    asked = list(dict.fromkeys(one.method for one in series))
    rest = clock.left + SAMPLE * seconds
    known, sample = explain_sample(subject.model, [*subject.looked.values()], asked, rest, progress)
    standings = rank(series, known, looked=asking.looked)
    summaries = {name: answer.summary for name, answer in answers.items()}
    summaries[PERFORMANCE] = subject.performance(max([FEW, *(one.texts for one in answers.values())]))
    reasons = {**plan.left_out, **left_out, **void}
    return Audit(
        subject=AuditSummary(
            subject.name,
            subject.description,
            subject.data,
            subject.split,
            subject.size,
            tuple(subject.labels),
            subject.folder,
        ),
        standings=standings,
        questions=tuple(_question(answer) for answer in answers.values()),
        verdicts=_verdicts(answers),
        outcomes=tuple(check_bar(bar, standings.findings, summaries, reasons) for bar in prepared.bars),
        left_out=reasons,
        warnings=(
            *(f"{why}: what is said is about the others." for why in asking.without),
            *warn(subject, summaries[PERFORMANCE], answers),
            *warn_of_standings(standings),
        ),
        pace=asking.pace,
        budget=seconds,
        seconds=time.perf_counter() - prepared.began,
        summaries=summaries,
        sample=sample,
        command=command,
    )


def _verdicts(answers: Mapping[str, Answered]) -> dict[str, Verdict]:
    """Of experiments about attention; what those that order explainers say of it, the table says."""
    return {
        name: answer.verdict
        for name, answer in answers.items()
        if answer.verdict is not None and not any(one.ranks for one in find(name).audit.measures)
    }


def _question(answer: Answered) -> AuditQuestion:
    experiment = find(answer.experiment)
    return AuditQuestion(answer.experiment, experiment.question, experiment.paper, answer.texts, answer.seconds)


def warn(subject: AuditSubject, scores: Mapping[str, Any], answers: Mapping[str, Answered]) -> list[str]:
    """What a reader must know before believing any of it."""
    told = []
    looked = list(subject.looked.values())
    accuracy, scored = scores.get("accuracy"), spread_over(looked, scores.get("examples", len(looked)))
    truths = [example.label for example in scored if example.label is not None]
    usual, times = Counter(truths).most_common(1)[0] if truths else (0, 0)
    speaks = any(example.asked is not None for example in looked)  # what is said next has other names in each text
    if speaks:
        told += _warn_of_answers(accuracy, truths)
    elif not truths:
        told.append("the texts have no labels, so how good the model is was not measured.")
    elif len(set(truths)) == 1:
        told.append(
            f"all texts have the label {subject.labels[usual]!r}: the results hold for texts with that label only."
        )
    elif accuracy is not None and accuracy < times / len(truths) + BARELY:
        told.append(
            f"the model is hardly better (accuracy {accuracy:.2f}) than always answering {subject.labels[usual]!r} "
            f"({times / len(truths):.2f}) in {len(truths):,} texts: explanations of such a model say little."
        )
    predicted = {label for answer in answers.values() for label in answer.table["predicted"].to_pylist()}
    most = max((answer.texts for answer in answers.values()), default=0)
    if not speaks and len(predicted) == 1 and len(subject.labels) > 1 and most > 1:
        label = subject.labels[predicted.pop()]
        told.append(f"the model predicts {label!r} for every one of the {most:,} texts it was given.")
    same = len(looked) - len({(one.passage.text, one.query and one.query.text) for one in looked})
    if same > COPIES * len(looked):
        told.append(
            f"{same:,} of {len(looked):,} texts are copies of others. Each counts as a new text, so intervals "
            "are too narrow and answers too certain. Remove the copies from the data."
        )
    told += [f"{sentence}." for sentence in _doubts(subject) if "copies" not in sentence]
    texts = next((answer.texts for answer in answers.values()), None)  # of the most telling experiment
    if texts is not None and texts < FEW:
        more = "a larger --budget allows more" if texts < subject.size else "the data have no more"
        asked = "one text was" if texts == 1 else f"{texts} texts were"
        told.append(f"only {asked} used, so intervals are wide; {more}.")
    return told


def _warn_of_answers(accuracy: float | None, truths: Sequence[int]) -> list[str]:
    """Of a language model: how often it says what the data say. Explained is what it says, right or wrong."""
    if not truths or accuracy is None:
        return ["the prompts do not say which answer is right, so how good the model is was not measured."]
    if accuracy < 0.5 + BARELY:
        return [
            f"the model prefers the right answer in {accuracy:.0%} of {len(truths):,} prompts, hardly more than half: "
            "explanations of such a model say little."
        ]
    wrong = round((1 - accuracy) * len(truths))
    return [f"in {wrong} of {len(truths):,} prompts the model prefers the wrong answer."] if wrong else []


def _doubts(subject: AuditSubject) -> list[str]:
    """What was found about the texts when the folder was made: whether the model was trained on them, above all."""
    from heedful.engine.sources.overlap import doubts_of
    from heedful.store.run import Run

    return [] if subject.folder is None else doubts_of(Run(subject.folder))


def warn_of_standings(standings: Standings) -> list[str]:
    """Where no order is better than another there is nothing to find. A control that is called better than random is
    chance, and shows that others may be."""
    told = []
    if standings.order and not any(one.share.n for one in standings.order):
        told.append("in none of these texts is any order of the words better than another, so nothing can be found.")
    return told + [
        f"{method_name(one.method)}, a control that knows nothing, came out better than random (q = "
        f"{one.share.q:.2g}). This is chance, and happens in one audit out of forty: do not rely on answers that are "
        "no more certain than that, and use more texts."
        for one in standings.order
        if one.explained.kind == "control" and one.answer == "better"
    ]


def keep(audit: Audit) -> None:
    """In the folder that holds the rows, where there is one."""
    from heedful.auditing.record import plain
    from heedful.store.run import Run

    folder = audit.subject.folder
    if folder is not None:
        Run(folder).write_audit(plain(audit.to_json()), audit.to_html())


def write_files(audit: Audit, output: Path | None, junit: Path | None, model_card: Path | None) -> None:
    """The files that were asked for; each is whole or not there."""
    from heedful.auditing.pages import exports as xml
    from heedful.files import whole_file

    made = ((output, audit.to_html), (junit, lambda: xml.junit(audit)), (model_card, audit.to_markdown))
    for path, make in made:
        if path is not None:
            with whole_file(path) as temporary:
                temporary.write_text(make(), encoding="utf-8")
