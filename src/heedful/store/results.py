"""The results of a run, each kept under the key of the task that made it.

    kept/<experiment>-<key>.parquet         rows; the key and what was asked stand in the file's metadata, too
    kept/<experiment>-<key>.seal.json       written last: checksum of the rows, and of the weights they are of
    kept/<experiment>-<key>.summary.json    the summary, with the checksum of the rows it is of, and its own
    <experiment>.parquet, <experiment>.summary.json    what was asked last: links to the files above

So asking for other options, another split or fewer texts never costs what was computed before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import Mistake
from heedful.files import link, whole_file
from heedful.store.checks import (
    Damaged,
    HashFile,
    check_file,
    read_object,
    read_signed,
    read_sums,
    sha256,
    write_signed,
)

if TYPE_CHECKING:
    import pyarrow as pa

MADE_BY = "task"  # the field of a summary that says how it was made


@dataclass(frozen=True, slots=True)
class Results:
    """The folder `results` of a run."""

    path: Path
    hash_file: HashFile = sha256

    @property
    def kept(self) -> Path:
        return self.path / "kept"

    def rows_path(self, experiment: str, key: str) -> Path:
        return self.kept / f"{experiment}-{key}.parquet"

    def summary_path(self, experiment: str, key: str) -> Path:
        return self.kept / f"{experiment}-{key}.summary.json"

    def write_rows(
        self, experiment: str, key: str, table: pa.Table, asked: Mapping[str, Any], weights: str, seconds: float
    ) -> None:
        """Rows, then their seal. Wall-clock time stands in the seal only: rows are the same every time."""
        import pyarrow.parquet as pq

        path = self.rows_path(experiment, key)
        made_by = {
            "heedful": json.dumps({"experiment": experiment, "key": key, "weights": weights, **asked}, sort_keys=True)
        }
        with whole_file(path) as temporary:
            described = table.replace_schema_metadata(made_by)
            pq.write_table(described, temporary, compression="zstd", write_page_checksum=True)
        seal = {"experiment": experiment, "key": key, "asked": asked, "weights": weights, "rows": sha256(path)}
        n_texts = len(table["example"].unique())
        write_signed(
            self._seal_path(experiment, key), {**seal, "n_rows": table.num_rows, "n_texts": n_texts, "seconds": seconds}
        )

    def seals(self) -> Iterator[dict[str, Any]]:
        """Of all rows that are kept; damaged ones are left out."""
        for path in sorted(self.kept.glob("*.seal.json")):
            with suppress(Damaged):
                seal = read_signed(path)
                if seal is not None and "n_texts" in seal:
                    yield seal

    def seal(self, experiment: str, key: str) -> dict[str, Any] | None:
        """What was written of these rows; None where they are not there."""
        return read_signed(self._seal_path(experiment, key))

    def check_rows(self, experiment: str, key: str) -> dict[str, Any] | None:
        """The seal, once the rows were found to be what it says; raises `Damaged`."""
        seal = self.seal(experiment, key)
        if seal is not None:
            check_file(self.rows_path(experiment, key), seal["rows"], self.hash_file)
        return seal

    def rows(self, experiment: str, key: str | None = None) -> pa.Table:
        """The rows of a task, or those that were asked for last."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path / f"{experiment}.parquet" if key is None else self.rows_path(experiment, key)
        again = f"run `heedful run {experiment} --model {self.path.parent}`."
        if not path.is_file():
            raise Mistake(f"{path} is not there: {again}")
        if key is None:
            self.check_published(experiment)
        try:
            return pq.read_table(path, page_checksum_verification=True)
        except (pa.ArrowException, OSError):
            raise Mistake(f"{path} is damaged: {again}") from None

    def write_summary(self, experiment: str, key: str, summary: Mapping[str, Any], made_by: Mapping[str, Any]) -> None:
        write_signed(self.summary_path(experiment, key), {**summary, MADE_BY: {"key": key, **made_by}})

    def write_performance(self, scores: Mapping[str, Any]) -> None:
        """Of a model on data that it was not trained on: scores of the texts that were asked about last."""
        write_signed(self.path / "performance.summary.json", scores)

    def check_summary(self, experiment: str, key: str) -> dict[str, Any] | None:
        """The whole summary of a task, MADE_BY included; None where it is not there; raises `Damaged`."""
        return read_signed(self.summary_path(experiment, key))

    def publish(self, experiment: str, rows_key: str, summary_key: str) -> None:
        """Let the plain names stand for this result."""
        link(self.rows_path(experiment, rows_key), self.path / f"{experiment}.parquet")
        link(self.summary_path(experiment, summary_key), self.path / f"{experiment}.summary.json")

    def summary(self, experiment: str) -> dict[str, Any] | None:
        """The summary under its plain name, without MADE_BY."""
        value = self._plain_summary(experiment)
        return None if value is None else {name: v for name, v in value.items() if name != MADE_BY}

    def made_by(self, experiment: str) -> dict[str, Any] | None:
        """How the summary under its plain name was made; None where there is none, or nobody asked for it."""
        value = self._plain_summary(experiment)
        return None if value is None else value.get(MADE_BY)

    def check_published(self, experiment: str) -> None:
        """The rows under their plain name are what their summary was made of, or else rows that are kept."""
        path = self.path / f"{experiment}.parquet"
        made_by = self.made_by(experiment) or {}
        if "rows" not in made_by:
            return  # nobody has said what they were
        digest = self.hash_file(path)
        if digest == made_by["rows"]:
            return
        # Rows and summary are published one after the other, so for a moment they are of two questions.
        if not any(seal["experiment"] == experiment and seal["rows"] == digest for seal in self.seals()):
            again = f"run `heedful run {experiment} --model {self.path.parent}`."
            raise Mistake(f"{path} is damaged: its checksum is not that of what was written: {again}")

    def _plain_summary(self, experiment: str) -> dict[str, Any] | None:
        path = self.path / f"{experiment}.summary.json"
        if experiment == "performance" and path.is_file():
            plain = self._performance(path)
            if plain is not None:
                return plain
        try:
            return read_signed(path)
        except Damaged as damage:
            raise Mistake(f"{damage}: run `heedful run {experiment} --model {self.path.parent}`.") from None

    def _performance(self, path: Path) -> dict[str, Any] | None:
        """Scores that are sealed with the run that they are of; None where they carry a checksum of their own."""
        try:
            plain = read_object(path)
            if "sha256" in plain:
                return None
            sums = read_sums(self.path.parent)
            if sums:
                check_file(path, sums.get("results/performance.summary.json", "none"), self.hash_file)
        except Damaged as damage:
            raise Mistake(f"{damage}: put back what it was, or make the run again.") from None
        return plain

    def _seal_path(self, experiment: str, key: str) -> Path:
        return self.kept / f"{experiment}-{key}.seal.json"
