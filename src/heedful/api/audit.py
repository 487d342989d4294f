"""Audit a model: which of its explainers can be believed, within a budget of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from heedful.api.audit_subject import Answered, Audited, open_subject
from heedful.api.models import as_paths
from heedful.audit.bars import PERFORMANCE, Bar, check_bar, parse_bars
from heedful.audit.budget import PILOTS, WORK, Asked, in_time, next_texts, parse_budget
from heedful.audit.record import Audit, Question, Subject
from heedful.audit.series import RANDOM, series_of
from heedful.audit.standings import rank
from heedful.engine.progress import Progress
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Experiment, find
from heedful.experiments.experiment import no_runs

from heedful.records import SPLITS, Example, Split
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.engine.model_sources import ModelSource
    from heedful.models.model import Model
    from heedful.store.run import Run

RANKING = 0.65  # of the time, for the experiments that put explainers in order; the rest is for all others
SAMPLE = 0.1  # of the budget, for what each explainer costs and keeps
SLOW = ("lime", "shap", "attention_flow")  # thousands of passes a text, or minutes: only where they are asked for
BARELY = 0.05  # of accuracy above always the same answer


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be asked: experiments with their options, the most telling first; methods; what is left out."""

    experiments: Mapping[str, Mapping[str, Any]]
    methods: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


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
    methods: Sequence[str] = (),
    experiments: Sequence[str] = (),
    labels: Sequence[str] | None = None,
    runs: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    command: str = "",
) -> Audit:
    """Which explainer of a model to use, which not, and how sure that is; see docs/audit.md.

    Everything that applies to the model is asked about as many texts as fit into `budget` ("5m"), of the examples
    given, of `data`, or of the corpus that a run was trained on. `bars` are checked: "faithfulness(lrp).comprehensiveness
    >= 0.2". `methods` and `experiments` are asked beside those that are asked anyway: slow explainers, experiments that
    train further models. `labels` are names for those of a Hugging
    Face model that has none. Rows, summaries and the audit itself are kept in the folder of the model on these data; an
    audit that was interrupted goes on from there. Of a model in memory, or of given examples, nothing is kept.
    """
    began = time.perf_counter()
    seconds, wanted = parse_budget(budget), parse_bars(bars)
    progress = progress or Progress(quiet=True)
    if isinstance(examples, str | Path):
        data, examples = examples, None
    subject = open_audited(model, examples, data, data_options, queries, split, labels, runs, data_dirs, progress)
    plan = make_plan(subject, wanted, methods, experiments)
    answers, left_out = ask_within(subject, plan, seconds, progress)
    series = [
        one for name, answer in answers.items() for one in series_of(name, find(name).method_measures, answer.table)
    ]
    known, sample = _sample(subject, plan, [one.method for one in series], SAMPLE * seconds, progress)
    standings = rank(series, known)
    summaries = {name: answer.summary for name, answer in answers.items()}
    summaries[PERFORMANCE] = subject.performance()
    reasons = {**plan.left_out, **left_out}
    return Audit(
        subject=Subject(
            subject.name, subject.description, subject.data, subject.split, subject.size, tuple(subject.labels), subject.folder
        ),
        standings=standings,
        questions=tuple(_question(answer) for answer in answers.values()),
        verdicts={name: answer.verdict for name, answer in answers.items() if answer.verdict is not None},
        outcomes=tuple(check_bar(bar, standings.findings, summaries, reasons) for bar in wanted),
        left_out=reasons,
        warnings=tuple(warn(subject, summaries[PERFORMANCE], answers)),
        budget=seconds,
        seconds=time.perf_counter() - began,
        summaries=summaries,
        sample=sample,
        command=command,
    )  # fmt: skip


def open_audited(
    model: object,
    examples: Sequence[Example] | Sequence[str] | None,
    data: str | Path | None,
    data_options: Mapping[str, Any] | None,
    queries: Sequence[str] | None,
    split: str,
    labels: Sequence[str] | None,
    runs: str | Path | None,
    data_dirs: Sequence[str | Path],
    progress: Progress,
) -> Audited:
    if split not in SPLITS:
        raise Mistake(f"--split {split!r}: the splits are {', '.join(SPLITS)}.")
    return open_subject(
        model, examples, queries, None if data is None else str(data), data_options or {}, cast(Split, split), labels,
        None if runs is None else Path(runs), as_paths(data_dirs), progress,
    )  # fmt: skip


