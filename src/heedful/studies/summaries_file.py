"""What a study's runs found, as one small file: enough to make its page again, without weights, texts or training.

Parquet. A row is of a run and of an experiment: how it was asked, and its summary, JSON with numbers to seven digits;
or of a run and of a measure that a question of the study is about, with the number of each text, to four decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.config import RunConfig, stored_settings
from heedful.engine.tasks.task import Request
from heedful.errors import Mistake
from heedful.experiments.framework.description import setting_of
from heedful.studies.comparison import Finished
from heedful.studies.study import Study
from heedful.studies.variants import Values, VariantRun

SCHEMA = pa.schema(
    {
        "config": pa.dictionary(pa.int32(), pa.string()),
        "experiment": pa.string(),  # of a summary
        "summary": pa.string(),
        "asked": pa.string(),  # null in a file of before it was written
        "measure": pa.string(),  # of numbers
        "texts": pa.list_(pa.int32()),
        "values": pa.list_(pa.float64()),
    }
)


def write_summaries(path: Path, runs: Sequence[Finished]) -> None:
    rows = [row for run in sorted(runs, key=lambda run: (run.setting, run.seed)) for row in _rows(run)]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, compression="zstd", compression_level=19)


def _rows(run: Finished) -> Iterator[dict[str, Any]]:
    assert run.config is not None  # runs of a folder or a file have one
    config = run.config.model_dump_json()
    for experiment, summary in run.stored.items():
        text = json.dumps(_short(summary), separators=(",", ":"))
        asked = run.asked[experiment].model_dump_json() if experiment in run.asked else None
        yield {"config": config, "experiment": experiment, "summary": text, "asked": asked}
    for measure, numbers in (run.variant.measured if run.variant else {}).items():
        values = np.round(np.array(list(numbers.values())), 4)
        yield {"config": config, "measure": measure, "texts": list(numbers), "values": values}


def read_summaries(path: Path, study: Study) -> list[Finished]:
    """The runs that the file has; refused where the study would train one of them otherwise today."""
    try:
        table = pq.read_table(path, schema=SCHEMA)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise Mistake(f"{path} has no summaries of a study: {str(error)[:200]}") from None
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        runs.setdefault(row["config"], []).append(row)
    return [_finished(path, study, config, rows) for config, rows in runs.items()]


def _finished(path: Path, study: Study, text: str, rows: Sequence[Mapping[str, Any]]) -> Finished:
    config = RunConfig.parse(stored_settings(json.loads(text)), str(path))
    variant, model = study.variant_of(config, config.vectors), config.model
    if variant is None:
        raise Mistake(
            f"{path}: the study would train {config.dataset}, {model.encoder}, {model.attention}, seed {config.seed} "
            "with other settings today: it is a file of another study, or of what this one was before."
        )
    setting = setting_of(config.dataset, model.encoder, model.attention, variant)
    summaries = [row for row in rows if row["experiment"] is not None]
    measured: dict[str, Values] = {
        row["measure"]: dict(zip(row["texts"], row["values"], strict=True))
        for row in rows
        if row["measure"] is not None
    }
    return Finished(
        setting,
        config.seed,
        {row["experiment"]: json.loads(row["summary"]) for row in summaries},
        VariantRun(config.dataset, variant, config.seed, measured) if study.questions else None,
        config,
        {row["experiment"]: Request.parse(json.loads(row["asked"]), str(path)) for row in summaries if row["asked"]},
    )


def _short(value: Any) -> Any:
    """With seven digits, which pages do not show."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list) else value
