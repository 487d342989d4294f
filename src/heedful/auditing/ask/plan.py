"""What an audit asks: all that applies to a model, each question about as many texts as fit into the budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.auditing.ask.subject import AuditSubject
from heedful.auditing.outcome.budget import in_time
from heedful.auditing.outcome.recommend import ATTENTION
from heedful.auditing.outcome.requirements import Requirement
from heedful.auditing.outcome.series import RANDOM
from heedful.data.edits.plant import KINDS
from heedful.errors import Mistake, one_of
from heedful.experiments import EXPERIMENTS, Experiment, find
from heedful.explainers.methods import Method, parse_methods
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.models.model import Model

ASKING = 0.9  # of the budget: then every question ends, whatever it was thought to take
FEW_LONG = 0.1  # of the texts: so many that are too long to be read at once are left out, rather than attention
PLANT = "plant"  # the setting of the experiments that --plant asks


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is to be asked: experiments with their options, the most telling first; methods; what is left out."""

    experiments: Mapping[str, Mapping[str, Any]]
    methods: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()  # experiments that were asked for by name
    places: tuple[int, ...] = ()  # of the texts, in the random order in which they are asked about
    without: tuple[str, ...] = ()  # which texts are left out, and why


def make_plan(
    subject: AuditSubject,
    bars: Sequence[Requirement] = (),
    methods: Sequence[Method] = (),
    experiments: Sequence[str] = (),
    plant: str | None = None,
    seed: int = 0,
) -> AuditPlan:
    """What applies to this model, by what it can do and by what is known of its texts. `plant`: a kind of shortcut;
    `seed`: of the order of the texts."""
    if plant is not None and plant not in KINDS:
        raise one_of("shortcut to --plant", plant, list(KINDS))
    left_out: dict[str, str] = {}
    can, long = _abilities(subject, left_out)
    by_bars = [bar.method for bar in bars if bar.method is not None]
    asked = _methods(subject.model, can, [*named_methods(methods), *by_bars], left_out)
    planting = [name for name in EXPERIMENTS if plant and PLANT in find(name).config.model_fields]
    by_name = {*map(EXPERIMENTS.check, experiments), *(bar.experiment for bar in bars), *planting}
    chosen: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS:
        experiment = find(name)
        missing = sorted(experiment.needs - can)
        if missing:
            left_out[name] = f"it needs a model {_able(missing)}"
        elif not (experiment.audit.measures or experiment.judge or name in by_name):
            left_out[name] = "it has no verdict and says nothing about explainers (--experiment NAME adds it)"
        elif experiment.audit.only_for and name not in by_name:
            left_out[name] = f"it is for {experiment.audit.only_for} (--experiment NAME adds it)"
        else:
            takes = "methods" in experiment.config.model_fields
            ranks = any(one.ranks for one in experiment.audit.measures)
            methods_of = [name for name in asked if ranks or EXPLAINERS.find(name).kind != "control"]
            options = {**experiment.audit.within_budget, **({"methods": methods_of} if takes else {})}
            options |= {PLANT: plant} if name in planting else {}
            options |= _conditions(experiment, options, bars)
            slow = sorted(experiment.audit.fast_with - can)
            if name not in by_name and slow:
                left_out[name] = f"it takes long unless a model is one {_able(slow)}; --experiment {name} adds it"
            elif name not in by_name and subject.trains(name, options):
                left_out[name] = "it has to train further models first (--experiment NAME adds it)"
            else:
                chosen[name] = options
    order = sorted(chosen, key=lambda name: importance(find(name), name in by_name))
    drawn = np.random.default_rng(seed).permutation([place for place in subject.looked if place not in long])
    limit = getattr(subject.model.network, "limit", 0)
    without = () if not long else (f"{counted(len(long))} longer than the {limit} tokens that it reads at once",)
    places = tuple(drawn.tolist())
    return AuditPlan({name: chosen[name] for name in order}, asked, left_out, frozenset(by_name), places, without)


def counted(texts: int) -> str:
    return "one text is" if texts == 1 else f"{texts:,} texts are"


def cost_of(subject: AuditSubject, experiment: str, place: int) -> float:
    """Of a text, by what the experiment declares: passes times words; only ratios count."""
    by_text, by_word = find(experiment).takes.forwards
    words = len(subject.looked[place].passage)
    return (by_text + by_word * words) * (words + 8)


def _able(names: Sequence[str]) -> str:
    """What completes "a model ...": "whose attention weights can be read"."""
    from heedful.models.network import CAPABILITIES

    return " and ".join(CAPABILITIES.get(name, f"with {name!r}") for name in names)


def _conditions(experiment: Experiment, options: Mapping[str, Any], bars: Sequence[Requirement]) -> dict[str, Any]:
    """What a bar names under a condition is asked under it, too."""
    settings = {one.setting for one in experiment.audit.measures if one.setting is not None}
    named = [bar.condition for bar in bars if bar.experiment == experiment.name and bar.condition is not None]
    return {name: tuple(dict.fromkeys((*options.get(name, ()), *named))) for name in settings if named}


