"""This model, these data: which model is meant, which texts, how they are read, and which of its labels theirs are.

Every command and every function that takes a model and data asks here, so that all take the same, refuse the same, and
say the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.config import DataOptions
from heedful.data.corpora.assemble import spread_places
from heedful.data.corpora.labels import CaseVariants, NoMatch, find_label, show_labels
from heedful.engine.sources.data import SplitTexts, find_data, read_split
from heedful.engine.sources.label_fit import MOST_ROWS
from heedful.engine.sources.models import RUN_FOLDERS, MemorySource, ModelSource, find_source, source_of
from heedful.engine.sources.other_data import as_the_model_reads, read_as, read_other
from heedful.errors import Mistake, short
from heedful.records import SPLITS, Example, Split
from heedful.store.checks import FileHashes, HashFile
from heedful.store.run import Run

if TYPE_CHECKING:
    from heedful.engine.running.progress import Progress
    from heedful.models.model import Model

MOST_TEXTS = 1_000_000  # in one pass
LOOKED_AT = 50  # texts, before anything is asked


@dataclass(frozen=True, slots=True)
class SubjectOptions:
    """What the options that every command shares say, by the names that they have there."""

    reading: Mapping[str, Any] = field(default_factory=dict)  # of DataOptions, by name: text_column, label_map, ...
    labels: Sequence[str] | None = None  # of a checkpoint its outputs' names, in order; of a run the data's, in order
    split: str = "test"
    dtype: str | None = None
    device: str | None = None
    batch_size: int | None = None
    data_dirs: tuple[Path, ...] = ()
    queries: bool = False  # texts are given with queries: a model that may read either reads pairs


@dataclass(frozen=True)
class Subject:
    """A model, which is loaded when it is asked for, and the texts of a split."""

    source: ModelSource
    run: Run | None  # the folder that was given, where one was
    data: str | None  # other data than the run's own: a corpus, a file, hf:ID. None: its own, or none at all
    reading: DataOptions  # how they are read
    split: Split
    data_dirs: tuple[Path, ...] = ()
    device: str | None = None
    batch_size: int | None = None
    notes: tuple[str, ...] = ()  # what the user must be told

    @classmethod
    def resolve(cls, model: object, data: str | Path | None = None, options: SubjectOptions | None = None) -> Subject:
        """Whatever was given; what is wrong with it is said here, before anything is computed.

        Of other data a few texts are read, so that columns, labels and queries are known to fit.
        """
        given = options or SubjectOptions()
        split = check_split(given.split)
        check_batch_size(given.batch_size)
        if given.device is not None:
            from heedful.engine.running.processors import torch_device

            torch_device(given.device)
        source, run, reading = _find_model(model, data, given)
        source = source.on_device(given.device)
        if source.caution is not None:
            warnings.warn(source.caution, stacklevel=2)
        folders = given.data_dirs
        if data is None:
            if reading:
                raise Mistake(f"{next(iter(reading))} says how to read data: give --data, too.")
            return cls(source, run, None, DataOptions(), split, folders, given.device, given.batch_size)._own()
        where = check_place(data)
        if run is not None and is_own_data(run, where, reading, folders, run.hash_file):
            return cls(source, run, None, DataOptions(), split, folders, given.device, given.batch_size)._own()
        how = read_as(source, where, DataOptions.parse(dict(reading), f"reading {where}"), split)
        subject = cls(source, run, where, how, split, folders, given.device, given.batch_size)
        return subject._checked()

    def _own(self) -> Subject:
        """On the data that a run was trained on, or that a model was tried on before, wherever those were."""
        if self.run is None:
            return self
        folders = (*self.data_dirs, *self.run.data_folders)
        if self.run.trial is None:
            return replace(self, data_dirs=folders, reading=self.run.config.data)
        return replace(self, data=self.run.trial.dataset, reading=self.run.trial.data, data_dirs=folders)

    def _checked(self) -> Subject:
        """With the labels of the data as the model knows them, in pairs where the data have them, and what to say."""
        subject, texts = self, self._try(self.reading)
        if isinstance(texts, CaseVariants):
            reading = self.reading.model_copy(update={"labels": self._one_case(texts)})
            subject = replace(self, reading=reading)
            texts = subject._try(reading)
            if isinstance(texts, CaseVariants):
                raise texts
        if texts.task != "classification" and (in_pairs := subject.source.of_pairs()) is not None:
            subject = replace(subject, source=in_pairs)
        for label in subject.reading.label_map or {}:
            if texts.labels and find_label(label, texts.labels) is None:
                shown = show_labels(texts.labels)
                raise Mistake(f"--label-map: {label!r} is not a label of {self.data}, which has {shown}.")
        try:
            examples = subject._numbered(texts)
        except NoMatch as mismatch:
            more = subject._try(subject.reading, MOST_ROWS) if mismatch.unsure and texts.size > LOOKED_AT else texts
            if isinstance(more, CaseVariants) or more is texts:
                raise
            examples = subject._numbered(more)
        notes = [f"{subject.data}: columns read: {texts.columns}"] if texts.columns else []
        if texts.size and all(example.label is None for example in examples.values()):
            notes.append(
                f"{subject.data} has no column that is known to be the label (say which with --label-column): its "
                "texts count as unlabelled, so the model is not scored"
            )
        return replace(subject, notes=tuple(notes))

    def _try(self, reading: DataOptions, limit: int = LOOKED_AT) -> SplitTexts | CaseVariants:
        assert self.data is not None
        try:
            return read_other(self.data, reading, self.split, limit, self.data_dirs)
        except CaseVariants as variants:
            return variants

    def _one_case(self, variants: CaseVariants) -> tuple[str, ...]:
        """Labels of the data that differ in case alone: as the model tells them apart, if it does."""
        own = self.source.labels
        if len({label.strip().casefold() for label in own}) == len(own):
            return variants.folded
        if set(variants.apart) <= set(own):
            return variants.apart
        raise Mistake(
            f"{variants} Write each label of the data in one way: the model distinguishes {show_labels(own)} apart."
        )

    def _numbered(self, texts: SplitTexts) -> dict[int, Example]:
        assert self.data is not None
        return as_the_model_reads(texts.examples, texts.task, texts.labels, self.source, self.data, self.reading)

    @property
    def has_data(self) -> bool:
        return self.data is not None or self.run is not None

    @property
    def title(self) -> str:
        """What the data are called."""
        self.need_data()
        return Path(self.data).name if self.data is not None else self._own_run.config.dataset

    @property
    def _own_run(self) -> Run:
        assert self.run is not None
        return self.run

    def need_data(self) -> None:
        if not self.has_data:
            raise Mistake(f"{self.source.name} has no data of its own: give the texts with --data.")

    def read(self, limit: int | None = None) -> SplitTexts:
        """`limit` texts of the split, evenly spread, numbered as the model numbers its labels; None: all."""
        self.need_data()
        if self.data is not None:
            texts = read_other(self.data, self.reading, self.split, limit, self.data_dirs)
            texts = replace(texts, examples=self._numbered(texts))
        elif self.reading.edit is not None:  # as it was edited for this run
            from heedful.engine.sources.edited_data import corpus_of

            edited = corpus_of(self._own_run, self.data_dirs)[self.split]
            examples = {place: edited[place] for place in spread_places(len(edited), limit).tolist()}
            texts = SplitTexts(len(edited), examples, self.source.labels, "classification", self.title)
        else:
            texts = read_split(self.title, self.reading, self.split, limit, self.data_dirs)
        if not texts.size:
            raise Mistake(f"there is no {self.split} split in {self.title}; choose another with --split.")
        return texts

    def load(self) -> Model:
        return self._model

    @cached_property
    def _model(self) -> Model:
        from heedful.engine.running.processors import torch_device

        model = self.source.load(torch_device(self.device))
        return model if self.batch_size is None else replace(model, batch_size=self.batch_size)

    def say(self, progress: Progress) -> Subject:
        """Once, before anything is computed."""
        for note in self.notes:
            progress.say(note)
        return replace(self, notes=())


def check_place(data: object) -> str:
    """The name of data: a table in memory is none."""
    if isinstance(data, str | Path):
        return str(data)
    kept = (
        " Save a table first (frame.to_csv('data.csv', index=False)), and give the file."
        if hasattr(data, "columns")
        else ""
    )
    raise Mistake(f"{short(data)} is not the name of data: give a corpus, a file or folder, or hf:ID.{kept}")


def check_split(split: str) -> Split:
    for known in SPLITS:
        if split == known:
            return known
    raise Mistake(f"--split {short(split)}: the splits are {', '.join(SPLITS)}.")


def check_batch_size(batch_size: int | None) -> None:
    whole = isinstance(batch_size, int) and not isinstance(batch_size, bool)
    if batch_size is not None and not (whole and 1 <= batch_size <= MOST_TEXTS):
        raise Mistake(f"--batch-size {short(batch_size)}: a whole number of texts is needed, at least 1.")


def _find_model(
    model: object, data: str | Path | None, given: SubjectOptions
) -> tuple[ModelSource, Run | None, dict[str, Any]]:
    """The source of a model, its run folder where it has one, and how to read data for it. Files are hashed once."""
    hashes, reading = FileHashes(), dict(given.reading)
    if isinstance(model, str | Path) and RUN_FOLDERS.claims(model):
        model = Run(Path(model).absolute(), hashes)
    if isinstance(model, Run):
        if given.labels is not None and data is None:
            raise Mistake(
                f"{model.path} is a run folder, which takes no option 'labels' but for data: give --data, too."
            )
        if given.labels is not None:
            reading["labels"] = tuple(given.labels)
        if given.dtype not in (None, "auto", "float32"):
            raise Mistake(f"--dtype {short(given.dtype)}: {model.name} was trained in float32, and is computed in it.")
        return source_of(model), model, reading
    if not isinstance(model, str | Path):
        if given.labels is not None:
            raise Mistake("labels can only be given for a checkpoint named by its folder or id.")
        if given.dtype is not None:
            raise Mistake("dtype can only be given for a checkpoint named by its folder or id.")
        source = find_source(model, hashes)
        if given.device is not None and isinstance(source, MemorySource):
            raise Mistake("device can only be given for a model named by its folder or id, not for one in memory.")
        return source, None, reading
    said = {"labels": given.labels, "dtype": given.dtype, "query": given.queries or None}
    told = {name: value for name, value in said.items() if value is not None}
    return find_source(model, hashes, **told), None, reading


def is_own_data(
    run: Run, dataset: str, given: Mapping[str, Any], data_dirs: Sequence[Path], hash_file: HashFile
) -> bool:
    """Whether these are the data that a run was trained on, and nothing says that they are to be read otherwise."""
    if run.trial is not None or Path(dataset).name != run.dataset:
        return False
    own, asked = run.config.data, DataOptions.parse(dict(given), f"reading {dataset}")
    if any(getattr(own, name) != getattr(asked, name) for name in given):
        return False
    found = find_data(dataset, own, data_dirs, hash_file).fingerprint
    return bool(found == run.info["data"]["fingerprint"])
