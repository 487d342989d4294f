"""What is shown over the words of texts: explanations, and attention beside another attention."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.api.models import as_paths, load, open_run
from heedful.engine.running.progress import Progress, ProgressBar
from heedful.errors import Mistake, short
from heedful.explanation import drawing as colours
from heedful.explanation.drawing import Pair, Pairs, visible
from heedful.explanation.explanation import ENDINGS, Explanation
from heedful.files import check_name, whole_file
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.explainers.methods import Method
    from heedful.models.model import Model
    from heedful.store.run import Run


def explain(
    model: Model | Run | str | Path,
    texts: Sequence[str] | Sequence[Example],
    methods: Sequence[Method] | None = None,
    target: str | int | None = None,
    *,
    queries: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    kept: Parts | None = None,
    **options: Any,
) -> Explanation:
    """Scores for every word of every text, by each of the methods.

    `methods` are, unless given, the usual ones that the model can be asked for; ["all"] is all such. One may have
    options of its own: ["attention", ("lrp", {"epsilon": 0.01})], or be a function that is called like an explainer's
    `run`. `target` is a label by name or number (None: the predicted one). Options (`n_steps`, `baselines`,
    `internal_batch_size`, `of`, ...) go to every method that takes them. A method that learns from training texts
    needs the run folder of the model: what it learns is kept there. `labels` are names for those of a Hugging Face
    model that has none; with `queries` such a model is read as one of pairs of texts. `kept`: where parts of what is
    done stand meanwhile (see `explain_to`).
    """
    from heedful.engine.tasks.plan import that_learn
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.methods import parse_methods, usual
    from heedful.explainers.run import applies
    from heedful.explainers.run import explain as run_explain
    from heedful.models.model import Model

    progress = progress or Progress(quiet=True)
    loaded = model if isinstance(model, Model) else load(model, **_model_options(labels, queries))

    examples = as_examples(loaded, texts, queries)

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
    states = {}
    if learning and not isinstance(model, Model):
        states = fit_explainers(open_run(model), learning, as_paths(data_dirs), progress)
    with progress.bar("explain", total=len(examples)) as bar:
        if kept is None:
            return run_explain(loaded, examples, chosen, target, bar.advance, states, **options)

        def explain_part(part: Sequence[Example]) -> Explanation:
            return run_explain(loaded, part, chosen, target, bar.advance, states, **options)

        return kept.explain(examples, explain_part, bar)


def explain_to(
    output: Path,
    model: str | Path,
    texts: Sequence[str],
    methods: Sequence[Method] | None = None,
    target: str | int | None = None,
    *,
    queries: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """`explain` into a file. Interrupted and called again with the same arguments it goes on where it was."""
    parts = parts_of(output, model, texts, methods, target, queries=queries, labels=labels, **options)
    found = explain(
        model,
        texts,
        methods,
        target,
        queries=queries,
        labels=labels,
        progress=progress,
        kept=parts,
        **options,
    )
    write(found, output)
    if parts is not None:
        parts.remove()


def parts_of(
    output: Path,
    model: str | Path,
    texts: Sequence[str],
    methods: Sequence[Method] | None,
    target: str | int | None,
    *,
    queries: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    **options: Any,
) -> Parts | None:
    """Where parts are kept while so many texts are explained; None: a few are done at once."""
    from heedful.engine.sources.models import find_source
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.methods import parse_methods, usual

    if output.suffix not in ENDINGS:
        raise Mistake(f"{output}: the ending must be {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    source = find_source(model, **_model_options(labels, queries))
    chosen = parse_methods(usual() if methods is None else methods)
    if any(one.explainer.name not in EXPLAINERS for one in chosen):
        return None  # a function of somebody's may be another the next time
    asked = {
        "model": source.fingerprint,
        "texts": list(texts),
        "queries": queries,
        "methods": [one.as_given() for one in chosen],
        "target": target,
        "options": options,
    }
    return Parts.beside(output, asked, len(texts)) if len(texts) > PART else None


def _model_options(labels: Sequence[str] | None, queries: Sequence[str] | None) -> dict[str, Any]:
    """What only a Hugging Face model has to be told."""
    given: dict[str, Any] = {} if labels is None else {"labels": labels}
    return given if queries is None else given | {"query": True}


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
            raise Mistake(f"give texts or examples, not both: {short(strange[0])} is no example.")
        check_examples(model, given)
        return given
    if not given:
        raise Mistake("there is no text.")
    return list(model.examples(given, queries))


def as_list(given: Any, what: str) -> list[Any]:
    """A list, tuple, column or iterator as a list; one string is not its letters."""
    if isinstance(given, str | bytes):
        raise Mistake(f"give a list of {what}, not one text.")
    if not isinstance(given, Iterable) or isinstance(given, Mapping | Set):
        raise Mistake(f"give a list of {what}, not {short(given)}.")
    return list(given)


def check_examples(model: Model, examples: Sequence[Example]) -> None:
    """An example made for another kind of model is refused, not read in part."""
    for example in examples:
        if model.network.has_query and example.query is None:
            raise Mistake(f"{model.name} reads a query with each text; example {example.id!r} has none.")
        if example.label is not None and not 0 <= example.label < len(model.labels):
            raise Mistake(
                f"example {example.id!r} has the label number {example.label}; {model.name} has {len(model.labels)}."
            )


def read_texts(texts: Sequence[str], file: Path | None) -> list[str]:
    """Texts as they were typed, then those of a file, one a line; "-" is standard input."""
    if file is None:
        if not texts:
            raise Mistake("give at least one TEXT, or --file.")
        return list(texts)
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise Mistake(f"--file {file}: {error.strerror}.") from None
    lines = []
    for number, line in enumerate(raw.splitlines(), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            raise Mistake(f"{file}, line {number}: this is not UTF-8.") from None
        if not lines[-1].strip():
            raise Mistake(f"{file}, line {number}: the text is empty.")
    return [*texts, *lines]


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


# Explaining many texts into a file: parts are kept beside it, so that an interrupted command goes on.


PART = 200  # texts: what an interruption can cost


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder of parts, a file for every `PART` texts, each whole or not there. It goes when the output is written."""

    folder: Path
    n_texts: int

    @classmethod
    def beside(cls, output: Path, asked: Mapping[str, Any], n_texts: int) -> Parts:
        """Named by all that decides the scores, so that another question never finds these parts."""
        from heedful import __version__

        told = json.dumps({**asked, "part": PART, "version": __version__}, sort_keys=True)
        key = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()
        return cls(output.with_name(f"{output.name}.{key[:12]}.parts"), n_texts)

    def file(self, begin: int) -> Path:
        return self.folder / f"{begin:08}.parquet"

    @property
    def left(self) -> int:
        """Texts that are still to be explained."""
        begins = range(0, self.n_texts, PART)
        return sum(min(PART, self.n_texts - begin) for begin in begins if not self.file(begin).exists())

    def explain(
        self, examples: Sequence[Example], explain: Callable[[Sequence[Example]], Explanation], bar: ProgressBar
    ) -> Explanation:
        """What is here is read; the rest is explained, and kept as soon as a part is whole."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise Mistake(f"{self.folder} cannot be made: {error.strerror}.") from None
        parts = []
        for begin in range(0, len(examples), PART):
            some, file = examples[begin : begin + PART], self.file(begin)
            if file.exists():
                parts.append(Explanation.load(file))
                bar.advance(len(some))
            else:
                parts.append(explain(some))
                parts[-1].save(file)
                bar.note(f"{min(begin + PART, len(examples))} of {len(examples)} texts")
        return Explanation.joined(parts)

    def remove(self) -> None:
        shutil.rmtree(self.folder)
