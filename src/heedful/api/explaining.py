"""Explaining a corpus into a file: part by part, by one process or several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.words import asked_of, explain_examples, write
from heedful.data.text.units import Units
from heedful.engine.explaining.parts import PART, Parts
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import Subject
from heedful.errors import Mistake, short
from heedful.explanation.explanation import ENDINGS
from heedful.files import check_name, whole_file
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.explainers.methods import Method

FEW_TEXTS = 2000  # for a worker: fewer are done sooner than another has read its model


def explain_to(
    output: Path,
    subject: Subject,
    examples: Sequence[Example],
    methods: Sequence[Method] | None = None,
    target: str | int | None = None,
    *,
    progress: Progress | None = None,
    workers: int | None = None,
    engine: str = "local",
    **options: Any,
) -> None:
    """`explain` into a file. Many texts are explained part by part, by so many `workers` here or on Ray: interrupted
    and called again with the same arguments it goes on where it was, and the file is the same whoever made it."""
    from heedful.engine.explaining.beside import beside_of, own_columns
    from heedful.engine.explaining.workers import Job, Part, make_beside, make_here, make_on_ray
    from heedful.explanation.files import write_parquet

    if engine not in ("local", "ray"):
        raise Mistake(f"--engine {short(engine)}: local or ray.")
    parts, progress = parts_of(output, subject, examples, methods, target, **options), progress or Progress(quiet=True)
    loaded = subject.load()
    own = own_columns(subject, examples) if output.suffix == ".parquet" else None
    if parts is None:
        found = explain_examples(subject, loaded, examples, methods, target, progress=progress, **options)
        if output.suffix != ".parquet":
            write(found, output)
            return
        check_name(output)
        with whole_file(output) as partial:
            write_parquet(found.columns, found.run, partial, beside_of(found, own))
        return
    chosen, states, options = asked_of(subject, loaded, examples, methods, progress, options)
    asked = tuple(one.as_given() for one in chosen)
    job = Job(subject.source, asked, target, options, states, subject.device, subject.batch_size)
    parts.make()
    missing = parts.missing

    def to_make() -> Iterator[Part]:
        for begin in missing:
            rows = slice(begin, begin + PART)
            yield Part(examples[rows], None if own is None else own.slice(begin, PART), parts.file(begin))

    several = workers_for(workers, parts.left, subject)
    with progress.bar("explain", total=len(examples)) as bar:
        bar.advance(len(examples) - parts.left)
        if engine == "ray":
            make_on_ray(job, to_make(), several, os.environ.get("RAY_ADDRESS"), bar)
        elif several > 1:
            make_beside(job, to_make(), several, bar)
        else:
            make_here(loaded, job, to_make(), bar)
    parts.join(output)
    parts.remove()


def workers_for(asked: int | None, texts: int, subject: Subject) -> int:
    """Processes that explain so many texts: one for a few, because each reads the model first."""
    from heedful.engine.running.processors import cores

    if subject.source.place is None:
        if asked is not None and asked > 1:
            raise Mistake(f"--workers {asked}: {subject.source.name} is in memory alone, and only this process has it.")
        return 1
    usual = min(cores(), -(-texts // FEW_TEXTS))
    return max(1, min(usual if asked is None else asked, -(-texts // PART)))


def parts_of(
    output: Path,
    subject: Subject,
    examples: Sequence[Example],
    methods: Sequence[Method] | None,
    target: str | int | None,
    **options: Any,
) -> Parts | None:
    """Where parts are kept while so many texts are explained; None: a few are done at once."""
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.methods import parse_methods, usual

    if output.suffix not in ENDINGS:
        raise Mistake(f"{output}: the ending must be {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    chosen = parse_methods(usual() if methods is None else methods)
    if any(one.explainer.name not in EXPLAINERS for one in chosen):
        return None  # a function of somebody's may be another the next time
    asked = {
        "model": subject.source.fingerprint,
        "texts": [example.passage.text for example in examples],
        "units": [
            example.passage.offsets.tolist() if isinstance(example.passage, Units) else None for example in examples
        ],
        "asked": [repr(example.asked) for example in examples],
        "queries": [None if example.query is None else example.query.text for example in examples],
        "methods": [one.as_given() for one in chosen],
        "target": target,
        "options": options,
    }
    return Parts.beside(output, asked, len(examples)) if len(examples) > PART else None
