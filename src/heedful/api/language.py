"""Language models: which words of a prompt made the model say that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heedful.errors import Mistake, short
from heedful.explanation.explanation import Explanation

if TYPE_CHECKING:
    from heedful.models.language.model import Chat, LanguageModel
    from heedful.records import Example

Prompts = Sequence["str | Chat"]


def questions(
    model: LanguageModel,
    prompts: Prompts,
    say: str | Sequence[str] | None = None,
    instead: str | Sequence[str] | None = None,
    tokens: int | None = None,
) -> list[Example]:
    """An example for each token that is asked about, prompt after prompt.

    say: what the model says, or is made to say; None: the word that it would say next, or `tokens` tokens. instead:
    what it could have said; then the one token is asked about in which the two begin to differ. Both may be one text
    for all prompts, or one for each.
    """
    if isinstance(prompts, str) or not prompts:
        raise Mistake("give a list of prompts, not one string." if isinstance(prompts, str) else "there is no prompt.")
    if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1):
        raise Mistake(f"tokens={short(tokens)}: ask for at least 1 token, and a whole number of them.")
    if tokens is not None and say is not None:
        raise Mistake("what the model says is given (say), so there is no number of tokens to choose.")
    says, insteads = each(say, len(prompts), "say"), each(instead, len(prompts), "instead")
    made: list[Example] = []
    for i, given in enumerate(prompts):
        prompt, name = model.prompt(given), f"prompt {i + 1}"
        text, other = says[i], insteads[i]
        if text is not None:
            ids = model.tokens_of(prompt, text)
        elif tokens is None:
            ids = model.next_word(prompt)
        else:
            ids = model.generate(prompt, tokens)
        foil = None if other is None else model.tokens_of(prompt, other)
        made += model.steps(prompt, ids, foil, name)
    return made


def each(given: str | Sequence[str] | None, n: int, name: str) -> list[str | None]:
    """One for each prompt."""
    if given is None or isinstance(given, str):
        return [given] * n
    if len(given) != n:
        raise Mistake(f"{n} prompts were given, and {len(given)} texts for {name}: give one for all, or one for each.")
    return list(given)


def explain_language(
    model: LanguageModel,
    prompts: Prompts,
    methods: Sequence[Any],
    *,
    say: str | Sequence[str] | None = None,
    instead: str | Sequence[str] | None = None,
    tokens: int | None = None,
    on_done: Any = lambda texts: None,
    states: Mapping[str, Any] | None = None,
    **options: Any,
) -> Explanation:
    """Every token that is asked about, explained by every method."""
    from heedful.explainers.run import explain
    from heedful.models.language.model import THIS

    return explain(model, questions(model, prompts, say, instead, tokens), methods, THIS, on_done, states, **options)
