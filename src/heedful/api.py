"""The public surface in Python: what `heedful.<name>` is. Each function is one call into the layers below."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.engine.progress import Progress
from heedful.errors import Mistake
from heedful.explanation import Explanation
from heedful.heatmap import Pair, Pairs, visible
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.engine.rows import Rows
    from heedful.engine.task import Ask
    from heedful.models.model import Model
    from heedful.report.export import Written
    from heedful.report.findings import Findings, Illustrated
    from heedful.store.run import Run

DEFAULT_METHODS = (
    "attention",
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "lrp",
    "occlusion",
    "omission",
)


def load(path: str | Path | Run) -> Model:
    """A trained model from its run folder."""
    from heedful.engine.train import load as load_run

    return load_run(_open(path))


def train(
    dataset: str,
    *,
    encoder: str = "bilstm",
    attention: str = "additive",
    seed: int = 0,
    vectors: str | None = None,
    runs: str | Path = "runs",
    data_dirs: Sequence[str | Path] = (),
    data: dict[str, Any] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Train on a corpus by name, one's own file, or "hf:ID"; a run that is finished is not done again.

    `settings` are those of ModelConfig and TrainingConfig (epochs, hidden_dim, ...), `data` those of
    DataOptions (text_column, label_column, ...).
    """
    from heedful.config import ModelConfig
    from heedful.engine.carry_out import train_one
    from heedful.engine.configure import configure
    from heedful.engine.workspace import Workspace

    progress = progress or Progress()
    sizes = {name: settings.pop(name) for name in list(settings) if name in ModelConfig.model_fields}
    model = {"encoder": encoder, "attention": attention, **sizes}
    config = configure(dataset, data=data or {}, model=model, training=settings, vectors=vectors, seed=seed)
    folders = [Path(folder) for folder in data_dirs]
    return train_one(config, Workspace(Path(runs), tuple(folders)), progress)