def make_plan(
    subject: Audited, bars: Sequence[Bar] = (), methods: Sequence[str] = (), experiments: Sequence[str] = ()
) -> Plan:
    """What applies to this model, by what it can do and by what is known of its texts."""
    left_out: dict[str, str] = {}
    can = _abilities(subject, left_out)
    by_bars = [bar.method for bar in bars if bar.method is not None]
    asked = _methods(can, [*methods, *by_bars], left_out)
    by_name = {*map(EXPERIMENTS.check, experiments), *(bar.experiment for bar in bars)}
    chosen: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS:
        experiment = find(name)
        missing = sorted(experiment.needs - can)
        if missing:
            left_out[name] = f"it needs a model that {' and '.join(missing)}"
        elif experiment.runs is not no_runs and name not in by_name:
            left_out[name] = f"it trains further models, which takes long: ask for it with --experiment {name}"
        elif experiment.method_measures or experiment.judge is not None:
            takes = "methods" in experiment.config.model_fields
            chosen[name] = {"methods": asked} if takes else {}
    order = sorted(chosen, key=lambda name: _importance(find(name)))
    return Plan({name: chosen[name] for name in order}, asked, left_out)


def _importance(experiment: Experiment) -> int:
    """Those that order explainers first, then those that tell of explainers, then those about attention alone."""
    measures = experiment.method_measures
    return 0 if any(one.ranks for one in measures) else 1 if measures else 2


def _abilities(subject: Audited, left_out: dict[str, str]) -> frozenset[str]:
    """What the model can do with these texts: one that is read in windows has no one attention."""
    model = subject.model
    limit, can = getattr(model.network, "limit", None), model.network.can
    if limit is None or "attends" not in can:
        return can
    encoded = model.encode(list(subject.looked.values()))
    lengths = [int(batch.passage.present.sum(1).max()) for _, batch in encoded.batches(1)]
    long = sum(length > limit for length in lengths)
    if not long:
        return can
    left_out["attention"] = (
        f"{long} of {len(lengths)} texts are longer than the {limit} tokens that {subject.name} reads at once, so that "
        "there is no one attention over them: cut them, or leave them out of the data"
    )
    return can - {"attends", "self_attends", "edits_attention"}


def _methods(can: frozenset[str], asked: Sequence[str], left_out: dict[str, str]) -> tuple[str, ...]:
    """Every explainer that fits the model, those that are slow only where they are asked for; and the control."""
    found = []
    for name in asked:
        EXPLAINERS.check(name)
    for name in EXPLAINERS:
        explainer = EXPLAINERS.find(name)
        missing = sorted(explainer.needs - can)
        if missing:
            left_out.setdefault(name, f"it needs a model that {' and '.join(missing)}")
        elif name in SLOW and name not in asked:
            left_out[name] = f"it takes long ({explainer.cost}): ask for it with --method {name}"
        elif explainer.fit is not None and name not in asked:
            left_out[name] = f"it learns from training texts first: ask for it with --method {name}"
        elif explainer.kind != "control" or name == RANDOM or name in asked:
            found.append(name)
    return tuple(found)


def ask_within(
    subject: Audited, plan: Plan, budget: float, progress: Progress
) -> tuple[dict[str, Answered], dict[str, str]]:
    """Each question about a few texts first, then about as many as fit: (answers by experiment, what was left out)."""
    answers: dict[str, Answered] = {}
    left_out: dict[str, str] = {}
    left = WORK * budget
    for name in plan.experiments:
        if left <= 0 and answers:
            left_out[name] = f"there was no time left in {in_time(budget)}: give more with --budget"
            continue
        progress.say(f"{name}: a first look")
        found = _attempt(subject, plan, name, min(PILOTS[0], subject.size), left_out)
        if found is not None:
            answers[name] = found
            left -= found.seconds
    ranking = [name for name in answers if _importance(find(name)) == 0]
    others = [name for name in answers if name not in ranking]
    if ranking and others:
        left, kept = RANKING * left, (1 - RANKING) * left
    else:
        kept = 0.0
    for group, more in ((ranking, kept), (others, 0.0)):
        for number, name in enumerate(group):
            used = _grow(subject, plan, name, answers, left / (len(group) - number), left_out, progress)
            left -= used
        left += more
    return answers, left_out


