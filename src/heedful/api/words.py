"""What is shown over the words of texts: explanations, and attention beside another attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.api.models import load, open_run, subject_options
from heedful.data.text.units import example_in_units
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import Subject
from heedful.errors import Mistake, short
from heedful.explanation import drawing as colours
from heedful.explanation.drawing import Pair, Pairs, visible
from heedful.explanation.explanation import Explanation
from heedful.files import check_name, whole_file
from heedful.records import Example, NextToken

if TYPE_CHECKING:
    from heedful.explainers.methods import Method
    from heedful.models.model import Model
    from heedful.store.run import Run


def explain(
    model: Model | Run | str | Path,
    texts: Sequence[str] | Sequence[Example] | None = None,
    methods: Sequence[Method] | None = None,
    target: str | int | None = None,
    *,
    data: str | Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    queries: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    label_map: Mapping[str, str] | None = None,
    split: str = "test",
    limit: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    data_dirs: Sequence[str | Path] = (),
    say: str | Sequence[str] | None = None,
    instead: str | Sequence[str] | None = None,
    tokens: int | None = None,
    word: str | int | None = None,
    whole: bool = False,
    units: str | Sequence[str] = "word",
    progress: Progress | None = None,
    **options: Any,
) -> Explanation:
    """Scores for every word of every text, by each of the methods.

    `methods` are, unless given, the usual ones that the model can be asked for; ["all"] is all such. One may have
    options of its own: ["attention", ("lrp", {"epsilon": 0.01})], or be a function that is called like an explainer's
    `run`. `target` is a label by name or number (None: the predicted one). Options (`n_steps`, `baselines`,
    `internal_batch_size`, `of`, ...) go to every method that takes them. A method that learns from training texts
    needs the run folder of the model: what it learns is kept there. `labels` are names for those of a Hugging Face
    model that has none; with `queries` such a model is read as one of pairs of texts. In place of texts, `data` names
    some, of which `data_options` say how to read them (text_column, ...); `limit` are so many of its `split`.

    Of a language model `texts` are prompts, or chats (messages of role and content). Explained is each token of what it
    is to `say`, of the word that it would say next, or of so many `tokens`; with `instead`, why it says the one and not
    the other, in the token in which the two begin to differ; with `whole`, the log probability of all that it says.

    Of a tagger each entity that it finds is explained, or the `word` that is named; `target` is a label, `instead`
    another. Of a masked language model `say` and `instead` are words for the gap, of one that marks an answer
    (`queries` are the questions) words of the text.

    `units`: "sentence" or "paragraph", or passages of the text: scores are then those of units, and methods that leave
    words out leave out whole units. Words of no unit stay as they are.
    """
    progress = progress or Progress(quiet=True)
    told = subject_options(
        data_options, labels, label_map, split, dtype, device, batch_size, data_dirs, queries is not None
    )
    if texts is not None and data is not None:
        raise Mistake("give texts or data, not both.")
    if limit is not None and data is None:
        raise Mistake(f"limit={short(limit)} is a number of texts of data: give data, or fewer texts.")
    if "query" in options:
        raise Mistake("query: give queries=[...], one for each text.")
    subject = Subject.resolve(model, data, told).say(progress)
    loaded = subject.load()
    if generates(loaded):
        from heedful.api.language import explained

        given = texts if data is None else [*subject.read(limit).examples.values()]
        examples = explained(loaded, given, target, say, instead, tokens, whole)
        target = loaded.labels[1]
    elif loaded.task == "places":
        if tokens is not None or whole:
            raise Mistake(f"{loaded.name} says no tokens in a row: tokens and whole are for language models.")
        given = ([] if texts is None else texts) if data is None else [*subject.read(limit).examples.values()]
        examples = about_places(loaded, given, queries, target, say, instead, word)
        target = loaded.labels[1]
    elif (stray := refused(say=say, instead=instead, tokens=tokens, word=word, whole=whole or None)) is not None:
        raise Mistake(
            f"{loaded.name} is a classifier: {stray} is for language models and for models that "
            "answer at places of a text."
        )
    elif data is not None:
        examples = [*subject.read(limit).examples.values()]
    else:
        examples = as_examples(loaded, [] if texts is None else texts, queries)
    examples = [example_in_units(example, units) for example in examples]
    return explain_examples(subject, loaded, examples, methods, target, progress=progress, **options)


def explain_examples(
    subject: Subject,
    loaded: Model,
    examples: Sequence[Example],
    methods: Sequence[Method] | None,
    target: str | int | None,
    *,
    progress: Progress,
    **options: Any,
) -> Explanation:
    """`loaded` is the model of the subject."""
    from heedful.explainers.run import explain as run_explain

    chosen, states, options = asked_of(subject, loaded, examples, methods, progress, options)
    with progress.bar("explain", total=len(examples)) as bar:
        return run_explain(loaded, examples, chosen, target, bar.advance, states, **options)


def asked_of(
    subject: Subject,
    loaded: Model,
    examples: Sequence[Example],
    methods: Sequence[Method] | None,
    progress: Progress,
    options: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Mapping[str, Any]], dict[str, Any]]:
    """The methods, where none were named those that apply, what they have learnt, and the options that all get."""
    from heedful.api.language import of_phrases
    from heedful.engine.tasks.plan import that_learn
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.methods import parse_methods, usual
    from heedful.explainers.run import applies

    def able(names: Iterable[str]) -> list[str]:
        in_windows = loaded.in_windows(examples)
        if in_windows:
            progress.say(
                "a text is longer than the model reads at once, so there is no one attention over all of it: "
                "attention is left out"
            )
        return [name for name in names if applies(name, loaded, options.get("token"), in_windows)]

    chosen = parse_methods(able(usual()) if methods is None else methods, lambda: able(EXPLAINERS))
    learning = that_learn(one.explainer.name for one in chosen if one.explainer.name in EXPLAINERS)
    states: dict[str, Mapping[str, Any]] = {}
    if learning and subject.source.place is not None:
        run = subject.run if subject.run is not None else open_run(subject.source.place)
        states = fit_explainers(run, learning, subject.data_dirs, progress)
    if any(isinstance(example.asked, NextToken) and example.asked.phrase for example in examples):
        chosen, options = of_phrases(chosen, options, methods is not None)
    return chosen, states, dict(options)


def fit_explainers(
    run: Run, names: Sequence[str], data_dirs: tuple[Path, ...], progress: Progress
) -> dict[str, Mapping[str, Any]]:
    """What explainers have learnt from a run's training texts; learnt now, where they have not."""
    from heedful.engine.running.execute import execute
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.plan import plan_fits

    data_dirs = (*data_dirs, *run.data_folders)
    workspace = Workspace(run.path.parent, data_dirs)
    planned = plan_fits(run, names, data_dirs, workspace.hash_file)
    execute(planned, workspace, progress, "here", strict=True)
    return {task.explainer or "": run.fitted(task.explainer or "", task.key) for task in planned.of("fit")}


