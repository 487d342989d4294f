"""Options of explainers: their names, types, defaults and bounds are those of a method's signature; no torch.

`n_samples: Samples = 1000`. They are checked in one place and before a model is asked. A number must be one (True and
"5" are not), be finite, and be whole where the signature says int; bounds stand in the annotation.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from heedful.errors import Mistake, short

# Whole numbers that are asked for in memory or in passes: far beyond every use, and below what no machine can hold.
Samples = Annotated[int, Field(le=1_000_000)]
Steps = Annotated[int, Field(le=10_000)]
STRICT = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)

# What an option says of itself, where neither its explainer (`Explainer.help`) nor its annotation does.
HELP: Mapping[str, str] = {
    "absolute": "drop the sign of the scores",
    "baselines": "where the path starts: this token for every word, a number, or a tensor",
    "change": "what a removal is scored by: the fall of the explained score, or the total variation distance",
    "epsilon": "stabiliser added to denominators",
    "heads": "numbers of the heads to average; None: all",
    "hold_attention": "let no gradient flow through the attention weights",
    "internal_batch_size": "texts in one forward pass; None: as many as are fastest",
    "kind": "which attention of an encoder-decoder; None: cross-attention",
    "layer": "the layer whose attention is read; -1: the last",
    "max_permutations": "largest number of orders; None: four times n_permutations",
    "max_samples": "largest number of edited texts; None: four times n_samples",
    "max_steps": "largest number of steps if a tolerance is set",
    "max_tokens": "longer texts are refused",
    "method": "how the integral is approximated",
    "n_permutations": "orders of the words to begin with",
    "n_samples": "edited texts to begin with",
    "n_steps": "steps of the integral",
    "of": "the output to explain",
    "operator": "how words are removed",
    "parts": "the texts to explain",
    "row": "the token that looks; None: the one that the classifier reads",
    "seed": "seed of the random draws",
    "state_tolerance": "largest distance at which a state counts as equal to the original's",
    "token": "the id put in the place of a word; None: the mask, or the unknown word",
    "tolerance": "largest error allowed, as a share",
}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a method, as its signature has it."""

    name: str
    type: str  # in words: "a whole number, at most 10,000", "logit or probability"
    default: str
    help: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.type}; default {self.default})"


def describe_option(run: Callable[..., Any], name: str, line: str | None = None) -> Option:
    """`line` is its help, where the method has its own."""
    annotation, default = _annotation(_function(run), name), inspect.signature(run).parameters[name].default
    said = [one.description for one in _metadata(annotation) if isinstance(one, FieldInfo) and one.description]
    return Option(name, in_words(annotation), str(default), line or " ".join(said) or HELP.get(name, ""))


def in_words(annotation: Any) -> str:
    """A type as a person would say it."""
    return join_or(_alternatives(annotation))


def _alternatives(annotation: Any) -> list[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return [", ".join([in_words(arguments[0]), *_bounds(annotation)])]
    if origin in (Union, UnionType):
        ordered = sorted(arguments, key=lambda one: one is NoneType)  # none comes last
        return [said for one in ordered for said in _alternatives(one)]
    if origin is Literal:
        return [str(one) for one in arguments]
    if origin in (tuple, list, Sequence):
        return [f"a list of {len(arguments)}" if origin is tuple else "a list"]
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none", Any: "any"}
    return [names.get(annotation, f"a {getattr(annotation, '__name__', 'value').lower()}")]


def join_or(parts: Sequence[str]) -> str:
    """ "a, b or c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _bounds(annotation: Any) -> list[str]:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    limits = [limit for one in _metadata(annotation) for limit in getattr(one, "metadata", [one])]
    return [
        f"{said} {getattr(limit, name):,}" for limit in limits for name, said in words.items() if hasattr(limit, name)
    ]


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return tuple(getattr(annotation, "__metadata__", ()))


def check_option(method: str, run: Callable[..., Any], name: str, value: Any) -> Any:
    """The value as the method is to be given it (numpy's scalars as Python's), or the sentence that says what it is."""
    value = value.item() if isinstance(value, np.generic) else value
    for number in value if isinstance(value, list | tuple) else (value,):
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise Mistake(f"{method}: {name}: a number as large as that is a slip of the hand.")
    try:
        return option_type(_function(run), name).validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"].replace("Input should", "it should")
        allowed = describe_option(run, name).type
        raise Mistake(f"{method}: {name}={short(value)}: {said}; {name} is {allowed}.") from None


@cache
def option_type(run: Callable[..., Any], name: str) -> TypeAdapter[Any]:
    """What the signature says; anything, where it says nothing, or what only a type checker can see."""
    return TypeAdapter(_annotation(run, name), config=STRICT)


def _annotation(run: Callable[..., Any], name: str) -> Any:
    annotation = inspect.signature(run).parameters[name].annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, vars(sys.modules[run.__module__]))  # of the method's own source
        except NameError:
            return Any
    return Any if annotation is inspect.Parameter.empty else annotation


def _function(run: Callable[..., Any]) -> Callable[..., Any]:
    return run.func if isinstance(run, partial) else run
