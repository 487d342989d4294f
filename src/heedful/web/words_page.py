"""`/runs/<run>/words`: which words the model relied on, found by deleting them from a sample of its texts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.records import Example
from heedful.report.grades import MARKS
from heedful.web.answer import answer
from heedful.web.experiment_page import drawable
from heedful.web.library import Entry
from heedful.web.site import Site

MOST_LABELS = 4  # of which the words are shown, the most frequent ones


def words_page(site: Site, request: Request, name: str) -> Response:
    """The sample is the one that the report takes, so both name the same words."""
    from heedful.report import sample, verdicts

    entry = site.library.find(name)
    split, examples = _sample(site, entry)
    found = site.models.get(entry).explain_sample(examples)
    relied = sample.relied_on(found)
    often = [e.predicted for e in found]
    labels = sorted(sorted(relied, key=lambda label: -often.count(label))[:MOST_LABELS])
    known = [example.evidence for example in examples]
    evidence: dict[str, Any] | None = None
    if any(known):
        hits = {method: sample.hits(found, known, method) for method in ("attention", "omission")}
        others = {"omission": sum(hits["omission"]) / len(hits["omission"])}
        evidence = asdict(verdicts.evidence(hits["attention"], sample.chance(found, known), others))
    data = {
        "run": entry.name,
        "split": split,
        "texts": len(found),
        "words": {label: relied[label] for label in labels},
        "predicted": {label: often.count(label) for label in labels},
        "evidence": evidence,
    }
    return answer(request, "words.html", data, marks=MARKS)


def _sample(site: Site, entry: Entry) -> tuple[str, list[Example]]:
    from heedful.report.sample import spread

    for experiment, table in entry.tables.items():
        columns = drawable(site, table)
        if columns:
            pairs = site.results.pairs(table)
            frame = site.results.frame(table, columns[0], pairs[0] if pairs else None)
            split = site.split(entry, experiment)
            lengths = dict(zip(frame.example.tolist(), frame.n_words.tolist(), strict=True))
            places = spread(lengths)
            texts = site.texts.get(entry, split, places, patience=60.0)
            return split, [texts[place] for place in places if place in texts]
    raise Mistake(f"{entry.name} has no results that would say which texts to ask about.")
