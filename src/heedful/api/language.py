"""Language models: which words of a prompt made the model say that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.models import load
from heedful.errors import Mistake, short

if TYPE_CHECKING:
    from heedful.explainers.explainer import Explainer
    from heedful.explainers.methods import Chosen
    from heedful.explainers.sources.citation import Citation
    from heedful.explainers.sources.context import Document
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
    whole: bool = False,
) -> list[Example]:
    """An example for each token that is asked about, prompt after prompt.

    say: what the model says, or is made to say; None: the word that it would say next, or `tokens` tokens. instead:
    what it could have said; then the one token is asked about in which the two begin to differ. Both may be one text
    for all prompts, or one for each. whole: one example for each prompt, about all the tokens together.
    """
    if isinstance(prompts, str) or not prompts:
        raise Mistake("give a list of prompts, not one string." if isinstance(prompts, str) else "there is no prompt.")
    if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1):
        raise Mistake(f"tokens={short(tokens)}: give a whole number of tokens, at least 1.")
    if tokens is not None and say is not None:
        raise Mistake("`say` already gives what the model says: leave out tokens.")
    if whole and instead is not None:
        raise Mistake(
            "instead asks about the one token in which two continuations differ, so there is no whole: leave "
            "out one of the two."
        )
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
        made += [model.phrase(prompt, ids, name)] if whole else model.steps(prompt, ids, foil, name)
    return made


def explained(
    model: Model,
    prompts: object,
    target: object,
    say: str | Sequence[str] | None,
    instead: str | Sequence[str] | None,
    tokens: int | None,
    whole: bool = False,
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
        if say is not None or instead is not None or tokens is not None or whole:
            raise Mistake(
                "the data already say what is said and what instead: leave out say, instead, tokens and whole."
            )
        return given
    return questions(model, given, say, instead, tokens, whole)


def of_phrases(
    chosen: Sequence[Chosen], options: Mapping[str, Any], by_name: bool
) -> tuple[list[Chosen], dict[str, Any]]:
    """Methods and options for a whole continuation: its log probability, explained by the words of the prompt.

    The log probability of a phrase is the sum of those of its tokens, so what a method with an option `of` says of it
    adds up from its steps. A method that explains nothing but attention or logits says nothing of a sum.
    """
    able = [one for one in chosen if one.explainer.is_control or _adds_up(one.explainer)]
    if by_name and len(able) < len(chosen):
        name = next(one.explainer.name for one in chosen if one not in able)
        raise Mistake(f"{name} says nothing of several tokens together: leave out whole, and see it token by token.")
    takes = {name for one in able for name in one.explainer.options}
    usual = {"of": "log_probability", "parts": "passage"}
    return able, {**{name: value for name, value in usual.items() if name in takes}, **options}


def _adds_up(explainer: Explainer) -> bool:
    """Whether it can be asked about a log probability."""
    try:
        explainer.parse({"of": "log_probability"})
    except Mistake:
        return False
    return True


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


def cite(
    model: Model | str | Path,
    documents: Sequence[str] | Mapping[str, str],
    question: str,
    say: str | None = None,
    *,
    device: str | None = None,
    **options: Any,
) -> Citation:
    """What a language model answers, and which sentences of the documents made it say so.

    documents: texts, or texts by name. say: the answer whose sources are looked for; otherwise the model's own.
    Options: units ("sentence", "paragraph", "document"), tokens (of the answer, at most), passes (all subsets of the
    units are asked about where they are no more), ablations (random ones, otherwise) and seed.

    A statement is unsupported where leaving out no source lowers its log probability by more than chance.
    """
    from heedful.explainers.sources.citation import cite_answer
    from heedful.models.language.model import LanguageModel
    from heedful.models.model import Model

    given = _documents(documents)
    loaded = model if isinstance(model, Model) else load(model, device=device)
    if not isinstance(loaded, LanguageModel):
        raise Mistake(f"{loaded.name} is a classifier, which gives no answers: cite needs a language model.")
    if loaded.apart:
        raise Mistake(
            f'{loaded.name} is an encoder-decoder: cite asks decoders; explain it with units="sentence" instead.'
        )
    return cite_answer(loaded, given, question, say, **options)


def _documents(given: object) -> list[Document]:
    from heedful.explainers.sources.context import Document

    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = [(f"document {i + 1}", one) for i, one in enumerate(given)]
    else:
        raise Mistake(f"give a list of documents, or documents by name, not {short(given)}.")
    for name, text in pairs:
        if not isinstance(text, str):
            raise Mistake(f"{name} is not a text but {short(text)}.")
    return [Document(str(name), text) for name, text in pairs]
