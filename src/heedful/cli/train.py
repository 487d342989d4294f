"""`heedful train`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.errors import Mistake
from heedful.registry import ATTENTIONS, ENCODERS, RATIONALES, STEP_ATTENTIONS


@options.of_data
def train(
    dataset: Annotated[
        str, typer.Argument(help="A corpus by name, your own file, or hf:ID.", autocompletion=complete.corpora)
    ],
    encoder: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(ENCODERS.places)}. By default bilstm.", autocompletion=complete.encoders),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(ATTENTIONS.places)}; of a translator one of {', '.join(STEP_ATTENTIONS.places)}. "
            "By default additive."
        ),
    ] = None,
    rationale: Annotated[
        str | None,
        typer.Option(help=f"Select the words that are read, and read no others: {', '.join(RATIONALES.places)}."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="The share of the words that --rationale selects. Otherwise 0.2.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Fine-tune a copy of this Hugging Face folder or id instead of training a new model."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="translation: train a translator on pairs of texts. Otherwise what the data say.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for the weights and the order of the examples.")] = 0,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors: a file, a folder, or a name in the data folder.")
    ] = None,
    runs: options.Runs = Path("runs"),
    objective: Annotated[str | None, typer.Option(help="Training objective. By default cross_entropy.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of passes over the training set.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Number of examples per step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate of Adam.")] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Weight decay, applied to everything but the attention.")
    ] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after this many epochs without improvement.")] = None,
    embedding_dim: Annotated[int | None, typer.Option(help="Size of the word vectors, without --vectors.")] = None,
    hidden_dim: Annotated[int | None, typer.Option(help="Size of the hidden states.")] = None,
    dev_file: Annotated[str | None, typer.Option(help="Separate file with the dev rows.")] = None,
    test_file: Annotated[str | None, typer.Option(help="Separate file with the test rows.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="spacy, or whitespace for texts that are tokenised already.")
    ] = None,
    min_df: Annotated[
        int | None, typer.Option(help="Number of texts a word must occur in to enter the vocabulary.")
    ] = None,
    *,
    reading: options.DataSaid,
    setting: options.Setting = None,
    data_dir: options.DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train an attentive classifier, fine-tune a checkpoint (--start) or train a translator (--task translation).

    Example: heedful train reviews.csv --text-column review --label-column stars --encoder cnn
    """
    from heedful import api
    from heedful.api.models import estimate_training

    others = {"dev_file": dev_file, "test_file": test_file, "tokenizer": tokenizer, "min_df": min_df}
    data = {**reading, **{name: value for name, value in others.items() if value is not None}}
    given = {
        "encoder": encoder,
        "attention": attention,
        "rationale": rationale,
        "rate": rate,
        "embedding_dim": embedding_dim,
        "hidden_dim": hidden_dim,
        "objective": objective,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "patience": patience,
        **options.parse_settings(setting or []),
    }
    if task == "translation":
        for name, value in (("--start", start), ("--vectors", vectors), ("--tokenizer", tokenizer)):
            if value is not None:
                raise Mistake(f"{name} is for classifiers: a translator of ours learns its words from the pairs.")
        translator(dataset, given, data, seed, runs, data_dir or [], dry_run, quiet, as_json)
        return
    if task is not None:
        data["task"] = task
    config = api.configure(dataset, settings=given, data=data, vectors=vectors, seed=seed, start=start)
    if dry_run:
        found = estimate_training(config, runs=runs, data_dirs=data_dir or ())
        typer.echo(json.dumps(found.to_json()) if as_json else found.describe())
        return
    progress = options.watched(quiet or as_json)
    try:
        run = api.train_config(config, runs=runs, data_dirs=data_dir or (), progress=progress)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    scores = run.summary("performance")
    if as_json:
        typer.echo(json.dumps({"run": str(run.path), **scores}))
        return
    if selection := scores.get("selection"):
        typer.echo(f"selects {selection['share']:.1%} of the words ({selection['rate']:.0%} was asked for)")
        if selection["failure"]:
            typer.echo(f"do not trust it: {selection['failure']}")
    typer.echo(f"{scores['split']} ({scores['examples']} examples): {show_scores(scores)}")
    if baseline := scores.get("baseline"):
        typer.echo(f"{baseline['name']}, for comparison: {show_scores(baseline)}")
    typer.echo(str(run.path))


def translator(
    dataset: str,
    given: Mapping[str, Any],
    data: Mapping[str, Any],
    seed: int,
    runs: Path,
    data_dirs: Sequence[Path],
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train on pairs of texts, and say how good its translations are."""
    from heedful.api import translation

    config = translation.configure_translation(dataset, settings=given, data=data, seed=seed)
    if dry_run:
        sizes = {split: len(pairs) for split, pairs in translation.read_splits(config, data_dirs).items()}
        typer.echo(json.dumps(sizes) if as_json else ", ".join(f"{split} {n:,} pairs" for split, n in sizes.items()))
        return
    progress = options.watched(quiet or as_json)
    folder = translation.train_translator(config, runs=runs, data_dirs=data_dirs, progress=progress)
    scores = translation.scores_of(folder)
    if as_json:
        typer.echo(json.dumps({"run": str(folder), **scores}))
        return
    typer.echo(
        f"test ({scores['pairs']:,} pairs, beam {scores['beam']}): BLEU {scores['bleu']:.1f}, "
        f"chrF {scores['chrf']:.1f}, {scores['exact']:.1%} of the texts exact, "
        f"{scores['accuracy']:.1%} of the words in their place"
    )
    typer.echo(str(folder))


def show_scores(scores: Mapping[str, Any]) -> str:
    names = ("accuracy", "f1", "roc_auc")
    return ", ".join(f"{name} {scores[name]:.3f}" for name in names if scores.get(name) is not None)
