"""`heedful words`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.errors import Mistake


@options.of_subject
def words(
    model: Annotated[
        str, typer.Argument(help="A run folder, or a Hugging Face folder or id.", autocompletion=complete.runs)
    ],
    data: options.Data = None,
    split: options.SplitName = "test",
    limit: options.Limit = None,
    label: Annotated[
        str, typer.Option("--label", help="Whose probability to measure: predicted, or true for the label in the data.")
    ] = "predicted",
    min_texts: Annotated[int, typer.Option("--min-texts", help="Smallest number of texts a word must occur in.")] = 5,
    top: Annotated[int, typer.Option(help="Number of words to show for each label.")] = 10,
    *,
    reading: options.Reading,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank the words of a corpus, label by label, by what leaving them out does to a model (Li et al. 2016).

    Example: heedful words runs/sst-bilstm-additive-s0-1a2b3c4d --min-texts 10
    """
    from heedful.api.corpus_words import rank_words
    from heedful.engine.sources.subject import Subject
    from heedful.explanation.drawing import visible

    if top < 1:
        raise Mistake(f"--top {top}: at least one word is needed.")
    how = reading(split)
    progress = options.watched(quiet or as_json)
    subject = Subject.resolve(model, data, how).say(progress)
    rows = rank_words(subject, limit=limit, label=label, min_texts=min_texts, progress=progress)
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], ensure_ascii=False))
        return
    if not rows:
        typer.echo(f"No word stands in {min_texts} texts of one label: see --min-texts.")
    for name in dict.fromkeys(row.label for row in rows):
        typer.echo(f"{visible(name, 60)} ({label}): nats of -log P more without the word, 95% interval, texts")
        for row in [row for row in rows if row.label == name][:top]:
            typer.echo(
                f"  {visible(row.word, 24):24} {row.effect:+.3f}  [{row.low:+.3f}, {row.high:+.3f}]  {row.texts}"
            )
