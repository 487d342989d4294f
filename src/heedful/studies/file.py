"""A study as it is written down: `studies/*.toml` is data, this reads it."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from heedful.errors import Mistake, one_of, short
from heedful.experiments import EXPERIMENTS, Published
from heedful.studies.study import Study

RENAMED = {"cures": "interventions", "cures-order": "interventions-order"}  # what a study was called -> is called
DEEPEST = 5  # studies that are like one another
_FOLDER = files("heedful") / "studies" / "papers"


def study_names() -> list[str]:
    """The studies that heedful has itself."""
    endings = [file.name for file in _FOLDER.iterdir() if file.name.endswith(".toml")]
    return sorted(name.removesuffix(".toml").replace("_", "-") for name in endings)


def current_name(name: str) -> str:
    """A study's name of today, also for those who remember an older one."""
    return RENAMED.get(name, name)


def read_study(name: str) -> Study:
    """A study by name ("jain-wallace") or a TOML file of one's own; unknown keys, and unused ones, are refused."""
    values, where = _values(name)
    study = Study.parse(values, where)
    check_sections(study, where)
    return study


def _values(name: str, above: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    """What a study's file says, and all else that the study says that it is `like`; and what to call it.

    `above`: the studies that are like this one, one after the other.
    """
    name = current_name(name)
    path = Path(name)
    folder: Traversable
    if path.suffix == ".toml":
        where, folder, text = str(path), path.parent, _read(path)
    else:
        if name not in study_names():
            raise one_of("study", name, study_names())
        where, folder = f"the study {name}", _FOLDER
        text = _read(folder / f"{name.replace('-', '_')}.toml")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and brackets without end
        raise Mistake(f"{where} is not TOML: {str(error)[:200]}.") from None
    if isinstance(values.get("numbers"), str):
        values["numbers"] = read_numbers(folder / values["numbers"])
    like = values.get("like")
    if not isinstance(like, str):
        return values, where
    if len(above) >= DEEPEST:
        raise Mistake(f"{where}: like: these studies refer to each other without end.")
    theirs, _ = _values(like, (*above, name))
    for part in ("datasets", "encoders", "experiments"):
        if not isinstance(values.get(part, []), list):
            raise Mistake(f"{where}: {part}: a list is needed.")
    return _without_strangers(theirs, values), where


OF_MODELS = ("vectors", "data", "model", "by_encoder", "training")  # of [on.DATASET]


def _without_strangers(theirs: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """What a study says, over what the one says that it is like: of that all but what is about something outside its
    grid, and how often and what the other asks on one dataset."""
    grid = theirs | values
    if "on" not in values:
        on = theirs.get("on", {}).items()
        grid["on"] = {
            name: {part: said for part, said in here.items() if part in OF_MODELS}
            for name, here in on
            if name in grid["datasets"]
        }
    for part, kept in {"by_encoder": "encoders", "options": "experiments", "limits": "experiments"}.items():
        if part not in values:
            grid[part] = {name: said for name, said in theirs.get(part, {}).items() if name in grid[kept]}
    return grid


def check_sections(study: Study, where: str) -> None:
    """A section about something outside the grid would be read and never used: a slip of the hand."""
    asked = {dataset: here.experiments or study.experiments for dataset, here in study.on.items()}
    experiments = tuple(dict.fromkeys([*study.experiments, *(name for some in asked.values() for name in some)]))
    encoders = (*study.encoders, *(own.model.get("encoder", "") for own in study.variants.values()))
    sections = [
        *((f"[on.{name}]", name, "dataset", study.datasets) for name in study.on),
        *((f"[by_encoder.{name}]", str(name), "encoder", encoders) for name in study.by_encoder),
        *(
            (f"[on.{dataset}.by_encoder.{name}]", str(name), "encoder", encoders)
            for dataset, here in study.on.items()
            for name in here.by_encoder
        ),
        *((f"[options.{name}]", name, "experiment", experiments) for name in study.options),
        *((f"[limits] {name}", name, "experiment", experiments) for name in study.limits),
        *(
            (f"[on.{dataset}.{part}.{name}]", name, "experiment", asked[dataset])
            for dataset, here in study.on.items()
            for part, names in (("options", here.options), ("limits", here.limits))
            for name in names
        ),
        *(
            (f"[variants.{variant}] datasets", name, "dataset", study.datasets)
            for variant, own in study.variants.items()
            for name in own.datasets or ()
        ),
    ]
    for section, name, what, grid in sections:
        if name not in grid:
            known = ", ".join(filter(None, grid))
            raise Mistake(f"{where}: {section} is never used: the study has no {what} {short(name)}, but {known}.")
    for name in experiments:
        EXPERIMENTS.check(name)


def read_numbers(file: Traversable) -> list[dict[str, Any]]:
    """Published numbers of a CSV file: the fields of `Published`, and `value`.

    Other columns are ends of the statistic: `mean` in the row of `overall.tau` is the statistic `overall.tau.mean`.
    """
    rows = csv.DictReader(_read(file).splitlines())
    fields = {name: about for name, about in Published.model_fields.items() if name != "value"}
    known = [name for name, about in fields.items() if about.is_required() or name in (rows.fieldnames or ())]
    missing = [field for field in known if field not in (rows.fieldnames or ())]
    if missing:
        raise Mistake(f"{file} has no column {missing[0]!r}: it needs {', '.join(known)}, and value.")
    numbers = []
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise Mistake(f"{file}, line {line}: it has not as many cells as the first line.")
        about = {field: row.pop(field) for field in known}
        for end, value in row.items():
            if value:
                path = about["statistic"] if end == "value" else f"{about['statistic']}.{end}"
                numbers.append(about | {"statistic": path, "value": value})
    return numbers


@dataclass(frozen=True, slots=True)
class Notes:
    """What we make of a study's outcome, in words: the finding, for the top of its page, and an appendix."""

    finding: str = ""
    appendix: str = ""
    runs: int = 0  # that they are about
    datasets: frozenset[str] = frozenset()

    def of(self, datasets: Sequence[str]) -> Notes:
        """The notes for a page of runs on these datasets, one name for each run: none where they are about others."""
        if not self.runs or (self.runs, self.datasets) == (len(datasets), frozenset(datasets)):
            return self
        return Notes(
            f"heedful's own notes on this study are about {self.runs} runs on {', '.join(sorted(self.datasets))}; they "
            f"are left out here, because this page is about {len(datasets)} other runs."
        )


def notes_of(name: str) -> Notes:
    """The file says first which runs it is about, then the finding, then has a heading for each part of the appendix.
    Empty for studies without notes."""
    path = _FOLDER / f"{current_name(name).replace('-', '_')}.md"
    if not path.is_file():
        return Notes()
    text = path.read_text(encoding="utf-8")
    about = re.match(r"<!-- about (\d+) runs of (.*) -->\n", text)
    assert about is not None, f"{path} does not say which runs it is about"
    finding, heading, rest = text[about.end() :].partition("## ")
    return Notes(finding.strip(), f"{heading}{rest}".strip(), int(about[1]), frozenset(about[2].split(", ")))


def _read(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{str(file)[:200]} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"{file} is not UTF-8 (byte {error.start}).") from None
    except ValueError:  # a NUL in its name
        raise Mistake(f"{str(file)!r} is not a name of a file.") from None
