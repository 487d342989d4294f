"""What an explainer is: a function of (model, batch, target), and what it declares about itself; no torch.

The distinction between sensitivity (how much a change of the input changes the output) and saliency (the
marginal effect of the input that is there) is part of the type: Bastings & Filippova 2020, section 3.1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.explainers.options import Option, check_option, describe_option
from heedful.records import Axes, Batch, MethodKind, Tokens

if TYPE_CHECKING:
    from torch import Tensor

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one method for one batch: a number for each position, 0 on padding and markers.

    `query` is None where the method says nothing about the query, or the task has none.
    `gap` and `scale` are what the method's own axiom leaves over, and what it is to be judged against:
    for integrated gradients sum_i IG_i - (f(x) - f(b)), against |f(x) - f(b)|.
    """

    passage: Tensor  # (batch, length)
    query: Tensor | None = None  # (batch, query length)
    gap: Tensor | None = None  # (batch,)
    scale: Tensor | None = None  # (batch,)
    forward_passes: int | Tensor = 0  # texts sent through the model for the batch, or (batch,) for each text
    backward_passes: int | Tensor = 0
    special: Tensor | None = None  # (batch,) sum of the scores of special tokens, which are not words
    spread: Tensor | None = (
        None  # (batch,) of what is sampled: the largest standard error, as a share of the largest score
    )
    rest: Mapping[str, Tensor] = field(default_factory=dict)  # (batch,) by name: what fell to no token at all
    # Of two axes, by a method that declares them (`Explainer.axes`). `all` are the positions of the passage, then of
    # the query where the scores have one. Of two positions the pair's number stands once, at (i, j) with i <= j.
    pairs: Tensor | None = None  # (batch, all, all)
    layers: Tensor | None = None  # (batch, layers, all)


def scores_of_tokens(
    passage: Tensor, query: Tensor | None, batch: Batch, forward_passes: int, backward_passes: int = 0
) -> Scores:
    """Values at every token (batch, length) as scores of words; `special` is what the other tokens got."""

    def others(values: Tensor, tokens: Tokens) -> Tensor:
        return (values * (tokens.present & ~tokens.mask)).sum(1)  # (batch,)

    special = others(passage, batch.passage)
    if query is not None and batch.query is not None:
        special = special + others(query, batch.query)
        query = query * batch.query.mask
    return Scores(
        passage=passage * batch.passage.mask,
        query=query,
        forward_passes=forward_passes,
        backward_passes=backward_passes,
        special=special,
    )


@dataclass(frozen=True, slots=True)
class Axiom:
    """What `gap` measures, the share of `scale` that may be missing, and what to say when more is.

    Up to `kept` of it the axiom is kept, above `limit` broken; between the two, what is missing is said.
    """

    name: str  # "completeness gap"
    limit: float
    sentence: str  # with {missed} for the share in percent
    kept: float = 0.05  # as much as scores are read to: a tenth of a bar cannot be seen


@dataclass(frozen=True, slots=True)
class Size:
    """Of a text as a model reads it: what the cost of an explanation depends on."""

    words: tuple[int, ...]  # of the passage, and of the query where the model reads one
    tokens: int  # of all parts together, special tokens included
    heads: int = 1  # of one layer of the model


@dataclass(frozen=True, slots=True)
class Passes:
    """Texts sent through the model for the explanation of one text, by an explainer with its defaults."""

    forward: int = 0
    backward: int = 0
    times: int = 1  # up to so many times as many, where it goes on until its scores are known well enough

    @property
    def most(self) -> int:
        """The most there can be."""
        return self.times * (self.forward + self.backward)


class Loaded(Generic[F]):
    """A field that holds a function, or where one stands ("module:name"): that is loaded when it is first asked for, so
    that what an explainer declares can be read without torch. `optional`: without one it is None."""

    def __init__(self, optional: bool = False) -> None:
        self.optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __set__(self, explainer: object, function: F | str) -> None:
        vars(explainer)[self.name] = function

    def __get__(self, explainer: object, owner: type | None = None) -> F:
        if explainer is None:  # a dataclass asks for the default
            if self.optional:
                return cast(F, None)
            raise AttributeError(self.name)
        function = vars(explainer)[self.name]
        if isinstance(function, str):
            module, name = function.split(":")
            function = vars(explainer)[self.name] = getattr(import_module(module), name)
        return cast(F, function)


TYPICAL = Size(words=(20,), tokens=22, heads=12)  # what passes are compared at: a sentence, in a model of twelve heads
MANY_PASSES = 1000  # for one such sentence: more is slow
OF_FEW_MODELS = frozenset({"selects", "compares"})  # abilities that make a kind of model: others are not offered these
HANDED = frozenset({"state", "output", "progress"})  # keyword arguments that whoever runs a method gives, not a person


