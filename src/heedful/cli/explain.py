"""`heedful explain`, `heedful cite` and `heedful adversary`: what is shown over the words of texts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.cli.options import Quiet, parse_settings
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.explanation.drawing import Pairs
    from heedful.explanation.explanation import Explanation


Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="Texts to explain.")]
TextFile = Annotated[Path | None, typer.Option("--file", help="File with one text per line; - for standard input.")]
TextsOrData = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="File with one text per line; - for standard input. A table (.csv, .tsv, .jsonl, .parquet) is read as "
        "--data.",
    ),
]
Queries = Annotated[
    list[str] | None, typer.Option("--query", help="The question or hypothesis for each text (QA, NLI). Repeatable.")
]
Baselines = Annotated[str | None, typer.Option(help="Where integrated gradients start: zero, unk, mask or pad.")]
Epsilon = Annotated[
    float | None, typer.Option(help="How much the prediction may change. By default 0.01, or 0.05 with a query.")
]


class Format(StrEnum):
    table = "table"
    json = "json"
    html = "html"


# Arguments of `heedful.explain` that belong to no method, and what to type for them.
NOT_OPTIONS = {
    "methods": "give a method by -m",
    "target": "give the label by --target",
    "queries": "give questions by --query",
    "labels": "give names by --labels",
    "data_dirs": "set HEEDFUL_DATA",
    "progress": "leave it out",
    "workers": "give it by --workers",
    "engine": "give it by --engine",
    "units": "give them by --units",
    "model": "give the model first",
    "texts": "give the texts after the model",
    "output": "give the file by --output",
}
HowToShow = Annotated[Format, typer.Option("--format", help="Output format.")]


@options.of_subject
def explain(
    model: Annotated[
        Path, typer.Argument(help="A run folder, or a Hugging Face folder or id.", autocompletion=complete.runs)
    ],
    texts: Texts = None,
    file: TextsOrData = None,
    query: Queries = None,
    data: options.Data = None,
    split: options.SplitName = "test",
    limit: options.Limit = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD[:KEY=VALUE,...]",
            help="An explainer, with its own options if needed (attention:layer=3); `all` for all of them. Repeatable.",
            autocompletion=complete.explainers,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The label to explain, by name or number. By default the predicted one.")
    ] = None,
    say: Annotated[
        str | None,
        typer.Option(
            help="Language models: the continuation to explain. By default the word the model would say next. Masked "
            "language models: the word in the gap. Question answering: the answer, as it stands in the text."
        ),
    ] = None,
    instead: Annotated[
        str | None,
        typer.Option(help="Explain why the model says that rather than this. (Taggers: another label for the word.)"),
    ] = None,
    word: Annotated[
        str | None,
        typer.Option(help="Taggers: the word to explain, or its number from 1. By default each entity that is found."),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Language models: explain this many tokens of the answer.")
    ] = None,
    chat: Annotated[
        Path | None,
        typer.Option(
            help="Language models: JSON file with a conversation (messages with role and content) as the prompt."
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Of a language model: the log probability of all that it says, as one.")
    ] = False,
    units: Annotated[
        str,
        typer.Option(
            metavar="word|sentence|paragraph|FILE",
            help="What is scored, and left out, as one; FILE lists passages of the text, one a line.",
        ),
    ] = "word",
    of: Annotated[str | None, typer.Option(help="What to explain: logit or probability.")] = None,
    n_steps: Annotated[int | None, typer.Option(help="Number of steps for integrated gradients.")] = None,
    baselines: Baselines = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Largest error allowed for integrated gradients, as a share of the change.")
    ] = None,
    internal_batch_size: Annotated[
        int | None, typer.Option(help="Largest number of edited texts in one forward pass.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed for the methods that sample.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any option of the methods (layer=3); it goes to each method that takes it. Repeatable.",
        ),
    ] = None,
    output_format: HowToShow = Format.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write to: .csv, .html, .json or .parquet.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Processes that explain many texts into a file (default: one a core)."),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where they are: local, or ray (the cluster at RAY_ADDRESS, else one here).")
    ] = "local",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how many texts are still to be explained, without explaining them.")
    ] = False,
    *,
    reading: options.Reading,
    quiet: Quiet = False,
) -> None:
    """Explain predictions by several methods side by side, each with its own check.

    With --file and --output, finished texts are kept: run the command again after an interruption to continue.
    For a table, a .parquet file also has the table's other columns, the predicted label and its probability.

    Example: heedful explain runs/sst-bilstm-additive-s0-1a2b3c4d "a waste of time" -m attention -m lrp:epsilon=0.01

    Example: heedful explain my-checkpoint "Slow at first. Then it flies." --units sentence -m sources

    Example: heedful explain my-language-model "The keys to the cabinet" --say are --instead is -m lrp

    Example: heedful explain my-tagger "Angela Merkel visited Paris" --word Paris --instead PER
    """
    from heedful import api
    from heedful.api.language import explained, read_chat
    from heedful.api.words import about_places, as_examples, explain_examples, refused
    from heedful.data.formats.tables import file_format
    from heedful.data.text.units import example_in_units, read_units
    from heedful.engine.sources.subject import Subject

    given = {
        "of": of,
        "n_steps": n_steps,
        "baselines": baselines,
        "tolerance": tolerance,
        "internal_batch_size": internal_batch_size,
        "seed": seed,
    }
    of_methods = combine(
        {name: value for name, value in given.items() if value is not None}, parse_settings(setting or [])
    )
    kind = read_units(units)
    progress = options.watched(quiet or output_format is Format.json)
    how = reading(split, queries=bool(query))
    if file is not None and file_format(file) is not None:
        if data is not None:
            raise Mistake(f"--file {file} is a table, which is read as --data: give one of the two.")
        data, file = str(file), None
    if limit is not None and data is None:
        raise Mistake(f"--limit {limit} is a number of texts of --data: give --data, or fewer texts.")
    if data is not None and (texts or file is not None or query):
        raise Mistake(
            "give TEXT, --file and --query, or --data, not both: data have their texts and queries in columns."
        )
    prompts = [] if chat is None else [read_chat(chat)]
    typed = api.read_texts(texts or [], file) if data is None and not (prompts and not texts and file is None) else []
    subject = Subject.resolve(model, data, how).say(progress)
    if subject.source.task == "generation":
        loaded = subject.load()
        given_prompts = [*prompts, *typed] if data is None else [*subject.read(limit).examples.values()]
        examples = explained(loaded, given_prompts, target, say, instead, tokens, whole)
        target = loaded.labels[1]
    elif subject.source.task == "places":
        if tokens is not None or chat is not None or whole:
            raise Mistake(
                f"{subject.source.name} writes no text: --tokens, --whole and --chat are for language models."
            )
        loaded = subject.load()
        asked = typed if data is None else [*subject.read(limit).examples.values()]
        examples = about_places(loaded, asked, query or None, target, say, instead, word)
        target = loaded.labels[1]
    elif (
        stray := refused(say=say, instead=instead, tokens=tokens, chat=chat, word=word, whole=whole or None)
    ) is not None:
        raise Mistake(
            f"{subject.source.name} is a classifier: --{stray} is for language models and for "
            "models that answer at places of a text."
        )
    elif data is not None:
        examples = [*subject.read(limit).examples.values()]
    else:
        examples = as_examples(subject.load(), typed, query or None)
    examples = [example_in_units(example, kind) for example in examples]
    if dry_run:
        parts = output and api.parts_of(output, subject, examples, method, target, **of_methods)
        left = parts.left if parts else len(examples)
        typer.echo(f"{left} of {len(examples)} texts are left to be explained.")
    elif output is not None:
        how_many: dict[str, Any] = {"workers": workers, "engine": engine, "progress": progress}
        api.explain_to(output, subject, examples, method, target, **how_many, **of_methods)
        typer.echo(str(output))
    else:
        loaded = subject.load()
        explanation = explain_examples(subject, loaded, examples, method, target, progress=progress, **of_methods)
        present(explanation, output_format, None)


def combine(named: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Options of methods by their own names on the command line, and by --set: each once."""
    for name in settings:
        if name in named:
            raise Mistake(f"{name} is given by --{name.replace('_', '-')} and by --set {name}: give it once.")
        if name in NOT_OPTIONS:
            raise Mistake(f"--set {name}: this is not an option of a method: {NOT_OPTIONS[name]}.")
    return named | settings


