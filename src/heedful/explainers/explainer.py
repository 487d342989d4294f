"""What an explainer is: a function of (model, batch, target), and what it declares about itself.

The distinction between sensitivity (how much a change of the input changes the output) and saliency (the
marginal effect of the input that is there) is part of the type: Bastings & Filippova 2020, section 3.1.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from heedful.errors import Mistake, short
from heedful.models.network import require
from heedful.records import Batch, MethodKind, Tokens


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
    special: Tensor | None = None  # (batch,) sum of the scores of special tokens, which are no words
    spread: Tensor | None = (
        None  # (batch,) of what is sampled: the largest standard error, as a share of the largest score
    )
    rest: Mapping[str, Tensor] = field(default_factory=dict)  # (batch,) by name: what fell to no token at all


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
    """What `gap` measures, the share of `scale` that may be missing, and what to say when more is."""

    name: str  # "completeness gap"
    limit: float
    sentence: str  # with {missed} for the share in percent


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


@dataclass(frozen=True, slots=True)
class Explainer:
    """A method by name, with what it declares.

    `run(network, batch, target, **options) -> Scores`: target (batch,) holds a label for each text;
    options are keyword arguments with defaults, named as in Captum where Captum has them.
    A method that is trained has `fit(network, batches, rng) -> state`, arrays by name, done once for a model and
    kept with its run; `run` is then given it as `state`.
    `passes` is `cost` as a function, so that costs can be compared before, and without, an explanation.
    """

    name: str
    kind: MethodKind
    signed: bool
    cost: str  # passes for a text of n words: "1 forward", "n + 1 forward"
    run: Callable[..., Scores]
    removal: str | None = None  # what "absent" means to it
    axiom: Axiom | None = None
    needs: frozenset[str] = frozenset({"predicts"})  # what a model must be able to do (models/network.py)
    fit: Callable[..., Mapping[str, NDArray[Any]]] | None = None
    version: str = "1"  # of `fit`: changes whenever it would learn something else
    passes: Callable[[Size], Passes] | None = None  # with its defaults; None: it does not say
    # Why it cannot explain a network that has all it needs, in one sentence; empty: it can.
    refusal: Callable[[Any], str] = lambda network: ""

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
        """The keyword arguments that `run` takes; those that a `partial` has fixed are none."""
        parameters = inspect.signature(self.run).parameters.values()
        fixed = self.run.keywords if isinstance(self.run, partial) else {}
        named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
        return frozenset(named - set(fixed))

    @property
    def options(self) -> frozenset[str]:
        """Those that a person can choose; the others are given by whoever runs the method."""
        return self.keywords - {"state", "output", "progress"}

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked of it, by name; an option that it does not take, or of another type, is a mistake."""
        if unknown := sorted(set(given) - self.options):
            known = ", ".join(sorted(self.options)) or "none"
            raise Mistake(f"{self.name} does not take the option {unknown[0]!r}. It takes: {known}.")
        return {name: check_option(self.name, self.run, name, value) for name, value in given.items()}

    def check(self, can: frozenset[str], model: str = "this model") -> None:
        """Refuse by name a model that lacks what the method needs."""
        require(self.needs, can, self.name, model)

    def fits(self, network: Any) -> bool:
        """Whether a network can be explained so."""
        return self.needs <= network.can and not self.refusal(network)


# Options of explainers, checked in one place and before a model is asked: their names, types and bounds.
#
# A method says what it takes by its signature: `n_samples: Samples = 1000`. A number must be one (True and "5" are
# none), be finite, and be whole where the signature says int; bounds stand in the annotation.


# Whole numbers that are asked for in memory or in passes: far beyond every use, and below what no machine can hold.
Samples = Annotated[int, Field(le=1_000_000)]
Steps = Annotated[int, Field(le=10_000)]
STRICT = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)


def check_option(method: str, run: Callable[..., Any], name: str, value: Any) -> Any:
    """The value as the method is to be given it (numpy's scalars as Python's), or the sentence that says what it is."""
    value = value.item() if isinstance(value, np.generic) else value
    for number in value if isinstance(value, list | tuple) else (value,):
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise Mistake(f"{method}: {name}: a number as large as that is a slip of the hand.")
    try:
        return option_type(run.func if isinstance(run, partial) else run, name).validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"].replace("Input should", "it should")
        raise Mistake(f"{method}: {name}={short(value)}: {said}.") from None


@cache
def option_type(run: Callable[..., Any], name: str) -> TypeAdapter[Any]:
    """What the signature says; anything, where it says nothing, or what only a type checker can see."""
    annotation = inspect.signature(run).parameters[name].annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, vars(sys.modules[run.__module__]))  # of the method's own source
        except NameError:
            annotation = Any
    return TypeAdapter(Any if annotation is inspect.Parameter.empty else annotation, config=STRICT)


def effective_options(run: Callable[..., Any], names: frozenset[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a method really did: its defaults and what was asked. A tensor is told by its shape."""
    parameters = inspect.signature(run).parameters
    told = {name: given.get(name, parameters[name].default) for name in sorted(names)}
    return {name: f"tensor {tuple(v.shape)}" if isinstance(v, Tensor) else v for name, v in told.items()}
