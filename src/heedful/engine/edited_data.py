"""The corpus that a run reads: as its files have it, or edited, where need be by scores that another run has.

An edit may be of texts that were edited before: those of the run that scored them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heedful.config import EditConfig
from heedful.data.edits import parse_edit
from heedful.engine.data_sources import load_plain_corpus
from heedful.records import Corpus
from heedful.store.run import Run

Edited = Sequence[str]  # the run folder that has the scores of every word, the method, and their key


def edit_by_scores(plain: Corpus, edit: EditConfig | None, edited: Edited | None, runs: Path) -> Corpus:
    """`edited` is where the scores are that the edit needs; `runs` the folder of run folders."""
    if edit is None:
        return plain
    found, options = parse_edit(edit)
    if edited is None:
        return found.apply(plain, options, {})
    folder, method, key = edited
    base = Run(runs / folder)
    before = edit_by_scores(plain, base.config.data.edit, base.info.get("edited"), runs)
    return found.apply(before, options, base.fitted(words_scored_by(method), key))


def corpus_of(run: Run, data_dirs: Sequence[Path] = ()) -> Corpus:
    """What a run was trained on."""
    config = run.config
    plain = load_plain_corpus(config.dataset, config.data, data_dirs)
    return edit_by_scores(plain, config.data.edit, run.info.get("edited"), run.path.parent)


def words_scored_by(method: str) -> str:
    """What scores are called where what explainers learn is kept."""
    return f"words-{method}"
