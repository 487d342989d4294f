"""How a classifier's logits are read, and what its labels are called: from its configuration and what the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.data.labels import check_names
from heedful.errors import Mistake, one_of, short
from heedful.models.link import IDENTITY, LOG_ODDS, SIGMOIDS, SOFTMAX, Link

PROBLEMS = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)  # the library's own names


def read_labels(
    config: Any, labels: Sequence[str] | None = None, problem_type: str | None = None
) -> tuple[Link, tuple[str, ...]]:
    """The link and one name for each label.

    One logit is a number that is predicted (regression), as the library has it, unless the problem is of labels, or two
    labels are given for it: then it is the log-odds of the second.
    """
    problem = problem_type or getattr(config, "problem_type", None)
    if problem is not None and problem not in PROBLEMS:
        raise one_of("problem type", problem, list(PROBLEMS))
    if labels is not None:
        check_names(labels)
    own = _own_labels(config, None if labels is None else len(labels))
    given = None if labels is None else tuple(labels)
    if given is not None and len(set(given)) < len(given):
        raise Mistake(f"two labels have the same name: {', '.join(given)}.")
    if len(own) == 1:
        if given is not None and len(given) == 2 and problem != "regression":
            return LOG_ODDS, given
        if problem in PROBLEMS[:2]:
            name = _named(given, own)[0]
            return LOG_ODDS, (f"not {name}", name)
        return IDENTITY, _named(given, own)
    if problem == "multi_label_classification":
        return SIGMOIDS, _named(given, own)
    return (IDENTITY if problem == "regression" else SOFTMAX), _named(given, own)


def _own_labels(config: Any, n_given: int | None) -> tuple[str, ...]:
    names = getattr(config, "id2label", None)
    if not names:
        if n_given is None:
            raise Mistake("the model does not say what its labels are: give labels=[...].")
        return tuple(f"LABEL_{i}" for i in range(n_given))
    try:
        numbered = {int(i): str(name) for i, name in names.items()}
    except (AttributeError, TypeError, ValueError):
        raise Mistake(f"the model's labels are not numbered: its id2label is {short(names)}.") from None
    if sorted(numbered) != list(range(len(numbered))):
        raise Mistake(
            f"the model's labels are numbered {sorted(numbered)}, not from 0 on: its id2label is damaged."
        )
    own = tuple(numbered[i] for i in range(len(numbered)))
    if n_given is not None:
        return own
    if len(set(own)) < len(own):
        raise Mistake(f"two of the model's labels have the same name ({', '.join(own)}): give labels=[...].")
    told = getattr(config, "label2id", None)
    numbers: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    for i, name in enumerate(own):
        if numbers.get(name, i) not in (i, str(i)):
            raise Mistake(
                f"the model calls its label {i} {name!r} (id2label), and gives {name!r} the number {numbers[name]} "
                "(label2id): give labels=[...] in the order of its logits."
            )
    return own


def _named(given: tuple[str, ...] | None, own: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return own
    if len(given) != len(own):
        raise Mistake(
            f"{len(given)} labels were given ({', '.join(given)}), and the model has {len(own)} ({', '.join(own)})."
        )
    return given