def explain(
    model: Model,
    texts: Sequence[str] | Sequence[Example],
    methods: Sequence[str] | None = None,
    target: str | int | None = None,
    *,
    queries: Sequence[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Explanation:
    """Scores for every word of every text, by each of the methods.

    `target` is a label by name or number (None: the predicted one). Options (`n_steps`, `baselines`,
    `internal_batch_size`, `of`, ...) go to every method that takes them.
    """
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.run import explain as run_explain

    names = list(methods or DEFAULT_METHODS)
    if names == ["all"]:
        names = [name for name, explainer in EXPLAINERS.items() if explainer.needs <= model.network.can]
    examples = _as_examples(model, texts, queries)
    progress = progress or Progress(quiet=True)
    with progress.bar("explain", total=len(examples)) as bar:
        return run_explain(model, examples, names, target, bar.advance, **options)


def run(
    experiment: str,
    model: Model | Run | str | Path,
    examples: Sequence[Example] | Sequence[str] | None = None,
    *,
    queries: Sequence[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Rows:
    """An experiment's rows: of the examples given, or of a split of the corpus that a run was trained on.

    Rows of a run's own corpus are kept in its folder, and not computed again. `options` are the experiment's.
    """
    from heedful.engine import rows
    from heedful.engine.plan import ask
    from heedful.models.model import Model

    asked = ask(experiment, options, split, limit)
    progress = progress or Progress(quiet=True)
    if examples is None:
        if isinstance(model, Model):
            raise Mistake("give examples, or the run folder, whose corpus is known.")
        return _run_stored(asked, _open(model), [Path(folder) for folder in data_dirs], progress)
    loaded = model if isinstance(model, Model) else load(model)
    texts = _as_examples(loaded, examples, queries)
    with progress.bar(experiment, total=len(texts)) as bar:
        return rows.Rows(experiment, rows.ask_model(loaded, texts, asked, loaded.seed, bar))


def adversary(
    model: Model,
    texts: Sequence[str] | Sequence[Example],
    *,
    queries: Sequence[str] | None = None,
    epsilon: float | None = None,
) -> Pairs:
    """Each text with its attention, and beside it the most different one that leaves the prediction within epsilon.

    The heatmap pairs of Jain & Wallace 2019, appendix C. `epsilon` None is .01, and .05 for models with a query.
    """
    examples = _as_examples(model, texts, queries)
    table = run("adversarial", model, examples, epsilon=epsilon).table.sort_by("example")
    pairs = []
    for row in table.to_pylist():
        passage = examples[row["example"]].passage
        if row["jsd"] is None or math.isnan(row["jsd"]):
            raise Mistake(f"{visible(passage.text, 60)!r} has no word that attention could move to.")
        how = "the greatest there is" if row["exact"] else f"at most {row['bound']:.3f} can be had"
        title = f"{model.labels[row['predicted']]}; JSD between the two {row['jsd']:.3f} ({how})"
        own, other = (np.array(row[name]) for name in ("attention", "adversarial"))
        pairs.append(Pair(passage, own, other, row["delta_y"], title=title))
    return Pairs(tuple(pairs))


def write_report(
    runs: Sequence[str | Path | Run],
    output: str | Path,
    *,
    figures: str | Path | None = None,
    texts: bool = True,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
    command: str = "",
) -> Written:
    """One HTML page about runs that have results; with `figures`, each figure as PNG and SVG in that folder.

    `texts=False` leaves out everything that shows or needs a text. Returns the files and the verdicts.
    """
    from heedful.report import export, findings, page
    from heedful.report.judge import judged

    if not runs:
        raise Mistake("give at least one run folder.")
    export.check_page(Path(output))
    progress = progress or Progress(quiet=True)
    opened = [_open(run) for run in runs]
    found = [findings.read(run) for run in opened]
    folders = [Path(folder) for folder in data_dirs]
    subjects = [
        _illustrated(run, known, folders, progress) if texts else findings.Illustrated(known)
        for run, known in zip(opened, found, strict=True)
    ]
    progress.say("draw the page")
    export.write_page(page.page(subjects, command), Path(output))
    drawn: list[Path] = []
    for subject in subjects if figures is not None else ():
        folder = Path(figures or ".")
        several = len(subjects) > 1
        drawn += export.write_figures(
            page.figures(subject), folder / subject.findings.name if several else folder
        )
    return export.Written(Path(output), tuple(drawn), {s.findings.name: judged(s) for s in subjects})


def _illustrated(run: Run, findings: Findings, data_dirs: Sequence[Path], progress: Progress) -> Illustrated:
    """Findings with the texts they are of: the chosen ones and a sample explained by every method."""
    from heedful.data import corpora
    from heedful.engine.data_sources import source_fingerprint
    from heedful.report.examples import choose
    from heedful.report.findings import Illustrated
    from heedful.report.sample import sampled

    config = run.config
    split = corpora.load(config.dataset, data_dirs=data_dirs, options=config.data)[findings.split]
    if source_fingerprint(config.dataset, config.data, data_dirs) != run.info["data"]["fingerprint"]:
        raise Mistake(
            f"the data of {config.dataset} are not those that {run.path} was trained on: its results cannot be "
            "shown with their texts. Give the right data with --data-dir, or leave the texts out with --no-texts."
        )
    model = load(run)
    examples = {i: split[i] for table in findings.tables.values() for i in table["example"].to_pylist()}
    choices, places = choose(findings.tables, examples), sampled(examples)
    wanted = list(dict.fromkeys([*(choice.place for choice in choices), *places]))
    explained = _explained_for_people(model, [examples[place] for place in wanted], progress)
    by_place = dict(zip(wanted, explained, strict=True))
    chosen, sample = (
        Explanation(tuple(by_place[place] for place in some), run.name)
        for some in ([choice.place for choice in choices], places)
    )
    return Illustrated(findings, examples, choices, chosen, sample, places)


def _explained_for_people(model: Model, examples: list[Example], progress: Progress) -> Explanation:
    """Every default method; what a missing word changes is told of the probability, a number people know."""
    from heedful.report.naming import STEPS

    removing = ("occlusion", "omission")
    others = [name for name in DEFAULT_METHODS if name not in removing]
    halves = (
        explain(model, examples, others, progress=progress, **STEPS),
        explain(model, examples, removing, of="probability"),
    )
    return Explanation(
        tuple(
            replace(a, attributions=(*a.attributions, *b.attributions)) for a, b in zip(*halves, strict=True)
        ),
        model.name,
    )


def _run_stored(asked: Ask, run: Run, data_dirs: Sequence[Path], progress: Progress) -> Rows:
    from heedful.engine.carry_out import carry_out
    from heedful.engine.plan import plan_for_run
    from heedful.engine.rows import Rows
    from heedful.engine.workspace import Workspace

    plan = plan_for_run(run, [asked], data_dirs)
    carry_out(plan, Workspace(run.path.parent, tuple(data_dirs)), progress, "here", strict=True)
    (task,) = plan.of("experiment")
    return Rows(asked.experiment, run.results.rows(asked.experiment, task.key))


def _open(path: str | Path | Run) -> Run:
    from heedful.store.run import Run

    run = path if isinstance(path, Run) else Run(Path(path))
    if not run.path.is_dir():
        raise Mistake(f"there is no run folder {run.path}.")
    return run


def _as_examples(
    model: Model, texts: Sequence[str] | Sequence[Example], queries: Sequence[str] | None
) -> list[Example]:
    """Texts as examples of this model; examples as they are."""
    if isinstance(texts, str):
        raise Mistake("give a list of texts, not one text.")
    examples = [text for text in texts if isinstance(text, Example)]
    if len(examples) != len(texts):
        examples = list(model.examples([str(text) for text in texts], queries))
    if not examples:
        raise Mistake("there is no text.")
    return examples


def list_explainers() -> list[str]:
    """The names of all explainers."""
    from heedful.explainers import EXPLAINERS

    return list(EXPLAINERS)


def list_experiments() -> list[str]:
    """The names of all experiments."""
    from heedful.experiments import EXPERIMENTS

    return list(EXPERIMENTS)


def list_corpora() -> list[str]:
    """The names of all corpora that are known or found."""
    from heedful.data.catalogue import catalogue

    return [row.name for row in catalogue()]


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
    """By the ending: .html, .json, and .parquet for explanations."""
    if path.suffix == ".parquet" and isinstance(shown, Explanation):
        shown.save(path)
    elif path.suffix == ".json":
        path.write_text(shown.to_json(), encoding="utf-8")
    elif path.suffix == ".html":
        page = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        path.write_text(f"{page}<title>heedful</title>{shown.to_html()}", encoding="utf-8")
    else:
        endings = ".html, .json or .parquet" if isinstance(shown, Explanation) else ".html or .json"
        raise Mistake(f"--output {path}: the ending must be {endings}.")
