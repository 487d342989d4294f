"""The variants of a study in words and tables: what is found by the tests (variants.py), and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.experiments.framework.certainty import over_seeds
from heedful.experiments.framework.comparison import SETTING, Evidence, Table, beside
from heedful.experiments.framework.description import Setting, number_at
from heedful.experiments.framework.verdict import BELIEVE, HEADLINE_RULE, Verdict, grade_of
from heedful.experiments.framework.verdict import MARKS as MARKS_OF
from heedful.measure.levels import OverRuns
from heedful.measure.statistics import between_seeds
from heedful.studies.study import Study, VariantQuestion
from heedful.studies.variants import Change, Effect

NOTE = (
    "The first row has the means of `{first}`, the others their paired differences from it: the same texts, in runs "
    "with the same seeds, with 95% intervals over texts and seeds ({runs}). ✓ better and ✗ worse are findings (0 is "
    "outside the interval, and q ≤ .05 among all {tests} differences of this page); the rest is undecided, which is "
    "not the same as no difference. Texts in which a measure is undefined in one of the runs are "
    "left out. Less is better for: {falling}."
)
VERDICTS = (
    "What each experiment says of the attention over all seeds: ✓ for it, ~ mixed, ✗ against, ± undecided (the "
    f"interval over texts and seeds holds a bar), ? not told. {HEADLINE_RULE}"
)
MARKS: Mapping[Change, str] = {"better": " ✓", "worse": " ✗", "undecided": ""}


def answers(study: Study, effects: Sequence[Effect]) -> list[str]:
    """Every question of the study with what each variant was found to do, and what is left of what it was judged by."""
    lines: list[str] = []
    for question in study.questions:
        lines += [f"**{question.title}**", "", *_answer(study, question, effects), ""]
    judged = [f"- {sentence}" for sentence in _judged(study, effects)]
    if judged:
        lines += ["**Which only moves the measure that it was judged by?**", "", *judged, ""]
    return lines


def _answer(study: Study, question: VariantQuestion, effects: Sequence[Effect]) -> Iterator[str]:
    asked = [effect for effect in effects if effect.asked.measure.key in question.measures]
    for variant in study.variants:
        own = [effect for effect in asked if effect.variant == variant]
        if own:
            better, worse = (_listed(own, change) for change in ("better", "worse"))
            told = [f"{word} in {say}" for word, say in (("better", better), ("worse", worse)) if say]
            yield f"- `{variant}`: {'; '.join(told) or 'nothing is found'} ({_tests(own)})."


def _listed(effects: Sequence[Effect], change: Change) -> str:
    """ "Δŷ shuffled on sst +0.10 (+0.05 to +0.15) and 20news ..."."""
    found = [effect for effect in effects if effect.found == change]
    titles = dict.fromkeys(effect.asked.measure.short for effect in found)
    return ", ".join(
        f"{title} on "
        + " and ".join(f"{effect.dataset} {effect}" for effect in found if effect.asked.measure.short == title)
        for title in titles
    )


def _tests(effects: Sequence[Effect]) -> str:
    undecided = sum(effect.found == "undecided" for effect in effects)
    return f"{len(effects)} test{'s' * (len(effects) != 1)}, {undecided} undecided"


def _judged(study: Study, effects: Sequence[Effect]) -> Iterator[str]:
    """What a variant does to the measures that it was judged by, and to all others but costs."""
    costs = {key for question in study.questions if question.cost for key in question.measures}
    for name, variant in study.variants.items():
        mine = [effect for effect in effects if effect.variant == name and effect.asked.measure.key not in costs]
        own = [effect for effect in mine if effect.asked.measure.key in variant.judged_by]
        rest = [effect for effect in mine if effect not in own]
        if not own:
            continue
        moved, more, worse = (
            sum(effect.found == change for effect in some)
            for some, change in ((own, "better"), (rest, "better"), (rest, "worse"))
        )
        if not moved:
            verdict = "is not found to move it"
        elif not more:
            verdict = "moves only that"
        else:
            verdict = "moves more than that" if more > worse else "moves others, too, not more often to the better"
        titles = " and ".join(dict.fromkeys(effect.asked.measure.short for effect in own))
        yield (
            f"`{name}`, judged by {titles}, {verdict}: better in {moved} of {len(own)} tests of it; of the {len(rest)} "
            f"tests of other measures better in {more}, worse in {worse}."
        )


def overview_table(study: Study, effects: Sequence[Effect]) -> Table | None:
    """Variants x questions: how many differences were found to be better and worse, of how many."""
    rows = []
    for variant in dict.fromkeys(effect.variant for effect in effects):
        cells = []
        for question in study.questions:
            asked = [e for e in effects if e.variant == variant and e.asked.measure.key in question.measures]
            better, worse = (sum(effect.found == change for effect in asked) for change in ("better", "worse"))
            cells.append(f"{better} ✓, {worse} ✗ of {len(asked)}" if asked else "–")
        rows.append((variant, *cells))
    header = ("variant", *(question.title for question in study.questions))
    first = next(iter(study.variants))
    note = f"Differences from `{first}` that are findings: better ✓, worse ✗, of all that were tested."
    return Table("Findings, by question", header, tuple(rows), note) if rows else None


def variant_tables(study: Study, effects: Sequence[Effect]) -> list[Table]:
    """For each dataset: variants x measures."""
    first = next(iter(study.variants))
    keys = [key for question in study.questions for key in question.measures]
    made = []
    for dataset in dict.fromkeys(effect.dataset for effect in effects):
        here = {(e.variant, e.asked.measure.key): e for e in effects if e.dataset == dataset}
        shown = [key for key in dict.fromkeys(keys) if any(at[1] == key for at in here)]
        measures = {key: next(e for at, e in here.items() if at[1] == key).asked.measure for key in shown}
        rows = [(first, *(_mean(_any(here, key).reference) for key in shown))]
        for variant in dict.fromkeys(at[0] for at in here):
            cells = (here.get((variant, key)) for key in shown)
            rows.append((variant, *("–" if e is None else f"{e}{MARKS[e.found]}" for e in cells)))
        falling = ", ".join(m.short for m in measures.values() if not m.rising) or "none"
        runs = _runs([e.change.runs for e in here.values()])
        note = NOTE.format(first=first, runs=runs, tests=len(effects), falling=falling)
        header = ("variant", *(measures[key].short for key in shown))
        made.append(Table(f"{dataset}: what each variant changes", header, tuple(rows), note))
    return made


def verdict_table(runs: Sequence[tuple[Setting, Sequence[Mapping[str, Verdict]]]]) -> Table | None:
    """One verdict for each variant: what every question says over its seeds, and the headline of all."""
    asked = dict.fromkeys(name for _, here in runs for one in here for name in one)
    rows = []
    for setting, here in runs:
        over = {name: over_seeds([one[name] for one in here if name in one]) for name in asked}
        known = {name: verdict for name, verdict in over.items() if verdict is not None}
        if known:
            marks = (MARKS_OF[known[name].grade] if name in known else "–" for name in asked)
            rows.append((*setting, BELIEVE[grade_of(list(known.values()))], *marks))
    header = (*SETTING[:2], "attention, variant", "believe its attention?", *asked)
    return Table("One verdict for each variant", header, tuple(rows), VERDICTS) if rows else None


def _any(here: Mapping[tuple[str, str], Effect], key: str) -> Effect:
    return next(effect for at, effect in here.items() if at[1] == key)


def _mean(found: OverRuns) -> str:
    return f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"


def _runs(many: Sequence[int]) -> str:
    least, most = min(many), max(many)
    return f"{least} seed{'s' * (least != 1)}" if least == most else f"{least} to {most} seeds"


def published_table(study: Study, found: Mapping[str, Evidence]) -> Table | None:
    """Every published number of a variant beside ours, by experiment."""
    cells: list[Any] = []
    for experiment, evidence in found.items():
        for setting, summaries in evidence:
            for path in dict.fromkeys(row.statistic for row in evidence.published if row.setting == setting):
                ours = [number for one in summaries if (number := number_at(one, path)) is not None]
                if ours:
                    about = (*setting, f"{experiment}: {path}")
                    cells.append((about, between_seeds(ours), evidence.theirs(setting, path)))
    sources = [source.name for source in study.sources]
    header = (*SETTING[:2], "attention, variant", "statistic", "ours", *sources, "ours - published (± expected)")
    return Table("Beside what was published", header, tuple(beside(cells))) if cells else None
