"""`/runs/<run>/words`: which words the model relied on, found by deleting them from a sample of its texts."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import experiment_of
from heedful.experiments.verdict import MARKS, to_json
from heedful.records import Example
from heedful.web.answer import answer
from heedful.web.experiment_page import drawable
from heedful.web.library import Entry
from heedful.web.site import Site


def words_page(site: Site, request: Request, name: str) -> Response:
    """The sample is the one that the report takes, so both name the same words."""
    from heedful.report import sample
    from heedful.report.words import most_frequent

    entry = site.library.find(name)
    split, examples = _sample(site, entry)
    found = site.models.get(entry).explain_sample(examples)
    relied = sample.relied_on(found)
    often = [e.predicted for e in found]
    labels = most_frequent(list(relied), often)
    evidence = sample.evidence(found, [example.evidence for example in examples])
    data = {
        "run": entry.name,
        "split": split,
        "texts": len(found),
        "words": {label: relied[label] for label in labels},
        "predicted": {label: often.count(label) for label in labels},
        "evidence": None if evidence is None else to_json(evidence),
    }
    return answer(request, "words.html", data, marks=MARKS)


def _sample(site: Site, entry: Entry) -> tuple[str, list[Example]]:
    from heedful.report.sample import spread

    for experiment, table in entry.tables.items():
        about = experiment_of(experiment)
        columns = drawable(site, about, table)
        if columns:
            groups = site.results.groups(table, about.by)
            group = (str(about.by), groups[0]) if groups else None
            frame = site.results.frame(table, columns[0], group)
            split = site.split(entry, experiment)
            lengths = dict(zip(frame.example.tolist(), frame.n_words.tolist(), strict=True))
            places = spread(lengths)
            texts = site.texts.get(entry, split, places, patience=60.0)
            return split, [texts[place] for place in places if place in texts]
    raise Mistake(f"{entry.name} has no results that would say which texts to ask about.")
