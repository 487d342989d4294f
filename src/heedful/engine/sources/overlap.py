"""What a reader must know of the texts that a model is asked about: copies, and texts that it was trained on.

Texts are compared, not the names of files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.describe import Content, tell_copies, tell_trained_on
from heedful.data.corpora.load import CORPORA, load_contents
from heedful.data.corpora.user_files import is_unlabelled, unlabelled_contents
from heedful.engine.sources.data import source_fingerprint
from heedful.engine.sources.models import ModelSource, RunSource
from heedful.errors import Mistake
from heedful.records import Split
from heedful.store.checks import HashFile, sha256
from heedful.store.run import Run


def find_doubts(
    source: ModelSource,
    dataset: str,
    options: DataOptions,
    data_dirs: Sequence[Path] = (),
    hash_file: HashFile = sha256,
) -> list[str]:
    """A sentence for each, about every split of the data."""
    texts = contents(dataset, options, data_dirs)
    doubts = [sentence for split, some in texts.items() for sentence in tell_copies(split, some)]
    if not isinstance(source, RunSource):
        return doubts  # nobody knows what it was trained on
    folders = (*data_dirs, *source.run.data_folders)
    try:
        training = frozenset(_training(source.run, folders, hash_file))
    except Mistake:
        return [*doubts, f"whether {source.name} was trained on these texts is not known: its own data were not found"]
    return doubts + [s for split, some in texts.items() for s in tell_trained_on(split, some, training, source.name)]


def contents(dataset: str, options: DataOptions, data_dirs: Sequence[Path]) -> Mapping[Split, list[Content]]:
    """The texts of each split, labelled or not."""
    path = locate.expand(dataset)
    if options.task != "generation" and dataset not in CORPORA and is_unlabelled(path, options):
        return {options.only or "test": unlabelled_contents(path, options)}
    return load_contents(dataset, data_dirs=data_dirs, options=options)


def _training(run: Run, data_dirs: Sequence[Path], hash_file: HashFile) -> list[Content]:
    config = run.config
    if source_fingerprint(config.dataset, config.data, data_dirs, hash_file) != run.info["data"]["fingerprint"]:
        raise Mistake(f"the data of {config.dataset} are not those that {run.path} was trained on.")
    return load_contents(config.dataset, data_dirs=data_dirs, options=config.data)["train"]


def doubts_of(run: Run) -> list[str]:
    """What was found when the run was made, or when its model was first asked about these data."""
    return [str(sentence) for sentence in run.info["data"].get("warnings", [])]
