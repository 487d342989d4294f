"""Translators of our own: train one, score one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.models import as_path, as_paths
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.data.translation.pairs import SentencePair
    from heedful.models.translation.config import TranslationRun
    from heedful.models.translation.model import TranslationModel
    from heedful.records import Split

BEAM = 5


def configure_translation(
    dataset: str, *, settings: Mapping[str, Any] | None = None, data: Mapping[str, Any] | None = None, seed: int = 0
) -> TranslationRun:
    """Settings of the model, of its training and of the data by their names; None: not said."""
    from heedful.models.translation.config import TranslationRun, sort_translation

    said = sort_translation({name: value for name, value in (settings or {}).items() if value is not None})
    said["data"] |= {name: value for name, value in (data or {}).items() if value is not None}
    values = {"dataset": dataset, "seed": seed, **said}
    return TranslationRun.parse(values, f"training a translator on {dataset[:200]}")


def read_splits(config: TranslationRun, data_dirs: Sequence[Path] = ()) -> dict[Split, list[SentencePair]]:
    """The pairs of each split. Of a corpus without a dev or a test split every tenth pair of training is one."""
    from heedful.data.formats.rows import Ledger
    from heedful.data.translation.read import read_pairs

    ledger = Ledger(config.data.skip_bad)
    found: dict[Split, list[SentencePair]] = {"train": [], "dev": [], "test": []}
    for pair in read_pairs(config.dataset, data_dirs, 0, config.data, ledger):
        found[pair.split or "train"].append(pair)
    for split, begin in (("dev", 0), ("test", 5)):
        if not found[split]:  # type: ignore[index]
            found[split] = found["train"][begin::10]  # type: ignore[index]
            taken = {id(pair) for pair in found[split]}  # type: ignore[index]
            found["train"] = [pair for pair in found["train"] if id(pair) not in taken]
    if config.data.train_rows is not None:
        found["train"] = found["train"][: config.data.train_rows]
    for split, pairs in found.items():
        if not pairs:
            raise Mistake(f"{config.dataset} has no {split} pairs; training a translator needs some of each.")
    return found


def train_translator(
    config: TranslationRun,
    *,
    runs: str | Path = "runs",
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> Path:
    """Train one in this process, or take the one that is there: the folder that it is in."""
    from heedful.engine.running.processors import threads
    from heedful.engine.sources.translators import save_translator
    from heedful.engine.tasks.train import library_versions
    from heedful.models.translation.model import as_model, build_translator
    from heedful.models.translation.text import learn_text
    from heedful.models.translation.training import TrainingPairs, fit_translator

    progress = progress or Progress(quiet=True)
    pairs = read_splits(config, as_paths(data_dirs))
    folder = as_path(runs, "a folder for runs") / run_name(config, pairs)
    if folder.exists():
        progress.say(f"{folder} is there already: nothing to do")
        return folder
    every = (text for pair in pairs["train"] for text in (pair.source, pair.target))
    text = learn_text(every, config.model.pieces, config.model.min_count)
    network = build_translator(config.model, text, config.seed)
    sizes = ", ".join(f"{split} {len(some):,}" for split, some in pairs.items())
    progress.say(f"{config.dataset}: {sizes} pairs; {len(text.vocabulary):,} words or pieces in both languages")
    train, dev = (
        TrainingPairs.encode([pair.source for pair in some], [pair.target for pair in some], text)
        for some in (pairs["train"], pairs["dev"])
    )
    history = []
    with threads(1), progress.bar(f"train {folder.name}", total=config.training.epochs * len(train)) as bar:
        for epoch in fit_translator(network, train, dev, config.training, config.seed, bar.step):
            history.append(asdict(epoch))
            mark = " (best)" if epoch.best else ""
            bar.note(f"epoch {epoch.epoch}: loss {epoch.loss:.3f}, dev perplexity {epoch.perplexity:.3f}{mark}")
    model = as_model(folder.name, network, text, config.seed)
    scores = {"split": "test", **score_translator(model, pairs["test"])}
    about = {
        "config": config.model_dump(mode="json"),
        "scores": scores,
        "training": history,
        "pairs": {split: len(some) for split, some in pairs.items()},
        "versions": library_versions(True),
    }
    save_translator(folder, network, text, about)
    return folder


def score_translator(model: TranslationModel, pairs: Sequence[SentencePair], beam: int = BEAM) -> dict[str, float]:
    """BLEU, chrF, exact texts and right words of what it says by beam search."""
    from heedful.models.translation.scores import translation_scores

    said = model.translate([pair.source for pair in pairs], beam)
    return {"pairs": len(pairs), "beam": beam, **translation_scores(said, [pair.target for pair in pairs])}


def scores_of(folder: Path) -> dict[str, Any]:
    """On test, as they were when it was trained."""
    from heedful.engine.sources.translators import TranslatorSource

    found: dict[str, Any] = TranslatorSource(folder).about["scores"]
    return found


def run_name(config: TranslationRun, pairs: Mapping[Split, Sequence[SentencePair]]) -> str:
    """Readable first, then a key of all that decides the weights: settings and texts."""
    texts = hashlib.sha256()
    for some in pairs.values():
        for pair in some:
            texts.update(f"{pair.source}\x1f{pair.target}\x1e".encode())
    told = json.dumps(config.model_dump(mode="json", exclude={"dataset"}), sort_keys=True) + texts.hexdigest()
    model = config.model
    stem = Path(config.dataset).name.split(".")[0]
    key = hashlib.sha256(told.encode()).hexdigest()[:8]
    return f"{stem}-{model.encoder}-{model.attention}-{model.decoder}-s{config.seed}-{key}"
