"""Options of explainers, checked in one place and before a model is asked: their names, types and bounds.

A method says what it takes by its signature: `n_samples: Samples = 1000`. A number must be one (True and "5" are none),
be finite, and be whole where the signature says int; bounds stand in the annotation.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from heedful.errors import Mistake, short

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


def effective_options(
    run: Callable[..., Any], names: frozenset[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What a method really did: its defaults and what was asked. A tensor is told by its shape."""
    parameters = inspect.signature(run).parameters
    told = {name: given.get(name, parameters[name].default) for name in sorted(names)}
    return {name: f"tensor {tuple(v.shape)}" if isinstance(v, Tensor) else v for name, v in told.items()}
