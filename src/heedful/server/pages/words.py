"""`/runs/<run>/words`: which words the model relied on, found by deleting them from a sample of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from heedful.errors import Mistake
from heedful.experiments import experiment_of
from heedful.records import Example
from heedful.server.answer import answer
from heedful.server.pages.experiment import drawable
from heedful.server.site import Site
from heedful.server.stored.library import RunEntry
from heedful.server.stored.verdicts import verdict_json

if TYPE_CHECKING:
    from heedful.report.sample import SampleSize


def words_page(site: Site, request: Request, name: str) -> Response:
    """The texts are those that the report takes, so both name the same words."""
    from heedful.report import sample
    from heedful.report.words import apart_sentence, minimum_texts, words_by_label

    entry = site.library.find(name)
    model = site.models.get(entry)
    split, examples = _sample(site, entry, sample.counted_size(model.model))
    found, places = model.leave_words_out(examples)
    if not len(found):
        raise Mistake(f"{entry.name} has no attention to hold against the words it relied on.")
    words = words_by_label(found, places)
    evidence = sample.evidence(found, [examples[place].evidence for place in places])
    data = {
        "run": entry.name,
        "split": split,
        "texts": len(found),
        "of": len(examples),  # more than `texts` where time ran out: who asks again goes on from there
        "minimum": minimum_texts(len(found)),
        "words": {one.label: list(one.relied) for one in words},
        "predicted": {one.label: one.texts for one in words},
        "looked_at": {one.label: list(one.looked_at) for one in words},
        "evidence": None if evidence is None else verdict_json(evidence),
    }
    return answer(request, "words.html", data, apart=apart_sentence(words))


def _sample(site: Site, entry: RunEntry, size: SampleSize) -> tuple[str, dict[int, Example]]:
    """(split, texts by their place)."""
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
            places = spread(lengths, size)
            texts = site.texts.get(entry, split, places, patience=60.0)
            return split, {place: texts[place] for place in places if place in texts}
    raise Mistake(f"{entry.name} has no results that would say which texts to ask about.")