def adversary(
    model: Model | Run | str | Path,
    texts: Sequence[str] | Sequence[Example],
    *,
    queries: Sequence[str] | None = None,
    epsilon: float | None = None,
) -> Pairs:
    """Each text with its attention, and beside it the most different one that leaves the prediction within epsilon.

    The heatmap pairs of Jain & Wallace 2019, appendix C. `epsilon` None is .01, and .05 for models with a query.
    """
    from heedful.api.experiments import run
    from heedful.experiments.adversarial.adversarial import ADVERSARIAL
    from heedful.models.model import Model

    model = model if isinstance(model, Model) else load(model)
    examples = as_examples(model, texts, queries)
    table = run(ADVERSARIAL.name, model, examples, epsilon=epsilon).table.sort_by("example")
    pairs, weights = [], ADVERSARIAL.pages.weights
    assert weights is not None  # it says which columns stand beside each other
    for row in table.to_pylist():
        passage = examples[row["example"]].passage
        if row["jsd"] is None or math.isnan(row["jsd"]):
            raise Mistake(f"{visible(passage.text, 60)!r} has no word that attention could move to.")
        how = "the greatest there is" if row["exact"] else f"at most {row['bound']:.3f} can be had"
        title = f"{model.labels[row['predicted']]}; JSD between the two {row['jsd']:.3f} ({how})"
        own, other = (np.array(row[name]) for name in (weights.own, weights.other))
        pairs.append(Pair(passage, own, other, row["delta_y"], title=title))
    return Pairs(tuple(pairs))


