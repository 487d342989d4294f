"""Language models: which words of a prompt made the model say that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import Mistake, short

if TYPE_CHECKING:
    from heedful.models.language.model import Chat, LanguageModel
    from heedful.models.model import Model
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
        raise Mistake(f"tokens={short(tokens)}: give a whole number of tokens, at least 1.")
    if tokens is not None and say is not None:
        raise Mistake("`say` already gives what the model says: leave out tokens.")
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


def explained(
    model: Model,
    prompts: object,
    target: object,
    say: str | Sequence[str] | None,
    instead: str | Sequence[str] | None,
    tokens: int | None,
) -> list[Example]:
    """The examples that `heedful.explain` is to explain, or the sentence that says what a language model takes."""
    from heedful.models.language.model import LanguageModel
    from heedful.records import Example

    assert isinstance(model, LanguageModel)
    if target is not None:
        raise Mistake(f"{model.name} is a language model, which has no labels: give what it says (say), not a target.")
    given = [] if prompts is None else list(prompts) if isinstance(prompts, Sequence) else prompts
    if isinstance(prompts, str) or not isinstance(given, list):
        raise Mistake("give a list of prompts, not one text.")
    if given and all(isinstance(one, Example) for one in given):
        if say is not None or instead is not None or tokens is not None:
            raise Mistake("the data already say what is said and what instead: leave out say, instead and tokens.")
        return given
    return questions(model, given, say, instead, tokens)


def each(given: str | Sequence[str] | None, n: int, name: str) -> list[str | None]:
    """One for each prompt."""
    if given is None or isinstance(given, str):
        return [given] * n
    if len(given) != n:
        raise Mistake(f"{n} prompts were given, and {len(given)} texts for {name}: give one for all, or one for each.")
    return list(given)


def read_chat(file: Path) -> list[dict[str, str]]:
    """Messages of role and content."""
    try:
        messages = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Mistake(f"--chat {file} cannot be read as JSON: {str(error)[:200]}.") from None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Mistake(f'--chat {file}: the file must hold a list of messages, [{{"role": "user", "content": "..."}}].')
    return messages
