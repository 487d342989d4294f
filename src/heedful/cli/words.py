"""`heedful words` and `heedful counterfactual`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.errors import Mistake


@options.of_subject
def words(
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder, a Hugging Face folder or id, or the .parquet file of heedful explain.",
            autocompletion=complete.runs,
        ),
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

    Example: heedful words why.parquet (made by heedful explain with -m omission:of=probability)
    """
    from heedful.api.corpus_words import rank_words, words_of_file
    from heedful.engine.sources.subject import Subject
    from heedful.explanation.drawing import visible

    if top < 1:
        raise Mistake(f"--top {top}: at least one word is needed.")
    how = reading(split)
    progress = options.watched(quiet or as_json)
    if model.endswith(".parquet"):
        if data is not None or limit is not None or label != "predicted":
            raise Mistake(f"{model} is a file of explanations: --data, --limit and --label true need a model.")
        rows = words_of_file(Path(model), min_texts=min_texts, progress=progress)
    else:
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


def counterfactual(
    model: Annotated[
        Path, typer.Argument(help="A run folder, or a Hugging Face folder or id.", autocompletion=complete.runs)
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text.")],
    query: Annotated[str | None, typer.Option(help="The question or hypothesis (QA, NLI).")] = None,
    part: Annotated[str, typer.Option(help="With a query: which is changed, passage or query.")] = "passage",
    target: Annotated[str | None, typer.Option(help="Only this answer counts, a label (or the next word).")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--change", help="A kind of change: remove, replace or add; repeat for more.")
    ] = None,
    words: Annotated[Path | None, typer.Option(help="Words that may be put in: a file, one a line.")] = None,
    fill: Annotated[
        str | None, typer.Option(help="A masked language model (folder or id) whose likeliest words may be put in.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Different counterfactuals that are shown, at most.")] = 3,
    most: Annotated[int, typer.Option(help="Changes at once, at most.")] = 4,
    budget: Annotated[int, typer.Option(help="Texts that the model is asked about, at most.")] = 2000,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Instead: how few words keep the answer (Feng et al. 2018).")
    ] = False,
    labels: options.ModelLabels = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    as_json: options.Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here: .html or .json.")] = None,
) -> None:
    """Find the smallest change of a text that changes the model's answer.

    Example: heedful counterfactual runs/sst-bilstm-additive-s0-1a2b3c4d "not a good film" --words words.txt

    Example: heedful counterfactual my-classifier "a waste of good time" --reduce
    """
    from heedful.api.changes import check_output_ending, read_words, write_counterfactuals
    from heedful.api.changes import counterfactual as find

    if output is not None:
        check_output_ending(output)
        options.check_output(output, "--output")
    found = find(
        model,
        text,
        query=query,
        part=part,  # type: ignore[arg-type]
        target=target,
        changes=changes or (),
        words=() if words is None else read_words(words),
        fill=fill,
        n=n,
        most=most,
        budget=budget,
        reduce=reduce,
        labels=options.parse_labels(labels),
        dtype=dtype,
        device=device,
    )
    if output is not None:
        write_counterfactuals(found, output)
        typer.echo(str(output))
    elif as_json:
        typer.echo(found.to_json())
    else:
        typer.echo("\n".join(found.lines()))
