"""An answer with its sources: what a model said to a question, and which sentences of the documents made it say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, isfinite, isnan
from typing import Any

import numpy as np

from heedful.errors import Mistake
from heedful.explainers.sources.context import AskedUnits, Context, Document, log_probability, statements
from heedful.explainers.sources.support import MANY, Support, hierarchical, support
from heedful.models.language.model import LanguageModel

PASSES, ABLATIONS, TOKENS = 256, 64, 48
VERDICTS = {
    "single": "supported",
    "together": "supported, by sentences of which either is enough",
    "context": "supported by the documents together, by none of their sentences or pairs of them",
    "none": "UNSUPPORTED: leaving out any source changes it by no more than chance",
}


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A unit of a document, by its number from 1."""

    number: int
    document: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class CitedStatement:
    """A sentence of the answer, and what it rests on."""

    text: str
    support: Support

    @property
    def cited(self) -> list[int]:
        """The numbers of the sources that support it, the strongest first."""
        found = [*self.support.single, *(i for pair in self.support.together for i in pair)]
        return [i + 1 for i in dict.fromkeys(found)]

    def to_json(self) -> dict[str, Any]:
        s = self.support

        def known(value: float) -> float | None:
            return float(value) if isfinite(value) else None

        return {
            "text": self.text,
            "verdict": s.verdict,
            "sources": self.cited,
            "log_probability": s.whole,
            "log_probability_without_documents": s.nothing,
            "bar": s.bar,
            "falls": [known(v) for v in s.falls.tolist()],
            "alone": [known(v) for v in s.alone.tolist()],
            "scores": [known(v) for v in s.scores.tolist()],
            "scores_are": "Shapley values" if s.exact else "weights of a surrogate",
            "surrogate_rank_correlation": known(s.lds),
            "pairs": [{"sources": [i + 1, j + 1], "fall": fall} for (i, j), fall in s.pairs.items()],
            "not_looked_into": [i + 1 for i in s.unseen],
        }

    def lines(self, k: int) -> Iterator[str]:
        s = self.support
        marks = "".join(f"[{n}]" for n in self.cited)
        yield f"{self.text} {marks}".rstrip()
        yield f"  {VERDICTS[s.verdict]}; P {exp(s.whole):.3f}, without the documents {exp(s.nothing):.3f}"
        asked = np.flatnonzero(~np.isnan(s.falls))
        for i in asked[np.argsort(-s.falls[asked], kind="stable")][:k].tolist():
            cited = "*" if i in s.single else " "
            alone = f"[{i + 1}] alone raises it by {s.alone[i]:+.2f}"
            yield f"  {cited} without [{i + 1}] log P falls by {s.falls[i]:+.2f}; {alone}"
        for i, j in s.together:
            yield f"  * without [{i + 1}] and [{j + 1}] together by {s.pairs[i, j]:+.2f}: either is enough"
        yield f"    (what counts: more than {s.bar:.2f}, which halves P and is more than any removal raises it by)"
        if not s.exact and not isnan(s.lds):
            yield f"    (scores by a surrogate: rank correlation {s.lds:.2f} on ablations that it was not fitted to)"
        if s.unseen:
            numbers = f"[{s.unseen[0] + 1}]" if len(s.unseen) == 1 else f"{len(s.unseen)} sources"
            yield f"    (not looked into one by one: {numbers}, of documents that do not matter as wholes)"


@dataclass(frozen=True, slots=True, eq=False)
class Citation:
    """What `heedful.cite` returns: an answer, its statements, and the numbered sources."""

    model: str
    question: str
    answer: str
    statements: tuple[CitedStatement, ...]
    sources: tuple[CitedSource, ...]
    passes: int

    @property
    def unsupported(self) -> tuple[CitedStatement, ...]:
        return tuple(one for one in self.statements if one.support.verdict == "none")

    def to_json(self) -> str:
        """Everything, as strict JSON."""
        made = {
            "model": self.model,
            "question": self.question,
            "answer": self.answer,
            "passes": self.passes,
            "sources": [{"number": s.number, "document": s.document, "text": s.text} for s in self.sources],
            "statements": [one.to_json() for one in self.statements],
        }
        return json.dumps(made, ensure_ascii=False, indent=1, allow_nan=False)

    def to_text(self, k: int = 3) -> str:
        """The answer with its sources; of each statement the k whose removal does most."""
        cited = sorted({number for one in self.statements for number in one.cited})
        lines = [line for one in self.statements for line in (*one.lines(k), "")]
        lines += [f"[{s.number}] {s.document}: {s.text}" for s in self.sources if s.number in cited]
        rest = len(self.sources) - len(cited)
        lines.append(f"{rest} other source{'s' if rest != 1 else ''}; {self.passes:,} texts read by {self.model}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def cite_answer(
    model: LanguageModel,
    documents: Sequence[Document],
    question: str,
    say: str | None = None,
    *,
    units: str = "sentence",
    tokens: int = TOKENS,
    passes: int = PASSES,
    ablations: int = ABLATIONS,
    seed: int = 0,
    on_done: Callable[[int], None] = lambda statements: None,
) -> Citation:
    """The answer that the model gives, or is to give (`say`), statement by statement.

    All subsets of the units are asked about where they are no more than `passes`; otherwise each is left out, and
    kept alone, and `ablations` random ones are fitted (support.py). Of more than MANY units documents come first.
    """
    for name, value, least in (("tokens", tokens, 1), ("passes", passes, 1), ("ablations", ablations, 8)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise Mistake(f"{name} must be a whole number of at least {least}, not {value!r}.")
    if units not in ("sentence", "paragraph", "document"):
        raise Mistake(f"units={units!r}: sources are a sentence, a paragraph or a document.")
    context = Context.of(model, documents, question, units)
    if say is None:
        ids = [i for i in model.generate(context.prompt, tokens) if i not in model.stops]
        if not ids:
            raise Mistake(f"{model.name} says nothing to this question: give a statement by say.")
    else:
        ids = list(model.tokens_of(context.prompt, say))
    said, read = [], 0
    for begin, end in statements(model, ids):
        example = model.phrase(context.prompt, ids[:end], "answer", begin)
        asked = AskedUnits(model, context, example)
        rng = np.random.default_rng(seed)
        if len(context) > MANY and len(documents) > 1:
            found = hierarchical(asked, log_probability, context.document, passes, ablations, rng, end - begin)
        else:
            found = support(asked, log_probability, len(context), passes, ablations, rng, end - begin)
        said.append(CitedStatement(_text(model, ids, begin, end), found))
        read += asked.passes
        on_done(1)
    named = [CitedSource(i + 1, documents[int(d)].name, context.text_of(i)) for i, d in enumerate(context.document)]
    return Citation(model.name, question, model.text.said(ids).text.strip(), tuple(said), tuple(named), read)


def _text(model: LanguageModel, ids: Sequence[int], begin: int, end: int) -> str:
    said = model.text.said(ids)
    assert said.spans is not None
    return said.text[int(said.spans[begin, 0]) : int(said.spans[end - 1, 1])].strip()
