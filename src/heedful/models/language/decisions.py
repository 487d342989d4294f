"""Rows of data as questions to a language model: why does it say this next, and not that?

Every row becomes one decision between two tokens, the first in which `say` and `instead` differ; what both begin with
has been said. Where a row has no `instead`, it is the token that the model finds best beside the one it says; where it
has no `say`, that is what the model would say, and nobody knows whether it is right. So a model decides rightly if it
finds `say` more probable, and every question that is put to classifiers has a meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heedful.data.corpora.assemble import positions
from heedful.data.prompts import ELSE
from heedful.errors import Mistake
from heedful.models.language.model import LanguageModel
from heedful.models.language.prompts import Prompt
from heedful.models.model import Model
from heedful.records import Example, NextToken

RIGHT = 1  # the number of `say` among the two answers


def decisions(model: Model, examples: Mapping[int, Example]) -> dict[int, Example]:
    """The same places, as this model reads them."""
    assert isinstance(model, LanguageModel)
    return {place: decision(model, example) for place, example in examples.items()}


def decision(model: LanguageModel, example: Example) -> Example:
    """One row. Its evidence is marked in the words that the model's own tokenizer makes."""
    if example.saying is None:
        raise Mistake(f"{example.id} does not say what comes after it: give data with the columns prompt and say.")
    say, instead = example.saying.say, example.saying.instead
    try:
        prompt = model.prompt(example.passage.text)
        if example.saying.after is not None:
            made = _word_after(model, example, prompt, example.saying.after)
        elif say is not None and instead is not None:
            (made,) = model.steps(prompt, model.tokens_of(prompt, say), model.tokens_of(prompt, instead), example.id)
        else:
            made = _against_next_best(model, example, say, instead)
    except Mistake as mistake:
        raise Mistake(f"{example.id}: {mistake}") from None
    spans = [tuple(example.passage.offsets[i].tolist()) for i in example.evidence or ()]
    marked = None if example.evidence is None else positions(prompt.offsets, tuple(spans))
    marks = tuple(
        (name, positions(prompt.offsets, tuple(tuple(example.passage.offsets[i].tolist()) for i in words)))
        for name, words in example.marks
    )
    label = None if say is None else RIGHT
    return replace(made, id=example.id, evidence=marked, label=label, saying=example.saying, marks=marks)


def _word_after(model: LanguageModel, example: Example, prompt: Prompt, after: str) -> Example:
    """Does it say this whole word next, and not anything else, once so much has been said?"""
    assert example.saying is not None
    word = example.saying.say
    if word is None:
        raise Mistake("nothing is told of what is said after that.")
    before = model.tokens_of(prompt, after) if after else ()
    every = model.tokens_of(prompt, f"{after} {word}".strip())
    if every[: len(before)] != before or len(every) == len(before):
        every = (*before, *model.tokens_of(prompt, word))
    said = model.text.said(every[:-1]) if len(every) > 1 else None
    asked = NextToken((every[-1],), None, (ELSE, word), len(before), every[len(before) : -1])
    return Example(example.id, prompt, query=said, asked=asked)


def _against_next_best(model: LanguageModel, example: Example, say: str | None, instead: str | None) -> Example:
    """What is not given is the model's best token beside what is."""
    prompt = model.prompt(example.passage.text)
    given = say if say is not None else instead
    best = model.next_logits(prompt).argsort(descending=True)[:2].tolist()
    one = model.tokens_of(prompt, given)[0] if given is not None else best[0]
    other = best[1] if best[0] == one else best[0]
    this, that = (other, one) if say is None and instead is not None else (one, other)
    asked = NextToken((this,), (that,), (model.name_of(that), model.name_of(this)))
    return Example(example.id, prompt, asked=asked)
