"""`heedful words`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.errors import Mistake


def words(
    model: Annotated[
        str, typer.Argument(help="A run folder, or a Hugging Face folder or id.", autocompletion=complete.runs)
    ],
    data: Annotated[
        str | None, typer.Option("--data", help="The texts: a corpus, one's own file, or hf:ID. Otherwise a run's own.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of the data: train, dev or test.")] = "test",
    limit: Annotated[int | None, typer.Option(help="So many texts of the split, evenly spread.")] = None,
    label: Annotated[
        str, typer.Option("--label", help="Whose probability falls: predicted, or the true one.")
    ] = "predicted",
    min_texts: Annotated[int, typer.Option("--min-texts", help="Texts that must hold a word.")] = 5,
    top: Annotated[int, typer.Option(help="Words of each label that are shown.")] = 10,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    query_column: options.QueryColumn = None,
    split_column: options.SplitColumn = None,
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Names for the labels of a Hugging Face model.")
    ] = None,
    skip_bad: options.SkipBad = False,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank the words of a corpus by what leaving them out does to a model (Li et al. 2016), label by label.

    Example: heedful words runs/sst-bilstm-additive-s0-1a2b3c4d --min-texts 10
    """
    from heedful.api.corpus_words import words as rank
    from heedful.engine.running.progress import Progress
    from heedful.explanation.drawing import visible

    if top < 1:
        raise Mistake(f"--top {top}: at least one word is needed.")
    given = options.gather_data_options(text_column, label_column, query_column, split_column, None, skip_bad)
    rows = rank(
        model,
        data,
        data_options=given,
        split=split,
        limit=limit,
        label=label,  # type: ignore[arg-type]
        min_texts=min_texts,
        labels=options.parse_labels(labels),
        data_dirs=data_dir or (),
        progress=Progress(quiet=quiet or as_json),
    )
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
