"""Which words matter to a model over a whole corpus: the dataset view of Li et al. 2016, word by word and label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.api.models import subject_options
from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import Subject
from heedful.errors import Mistake, short
from heedful.explanation.explanation import Explanation
from heedful.measure.levels import shrink_means
from heedful.records import Example

if TYPE_CHECKING:
    from heedful.engine.sources.models import ModelSource
    from heedful.models.model import Model
    from heedful.store.run import Run

FEWEST = 5  # texts that must hold a word, or nothing is said of it


@dataclass(frozen=True, slots=True)
class WordEffect:
    """A word of the texts of one label. `effect` is how much more surprising the label is without it, in nats."""

    label: str
    word: str
    texts: int  # that hold it
    places: int  # where it stands in them
    effect: float  # mean over the texts, drawn to the mean of all words of the label: measure/levels.py
    low: float  # 95% interval
    high: float
    plain: float  # the mean itself
    relative: float  # Li et al.'s I: the mean of (S without - S) / S, without bound where the model is sure

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def words(
    model: Model | Run | ModelSource | str | Path,
    data: str | Path | None = None,
    *,
    data_options: Mapping[str, Any] | None = None,
    split: str = "test",
    limit: int | None = None,
    label: str = "predicted",
    min_texts: int = FEWEST,
    labels: Sequence[str] | None = None,
    label_map: Mapping[str, str] | None = None,
    dtype: str | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> list[WordEffect]:
    """Every word of `min_texts` texts or more, by label and falling effect of leaving it out.

    Of a run's own data, or of `data`. `label`: the one that the model predicts, or the true one of each text.
    """
    options = subject_options(data_options, labels, label_map, split, dtype, device, batch_size, data_dirs)
    progress = progress or Progress(quiet=True)
    subject = Subject.resolve(model, data, options).say(progress)
    return rank_words(subject, limit=limit, label=label, min_texts=min_texts, progress=progress)


def rank_words(
    subject: Subject, *, limit: int | None, label: str, min_texts: int, progress: Progress
) -> list[WordEffect]:
    for name, number, least in (("--limit", limit, 1), ("--min-texts", min_texts, 2)):
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and not (whole and least <= number < 2**63):
            raise Mistake(f"{name} {short(number)}: a whole number is needed, {least} or more.")
    if label not in ("predicted", "true"):
        raise Mistake(f"--label {short(label)}: use predicted or true.")
    examples = [*subject.read(limit).examples.values()]
    loaded = subject.load()
    if not loaded.network.link.distribution:
        raise Mistake(f"{loaded.name} does not choose one of its labels, but the ranking of Li et al. needs P(label).")
    return effects_by_label(loaded, examples, label, min_texts, progress)


def effects_by_label(
    model: Model, examples: Sequence[Example], label: str, min_texts: int, progress: Progress
) -> list[WordEffect]:
    """One value for each word and text: the mean over the places where it stands there."""
    from heedful.explainers.perturbation.corpus_view import erase_words

    found: dict[str, dict[str, list[tuple[float, float, int]]]] = defaultdict(lambda: defaultdict(list))
    with progress.bar("words", total=len(examples)) as bar:
        for indices, batch in model.batches(examples):
            erased = erase_words(model.network, batch, label="true" if label == "true" else "predicted")
            masks, tokens = batch.passage.mask.cpu().numpy(), batch.passage
            for row, index in enumerate(indices):
                passage, mask = examples[int(index)].passage, masks[row]
                which = (
                    np.arange(mask.sum()) if tokens.word_index is None else tokens.word_index[row].cpu().numpy()[mask]
                )
                first = np.unique(which, return_index=True)[1]  # of a word's pieces: they are erased together
                changes, shares = (
                    values[row].cpu().numpy()[mask][first] for values in (erased.difference, erased.relative)
                )
                by_word: dict[str, list[int]] = defaultdict(list)
                for place, word in enumerate(which[first].tolist()):
                    by_word[passage.surface(word).lower()].append(place)
                here = found[model.labels[int(erased.label[row])]]
                for word_form, places in by_word.items():
                    numbers = float(changes[places].mean()), float(shares[places].mean())
                    here[word_form].append((*numbers, len(places)))
            bar.advance(len(indices))
    return [row for name in model.labels if name in found for row in _rows(name, found[name], min_texts)]


def words_of_file(path: Path, *, min_texts: int = FEWEST, progress: Progress | None = None) -> list[WordEffect]:
    """The same of the file that `heedful explain` made of a corpus by leave-one-out, without asking the model again.

    Its scores are P(label) - P(label without the word), so the file needs `omission` with `of=probability`. It is read
    row group by row group.
    """
    from heedful.explainers.perturbation import OMISSION
    from heedful.explanation.files import read_groups

    found: dict[str, dict[str, list[tuple[float, float, int]]]] = defaultdict(lambda: defaultdict(list))
    progress, groups = progress or Progress(quiet=True), read_groups(path)
    least = np.finfo(np.float64).eps
    for columns, run in groups:
        for one in Explanation.of_columns(columns, run).by_word():
            how = next(
                (a for a in one.attributions if a.method == OMISSION.name and a.options.get("of") == "probability"),
                None,
            )
            if how is None or how.target != one.predicted:
                raise Mistake(
                    f"{path} does not say what each word does to the probability of the predicted label: make it by "
                    f"heedful explain MODEL --file TEXTS -m {OMISSION.name}:of=probability -o {path.name}"
                )
            p = float(one.probabilities.max())
            without = np.clip(p - np.asarray(how.scores["passage"]), least, 1.0)
            whole = max(-float(np.log(max(p, least))), least)
            change = -np.log(without) - whole
            by_word: dict[str, list[int]] = defaultdict(list)
            for place in range(len(one.passage)):
                by_word[one.passage.surface(place).lower()].append(place)
            for form, places in by_word.items():
                numbers = float(change[places].mean()), float((change[places] / whole).mean())
                found[one.predicted][form].append((*numbers, len(places)))
    return [row for name in sorted(found) for row in _rows(name, found[name], min_texts)]


def _rows(label: str, by_word: Mapping[str, list[tuple[float, float, int]]], min_texts: int) -> list[WordEffect]:
    known = {word: np.array(values) for word, values in by_word.items() if len(values) >= min_texts}
    drawn = shrink_means([values[:, 0] for values in known.values()])
    rows = [
        WordEffect(
            label,
            word,
            len(values),
            int(values[:, 2].sum()),
            mean.value,
            mean.low,
            mean.high,
            float(values[:, 0].mean()),
            float(values[:, 1].mean()),
        )
        for (word, values), mean in zip(known.items(), drawn, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row.effect, row.word))
