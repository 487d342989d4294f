"""Rows of data as questions to a language model: why does it say this next, and not that?

Every row becomes one decision between two tokens, the first in which `say` and `instead` differ; what both begin with
has been said. Where a row has no `instead`, it is the token that the model finds best beside the one it says; where it
has no `say`, that is what the model would say, and nobody knows whether it is right. So a model decides rightly if it
finds `say` more probable, and every question that is put to classifiers has a meaning.

Where the evidence is whole sentences (a planted fact among others), the sentences of its lines are units, one of which
should be found; the words that ask are of no unit, and are neither scored nor removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heedful.data.corpora.assemble import positions
from heedful.data.formats.rows import Spans
from heedful.data.prompts import ELSE
from heedful.data.text.units import spans_of, with_spans
from heedful.errors import Mistake
from heedful.models.language.model import LanguageModel
from heedful.models.language.prompts import Prompt
from heedful.models.model import Model
from heedful.records import Example, NextToken, Words

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
    spans = tuple((int(a), int(b)) for a, b in example.passage.offsets[list(example.evidence or ())])
    passage = prompt if example.marks else in_sentences(prompt, spans)
    marked = None if example.evidence is None else positions(passage.offsets, spans)
    marks = tuple(
        (name, positions(prompt.offsets, tuple(tuple(example.passage.offsets[i].tolist()) for i in words)))
        for name, words in example.marks
    )
    label = None if say is None else RIGHT
    return replace(
        made, id=example.id, passage=passage, evidence=marked, label=label, saying=example.saying, marks=marks
    )


def in_sentences(prompt: Words, evidence: Spans) -> Words:
    """The sentences of the lines that hold evidence, if this is whole sentences, and not all of them; else the words.

    evidence: characters of the prompt, of each word that is evidence.
    """
    if not evidence or not len(prompt):
        return prompt
    begin = prompt.text.rfind("\n", 0, evidence[0][0]) + 1
    end = prompt.text.find("\n", evidence[-1][1])
    end = len(prompt.text) if end < 0 else end
    try:
        spans = [(a, b) for a, b in spans_of(prompt, "sentence") if begin <= a and b <= end]
    except Mistake:  # one sentence
        return prompt
    words = prompt.offsets.tolist()
    marked = [(a, b) for a, b in words if any(a < y and b > x for x, y in evidence)]
    held = [(x, y) for x, y in spans if any(x <= a and b <= y for a, b in marked)]
    inside = [(a, b) for a, b in words if any(x <= a and b <= y for x, y in held)]
    return with_spans(prompt, spans) if inside == marked and len(held) < len(spans) else prompt


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