def cite(
    model: Annotated[Path, typer.Argument(help="A language model: a Hugging Face folder or id.")],
    question: Annotated[str, typer.Argument(help="The question that the documents are to answer.")],
    context: Annotated[
        list[Path], typer.Option("--context", "-c", help="A document, as a text file; repeat for more.")
    ],
    say: Annotated[
        str | None, typer.Option(help="The answer whose sources are looked for. Otherwise the model's own.")
    ] = None,
    units: Annotated[str, typer.Option(help="What is cited: sentence, paragraph or document.")] = "sentence",
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of the model's answer, at most.")] = 48,
    passes: Annotated[
        int, typer.Option(min=1, help="All subsets of the sources are asked about where they are no more than this.")
    ] = 256,
    ablations: Annotated[int, typer.Option(min=8, help="Random ablations, where there are more subsets.")] = 64,
    top: Annotated[int, typer.Option(min=1, help="Sources of each statement that are shown.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of the random ablations.")] = 0,
    device: options.Device = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here: .json or .txt.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Answer a question from documents, and show which sentences made the model say so.

    A statement is called unsupported if leaving out no source changes it by more than chance.

    Example: heedful cite my-language-model --context report.txt --context notes.txt "Who signed the contract?"
    """
    from heedful.api.inputs import read_documents
    from heedful.api.language import cite as cite_documents
    from heedful.files import whole_file

    if output is not None:
        options.check_output(output, "--output")
        if output.suffix not in (".json", ".txt"):
            raise Mistake(f"--output {output}: the ending must be .json or .txt.")
    documents = read_documents(context)
    progress = options.watched(quiet or as_json)
    progress.say(f"cite: {len(documents)} document{'s' if len(documents) != 1 else ''}")
    found = cite_documents(
        model,
        documents,
        question,
        say,
        device=device,
        units=units,
        tokens=tokens,
        passes=passes,
        ablations=ablations,
        seed=seed,
    )
    if output is not None:
        text = found.to_json() if output.suffix == ".json" else found.to_text(top) + "\n"
        with whole_file(output) as partial:
            partial.write_text(text, encoding="utf-8")
        typer.echo(str(output))
    else:
        typer.echo(found.to_json() if as_json else found.to_text(top))


def adversary(
    model: Annotated[Path, typer.Argument(help="A run folder.", autocompletion=complete.runs)],
    texts: Texts = None,
    file: TextFile = None,
    query: Queries = None,
    epsilon: Epsilon = None,
    output_format: HowToShow = Format.table,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write to: .html or .json.")] = None,
) -> None:
    """Show the attention of a model beside the most different attention that gives the same prediction.

    Example: heedful adversary runs/sst-bilstm-additive-s0-1a2b3c4d "a waste of time"
    """
    from heedful import api

    pairs = api.adversary(api.load(model), api.read_texts(texts or [], file), queries=query or None, epsilon=epsilon)
    present(pairs, output_format, output)


def present(shown: Explanation | Pairs, output_format: Format, output: Path | None) -> None:
    """In a file, or on standard output in the format that was asked for."""
    from heedful import api

    if output is not None:
        api.write(shown, output)
        typer.echo(str(output))
    elif output_format is Format.json:
        typer.echo(shown.to_json())
    elif output_format is Format.html:
        typer.echo(shown.to_html())
    else:
        shown.show()
