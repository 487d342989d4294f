"""Datasets of the Hugging Face library: `hf:ID`, `hf:ID:CONFIG`, or the folder of a saved dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from heedful.config import DataOptions
from heedful.data.assemble import CorpusRows
from heedful.data.readers.rows import SPLIT_NAMES, Ledger
from heedful.data.readers.tables import Table
from heedful.data.user_files import choose_columns, raw_rows, recipe_for, task_warnings
from heedful.errors import Mistake
from heedful.records import Split


def open_hf(spec: str, options: DataOptions) -> CorpusRows:
    """`ID`, `ID:CONFIG`, or the folder of a dataset saved with `save_to_disk`."""
    try:
        import datasets
    except ImportError:
        raise Mistake(
            "hf: needs the `datasets` library; install it with pip install 'heedful[hf]'."
        ) from None
    splits = _hf_splits(datasets, spec)
    ledger = Ledger(options.skip_bad)
    sources: list[tuple[Split | None, Table]] = []
    for name, data in splits.items():
        split = options.only or (SPLIT_NAMES.get(name) if len(splits) > 1 else None)
        if split is None and len(splits) > 1:
            ledger.left_out[f"rows of the split {name!r}"] += len(data)
            continue
        table = Table(Path(f"{spec}/{name}"), tuple(data.column_names), enumerate(data, start=1))
        sources.append((split, table))
    if not sources:
        raise Mistake(
            f"hf:{spec} has the splits {', '.join(splits)}, and none of them is train, dev or test."
        )
    columns = choose_columns(sources[0][1], options)
    recipe = recipe_for(columns, options)
    feature = next(iter(splits.values())).features[columns.label]
    names: list[str] | None = getattr(feature, "names", None)  # of a ClassLabel
    if names and not options.labels:
        recipe = replace(recipe, labels=tuple(names))
    if "test" not in [split for split, _ in sources]:
        sources = [(None if split == "train" else split, table) for split, table in sources]
    return CorpusRows(
        re.sub(r"\W+", "-", Path(spec).name).strip("-") or "hf",
        chain.from_iterable(raw_rows(table, columns, split, ledger) for split, table in sources),
        recipe,
        ledger,
        f"hf:{spec}",
        label_column=columns.label,
        warnings=task_warnings(columns, options),
    )


def _hf_splits(datasets: Any, spec: str) -> Mapping[str, Any]:
    path = Path(spec).expanduser()
    try:
        if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
            data = datasets.load_from_disk(str(path))
        else:
            name, _, config = (spec, "", "") if path.exists() else spec.partition(":")
            data = datasets.load_dataset(name, config or None)
    except Exception as error:  # the library raises its own, the hub's and the network's errors
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise Mistake(f"hf:{spec} could not be loaded ({reason}).") from None
    return data if isinstance(data, Mapping) else {"all": data}