def importance(experiment: Experiment, named: bool = False) -> int:
    """Those that order explainers first, then those that were asked for by name, those that tell of explainers, and
    those about attention alone."""
    measures = experiment.audit.measures
    return 0 if any(one.ranks for one in measures) else 1 if named else 2 if measures else 3


def _abilities(subject: AuditSubject, left_out: dict[str, str]) -> tuple[frozenset[str], frozenset[int]]:
    """What the model can do with these texts, and the places of those that it cannot read at once: a few are left out,
    of many there is no one attention."""
    model = subject.model
    limit, can = getattr(model.network, "limit", None), model.network.can
    if limit is None or "attends" not in can:
        return can, frozenset()
    encoded = model.encode(list(subject.looked.values()))
    places, long = np.array([*subject.looked]), []
    for indices, batch in encoded.batches(64):
        lengths = batch.passage.present.sum(1).cpu().numpy()
        long += places[np.asarray(indices)[lengths > limit]].tolist()
    if len(long) <= FEW_LONG * len(places):
        return can, frozenset(long)
    left_out[ATTENTION] = (
        f"{len(long)} of {len(places)} texts are longer than the {limit} tokens that {subject.name} reads at once, so "
        "there is no single attention over them: cut them, or leave them out of the data"
    )
    return can - {"attends", "self_attends", "edits_attention"}, frozenset()


def named_methods(methods: Sequence[Method]) -> list[str]:
    """An audit asks each with its defaults, so that all experiments say the same of it."""
    chosen = parse_methods(methods) if methods else []
    for one in chosen:
        if one.options or one.explainer.name not in EXPLAINERS:
            what = f"{one.explainer.name} with options" if one.options else f"the function {one.explainer.name}"
            raise Mistake(
                f"an audit runs methods with their defaults, but {what} was given: give the name of a method "
                f"({', '.join(EXPLAINERS)}); for options use heedful explain."
            )
    return [one.explainer.name for one in chosen]


def _methods(model: Model, can: frozenset[str], asked: Sequence[str], left_out: dict[str, str]) -> tuple[str, ...]:
    """Every explainer that fits the model, those that are slow only where they are asked for; and the control."""
    found = []
    for name in asked:
        EXPLAINERS.check(name)
    for name in EXPLAINERS:
        explainer = EXPLAINERS.find(name)
        missing = sorted(explainer.needs - can)
        if missing:
            left_out.setdefault(name, f"it needs a model {_able(missing)}")
        elif explainer.slow and name not in asked:
            left_out[name] = f"it takes long ({explainer.cost}); --method {name} adds it"
        elif explainer.fit is not None and name not in asked:
            left_out[name] = f"it has to learn from training texts first; --method {name} adds it"
        elif why := explainer.why_not(model.network):
            left_out[name] = why
        elif explainer.replaces and model.text.reserved.replacement is None:
            left_out[name] = "it replaces words, and this model has neither a mask nor an unknown word"
        elif explainer.kind != "control" or name == RANDOM or name in asked:
            found.append(name)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of an audit. What a question is given is an estimate; what there is left, all of them end with."""

    budget: float
    began: float  # by time.perf_counter

    @property
    def left(self) -> float:
        """For questions; the rest is for what each method costs and keeps, and the page."""
        return ASKING * self.budget - (time.perf_counter() - self.began)

    @property
    def spent(self) -> str:
        return f"no time was left in {in_time(self.budget)}; allow more with --budget"


def preview(subject: AuditSubject, plan: AuditPlan, budget: float) -> str:
    """What an audit would ask, how many forward passes, and the memory."""
    from heedful.engine.tasks.estimate import PROCESS
    from heedful.engine.tasks.rows import TOKENS
    from heedful.models.network import token_budget

    texts = list(subject.looked.values())
    length = sum(len(example.passage) for example in texts) / max(1, len(texts))
    controls = [name for name in plan.methods if EXPLAINERS.find(name).kind == "control"]
    lines = [
        f"{subject.name} on {subject.data}: {subject.size:,} texts of about {length:.0f} words, in {in_time(budget)}",
        f"methods: {', '.join(one for one in plan.methods if one not in controls)}",
        *([f"control: {', '.join(controls)}"] if controls else []),
    ]
    for name in plan.experiments:
        by_text, by_word = find(name).takes.forwards
        each = by_text + by_word * length
        lines.append(f"  {name}: about {each:,.0f} forward passes a text; {each * subject.size:,.0f} for all texts")
    lines += [f"left out: {name}: {why}" for name, why in plan.left_out.items()]
    network = subject.model.network
    weights = sum(p.numel() * p.element_size() for p in getattr(network, "parameters", lambda: ())())
    memory = PROCESS + weights + token_budget(network, TOKENS) * network.bytes_per_token
    lines.append(f"memory: about {memory / 1e9:.1f} GB; how many texts fit is measured while they are asked about")
    return "\n".join(lines)