def as_examples(model: Model, texts: Sequence[str] | Sequence[Example], queries: Sequence[str] | None) -> list[Example]:
    """Texts as examples of this model; examples as they are."""
    given = as_list(texts, "texts")
    if any(isinstance(text, Example) for text in given):
        if queries is not None:
            raise Mistake("examples have their queries with them: give no others.")
        if strange := [text for text in given if not isinstance(text, Example)]:
            raise Mistake(f"give texts or examples, not both: {short(strange[0])} is not an example.")
        check_examples(model, given)
        return given
    if not given:
        raise Mistake("there is no text.")
    return list(model.examples(given, queries))


def generates(model: Model) -> bool:
    """Whether it is a language model."""
    return "generates" in model.network.can


def about_places(
    model: Model, given: Any, queries: Sequence[str] | None, target: object, say: object, instead: object, word: object
) -> list[Example]:
    """The questions to a model that answers at places of a text; examples that ask already stay as they are."""
    from heedful.models.places.model import PlacesModel, Told

    assert isinstance(model, PlacesModel)
    for name, value in (("target", target), ("say", say), ("instead", instead)):
        if value is not None and not isinstance(value, str):
            raise Mistake(f"{name}={short(value)}: give it as a text, one for all texts.")
    if word is not None and (not isinstance(word, str | int) or isinstance(word, bool)):
        raise Mistake(f"word={short(word)}: give a word as it is written, or its number from 1.")
    label, this, that = (None if one is None else str(one) for one in (target, say, instead))
    told = Told(label, this, that, word)
    texts = as_list(given, "texts")
    if any(isinstance(text, Example) for text in texts):
        if told != Told():
            raise Mistake("examples say themselves what is asked: leave out target, say, instead and word.")
        return as_examples(model, texts, queries)
    if not texts:
        raise Mistake("there is no text.")
    return model.questions(texts, queries, told)


def refused(**given: object) -> str | None:
    """The name of what was given and makes no sense."""
    return next((name for name, value in given.items() if value is not None), None)


def as_list(given: Any, what: str) -> list[Any]:
    """A list, tuple, column or iterator as a list; one string is not its letters."""
    if isinstance(given, str | bytes):
        raise Mistake(f"give a list of {what}, not one text.")
    if getattr(given, "ndim", 1) != 1:  # a loop over a table is over the names of its columns
        raise Mistake(f"give a list of {what}, not a {type(given).__name__}: one of its columns, frame['text'].")
    if not isinstance(given, Iterable) or isinstance(given, Mapping | Set):
        raise Mistake(f"give a list of {what}, not {short(given)}.")
    return list(given)


def check_examples(model: Model, examples: Sequence[Example]) -> None:
    """An example made for another kind of model is refused, not read in part."""
    for example in examples:
        if model.network.has_query and example.query is None and example.asked is None:
            raise Mistake(f"{model.name} reads a query with each text; example {example.id!r} has none.")
        if example.label is not None and not 0 <= example.label < len(model.labels):
            raise Mistake(
                f"example {example.id!r} has the label number {example.label}; {model.name} has {len(model.labels)}."
            )


def write(shown: Explanation | Pairs, path: Path) -> None:
    """By the ending: .html and .json, and what else `Explanation.save` knows."""
    if isinstance(shown, Explanation):
        shown.save(path)
        return
    if path.suffix not in (".html", ".json"):
        raise Mistake(f"--output {path}: the ending must be .html or .json.")
    check_name(path)
    with whole_file(path) as partial:
        text = shown.to_json() if path.suffix == ".json" else colours.page(shown.to_html())
        partial.write_text(text, encoding="utf-8")
