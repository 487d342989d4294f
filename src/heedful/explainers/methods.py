"""Methods as they are asked for: by name, with options of their own, or as a function; and those that nobody names.

"lrp", "attention:layer=3", ("omission", {"of": "probability"}), or any function that is called like an explainer's
`run`. The command line, Python and the audit read them here. No torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from heedful.config import read_settings
from heedful.errors import Mistake, short
from heedful.explainers.explainer import Explainer
from heedful.registry import EXPLAINERS

ALL = "all"


class Chosen(NamedTuple):
    """An explainer, and the options that were given to it alone."""

    explainer: Explainer
    options: Mapping[str, Any]

    def as_given(self) -> str | tuple[str, Mapping[str, Any]]:
        """By name, for a file or another question."""
        return (self.explainer.name, self.options) if self.options else self.explainer.name


# As a person gives it, or as it was read already.
Method = str | tuple[str | Callable[..., Any], Mapping[str, Any]] | Chosen | Explainer | Callable[..., Any]


def loadable() -> Iterator[Explainer]:
    """All that there are; one of another package that cannot be loaded is refused where somebody names it."""
    for name in EXPLAINERS:
        try:
            yield EXPLAINERS[name]
        except Mistake:
            continue


def usual() -> list[str]:
    """What is asked where nobody names a method."""
    return [one.name for one in loadable() if one.usual and not one.is_control]


def usual_control() -> Explainer:
    """The control that others are compared with."""
    return next(one for one in loadable() if one.usual and one.is_control)


def parse_methods(given: object, all_of: Callable[[], Iterable[str]] = lambda: EXPLAINERS) -> list[Chosen]:
    """Methods as they were given, each once; "all" alone stands for `all_of`."""
    several = [given] if isinstance(given, str) and given == ALL else _as_sequence(given)
    if not several:
        raise Mistake(f"methods is empty: name one of {', '.join(EXPLAINERS)}, or leave it out for the usual ones.")
    if ALL in [one for one in several if isinstance(one, str)]:
        if len(several) > 1:
            raise Mistake("'all' is every method, and another was given beside it: leave out either of them.")
        several = list(all_of())
    chosen = [parse_method(one) for one in several]
    names = [one.explainer.name for one in chosen]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise Mistake(
            f"the method {twice[0]!r} is given twice, but its scores are identified by its name: give it once, and "
            "for the other options in a second explanation."
        )
    return chosen


def parse_method(given: object) -> Chosen:
    """One of them."""
    if isinstance(given, Explainer):
        return Chosen(given, {})
    if isinstance(given, str):
        return _parse_text(given)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        chosen = parse_method(given[0])
        return Chosen(chosen.explainer, _checked(chosen.explainer, {**chosen.options, **given[1]}))
    if callable(given):
        return Chosen(explainer_of(given), {})
    raise Mistake(
        f"{short(given)} is not a method: give a name, a name with its options like ('lrp', {{'epsilon': 0.01}}), or a "
        f"function that explains; names are {', '.join(EXPLAINERS)}."
    )


def explainer_of(function: Callable[..., Any]) -> Explainer:
    """A function of somebody's that is called like an explainer's `run`."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    asked, options = parameters[:3], parameters[3:]
    by_place = [p for p in asked if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    needed = [p for p in options if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(by_place) != 3 or needed:
        raise Mistake(
            f"{short(name)} cannot explain: a function that is given as a method is called as "
            "function(network, batch, target), all else has a default, and it returns heedful.explainers.Scores."
        )
    if name in EXPLAINERS:
        raise Mistake(f"the function {name!r} has the name of a method that there is: give it another name.")
    return Explainer(name, "saliency", True, "not declared", function, citation="given as a function")


def _as_sequence(given: object) -> list[Any]:
    if isinstance(given, str | bytes):
        raise Mistake(f"give a list of methods, not one text: methods=[{short(given)}].")
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        raise Mistake(f"give a list of methods, not one method: methods=[{short(given)}].")
    if not isinstance(given, Iterable) or isinstance(given, Mapping | set | frozenset):
        raise Mistake(f"give a list of methods, not {short(given)}.")
    return list(given)


def _parse_text(text: str) -> Chosen:
    """ "lrp", or "integrated_gradients:n_steps=50,method=gausslegendre"."""
    name, colon, rest = text.partition(":")
    explainer = EXPLAINERS.find(name)
    if not colon:
        return Chosen(explainer, {})
    options = read_settings(
        _split(rest), f"options of {name}:", f"{name}:{next(iter(sorted(explainer.options)), 'key')}=VALUE"
    )
    return Chosen(explainer, _checked(explainer, options))


def _checked(explainer: Explainer, options: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in options:
        if name not in explainer.options:
            raise no_option(name, [explainer])
    return options


def _split(text: str) -> list[str]:
    """At the commas that are in no bracket and in no quotes."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def options_for(chosen: Sequence[Chosen], shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each method is called with: of the `shared` options those that it takes, and its own, which come first.

    An option that none takes, and one of another type, is a mistake.
    """
    for name in shared:
        if not any(name in one.explainer.options for one in chosen):
            raise no_option(name, [one.explainer for one in chosen])
    return [
        one.explainer.parse({n: value for n, value in shared.items() if n in one.explainer.options} | {**one.options})
        for one in chosen
    ]


def no_option(name: str, explainers: Sequence[Explainer]) -> Mistake:
    """What was given, what is allowed, and what to type."""
    allowed = {option.name: option for one in explainers for option in one.describe()}
    if len(explainers) == 1:
        known = "; ".join(str(allowed[key]) for key in sorted(allowed)) or "no option"
        said = f"{explainers[0].name} does not take the option {short(name)}; it takes {known}"
    else:
        names, known = ", ".join(one.name for one in explainers), ", ".join(sorted(allowed)) or "no option"
        said = f"none of {names} takes the option {short(name)}; they take {known}"
    if not allowed:
        return Mistake(f"{said}: leave it out.")
    near = get_close_matches(str(name), sorted(allowed), n=1, cutoff=0.0)[0]
    owner = next(one.name for one in explainers if near in one.options)
    return Mistake(f'{said}: type {owner}:{near}=VALUE, or in Python ("{owner}", {{"{near}": VALUE}}).')