@dataclass(frozen=True)
class Explainer:
    """A method by name, with all that the rest of heedful knows of it: no other module holds a list of methods.

    `run(network, batch, target, **options) -> Scores`: target (batch,) holds a label for each text;
    options are keyword arguments with defaults, named as in Captum where Captum has them. It is the function, or where
    it stands: "package.module:name".
    A method that is trained has `fit(network, batches, rng) -> state`, arrays by name, done once for a model and
    kept with its run; `run` is then given it as `state`.
    `passes` is `cost` as a function, so that costs can be compared before, and without, an explanation.
    """

    name: str
    kind: MethodKind
    signed: bool
    cost: str  # passes for a text of n words: "1 forward", "n + 1 forward"
    run: Loaded[Callable[..., Scores]] = Loaded()
    removal: str | None = None  # what "absent" means to it
    axes: Axes = ""  # what its scores have beside a position: a second position ("pairs"), or a layer ("layers")
    axiom: Axiom | None = None
    needs: frozenset[str] = frozenset({"predicts"})  # what a model must be able to do (models/network.py)
    fit: Callable[..., Mapping[str, NDArray[Any]]] | None = None
    version: str = "1"  # of `fit`: changes whenever it would learn something else
    passes: Loaded[Callable[[Size], Passes] | None] = Loaded(optional=True)  # with its defaults; None: it does not say
    title: str = ""  # what people see; empty: its name with spaces
    citation: str = ""  # where it comes from, for the table of methods
    usual: bool = False  # asked where nobody names a method; of the controls: the one that others are compared with
    one_word: bool = False  # a score is what the output loses when that one word is changed
    replaces: bool = False  # another word, a mask or the unknown word, takes the place of words
    takes_long: bool = False  # for another reason than its passes
    # Why it cannot explain a network that has all it needs, in one sentence, empty where it can; None: it always can.
    refusal: Loaded[Callable[[Any], str] | None] = Loaded(optional=True)
    help: Mapping[str, str] = field(default_factory=dict)  # of its own options, one line each (options.HELP has others)
    # Options with which it goes on until its axiom holds, within a bound: those of an explanation and of an audit,
    # unless one of them is given. Experiments ask with the defaults of the signature: their rows stay what they are.
    until_it_holds: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What people see."""
        return self.title or self.name.replace("_", " ")

    @property
    def is_control(self) -> bool:
        """Whether it knows nothing of the model: it is there to be compared with."""
        return self.kind == "control"

    @property
    def in_layers(self) -> bool:
        """Whether it reads the attention inside several layers, in which every token attends."""
        return "self_attends" in self.needs

    @property
    def slow(self) -> bool:
        """Whether a sentence takes more than MANY_PASSES, or minutes for another reason: only where it is named."""
        return self.takes_long or (self.passes is not None and self.passes(TYPICAL).most > MANY_PASSES)

    def with_state(self, state: Mapping[str, NDArray[Any]] | None) -> Explainer:
        """The explainer that knows what was learnt; itself, where it does not learn."""
        if self.fit is None:
            return self
        if state is None:
            raise Mistake(
                f"{self.name} learns from training texts: give the run folder of the model, not a loaded model."
            )
        return replace(self, fit=None, run=partial(self.run, state=state))

    @property
    def keywords(self) -> frozenset[str]:
        """The keyword arguments that `run` takes, without those that a `partial` has fixed."""
        parameters = inspect.signature(self.run).parameters.values()
        fixed = self.run.keywords if isinstance(self.run, partial) else {}
        named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
        return frozenset(named - set(fixed))

    @property
    def options(self) -> frozenset[str]:
        """Those that a person can choose; the others are given by whoever runs the method."""
        return self.keywords - HANDED

    def describe(self) -> tuple[Option, ...]:
        """Its options, with the types, defaults and bounds of its signature."""
        return tuple(describe_option(self.run, name, self.help.get(name)) for name in sorted(self.options))

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked of it, by name; an option that it does not take, or of another type, is a mistake."""
        if unknown := sorted(set(given) - self.options):
            from heedful.explainers.methods import no_option

            raise no_option(unknown[0], [self])
        return {name: check_option(self.name, self.run, name, value) for name, value in given.items()}

    def holding(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked of it, and where that leaves it open, as much work as its axiom takes."""
        return dict(given) if self.until_it_holds.keys() & given.keys() else {**self.until_it_holds, **given}

    def check(self, can: frozenset[str], model: str = "this model") -> None:
        """Refuse by name a model that lacks what the method needs."""
        from heedful.models.network import require

        require(self.needs, can, self.name, model)

    def fits(self, network: Any) -> bool:
        """Whether a network can be explained so."""
        return self.needs <= network.can and not self.why_not(network)

    def why_not(self, network: Any) -> str:
        """Why a network that has all it needs cannot be explained so; empty: it can."""
        return "" if self.refusal is None else self.refusal(network)