def _grow(
    subject: Audited,
    plan: Plan,
    name: str,
    answers: dict[str, Answered],
    seconds: float,
    left_out: dict[str, str],
    progress: Progress,
) -> float:
    """Ask about more texts for as long as that fits; the seconds that it took. What is there stays if more fails."""
    used = 0.0
    while True:
        now = answers[name]
        asked = Asked(now.texts, now.seconds)
        n = next_texts(asked, seconds - used, subject.size)
        if n is None:
            return used
        if now.texts < PILOTS[1] < n and PILOTS[1] * asked.each < 0.2 * (seconds - used):
            n = PILOTS[1]  # few texts are slow, a second look tells better what many take
        progress.say(f"{name}: {n:,} of {subject.size:,} texts")
        found = _attempt(subject, plan, name, n, left_out)
        if found is None:
            left_out[name] = f"only {now.texts} texts: with {n}, {left_out[name]}"
            return used
        answers[name] = found
        used += found.seconds


def _attempt(
    subject: Audited, plan: Plan, name: str, texts: int, left_out: dict[str, str]
) -> Answered | None:
    """One experiment must not end the others: why it could not be asked is said."""
    try:
        return subject.ask(name, plan.experiments[name], texts)
    except Mistake as mistake:
        left_out[name] = str(mistake)
    except Exception as error:
        left_out[name] = f"it failed ({type(error).__name__}: {error})"
    return None


def _sample(
    subject: Audited, plan: Plan, methods: Sequence[str], seconds: float, progress: Progress
) -> tuple[Any, Any]:
    from heedful.api.audit_sample import explain_sample

    names = [name for name in dict.fromkeys(methods) if name in EXPLAINERS]
    return explain_sample(subject.model, list(subject.looked.values()), names, seconds, progress)


def _question(answer: Answered) -> Question:
    experiment = find(answer.experiment)
    words = float(answer.table["n_words"].to_numpy().sum() / max(1, len(answer.table))) * answer.texts
    by_text, by_word = experiment.forwards
    return Question(
        answer.experiment, experiment.question, experiment.paper, answer.texts, answer.seconds,
        by_text * answer.texts + by_word * words,
    )  # fmt: skip


def warn(subject: Audited, scores: Mapping[str, Any], answers: Mapping[str, Answered]) -> list[str]:
    """What a reader must know before believing any of it."""
    told = []
    truths = [example.label for example in subject.looked.values() if example.label is not None]
    counted = Counter(truths).most_common(1)
    accuracy = scores.get("accuracy")
    if not truths:
        told.append("the texts have no labels: how good the model is was not measured.")
    elif len(set(truths)) == 1:
        told.append(
            f"all texts have the label {subject.labels[truths[0]]!r}: what was found is about texts of that label alone."
        )
    elif accuracy is not None and accuracy < counted[0][1] / len(truths) + BARELY:
        told.append(
            f"the model is hardly better (accuracy {accuracy:.2f}) than always answering "
            f"{subject.labels[counted[0][0]]!r} ({counted[0][1] / len(truths):.2f}): what explains it says little."
        )
    predicted = {label for answer in answers.values() for label in set(answer.table["predicted"].to_pylist())}
    if len(predicted) == 1 and len(subject.labels) > 1:
        told.append(f"the model predicts {subject.labels[predicted.pop()]!r} for every text.")
    texts = max((answer.texts for answer in answers.values()), default=0)
    if texts < min(FEW, subject.size):
        told.append(f"only {texts} texts were asked about: intervals are wide. A larger --budget asks about more.")
    return told


FEW = 30  # texts, below which hardly anything can be told


def keep(audit: Audit) -> Path | None:
    """audit.json and audit.html in the folder that holds the rows; None where there is none."""
    from heedful.audit.record import plain
    from heedful.report.export import write_page
    from heedful.store.files import write_json

    folder = audit.subject.folder
    if folder is None:
        return None
    write_json(folder / "audit.json", plain(audit.to_json()))
    write_page(audit.to_html(), folder / "audit.html")
    return folder / "audit.json"
