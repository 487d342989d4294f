"""MIMIC-III (Johnson et al. 2016): discharge summaries of NOTEEVENTS with the codes of DIAGNOSES_ICD.

Credentialed data: nothing of it is ever shipped. The notes are several GB, so they are streamed; only
the diagnoses of the admissions that have a label are kept in memory.

diabetes  (Jain & Wallace 2019, section 3: "labeled with the ICD9 code for diabetes (or not)"):
    diabetic = any code of category 250; the others are all other admissions that have codes. The
    authors' notebook counts 250.00 alone, and only the admissions of the "50 codes" split of Mullenbach
    et al. 2018: put its train_50_hadm_ids.csv, dev_50_... and test_50_... beside the tables to get it.
anemia    acute = 285.1 (acute posthemorrhagic), chronic = 285.2x (285.21 kidney, 285.22 neoplastic, 285.29
    other chronic disease), admissions with both or neither left out. The paper's text says acute 0 and
    chronic 1, but its Table 1 (1847 / 3251) has the larger class second, and in MIMIC-III and in the
    authors' notebook that is acute. We keep the order of the numbers: chronic 0, acute 1.

One admission is one example, with its first full report (addenda are left out). Without id files the
split is by patient, from a hash of SUBJECT_ID, so that nobody is in two splits: 70 / 10 / 20 percent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.data.formats.rows import Ledger, Raw, text_lines
from heedful.data.formats.tables import read_header, separated_rows
from heedful.errors import Mistake
from heedful.records import SPLITS, Split

Judge = Callable[[set[str]], str | None]  # ICD9 codes of an admission -> label, None: not in the corpus
DEIDENTIFIED = re.compile(r"\[\*\*.*?\*\*\]", re.DOTALL)


def diabetes(codes: set[str]) -> str:
    return "diabetic" if any(code.startswith("250") for code in codes) else "other"


def anemia(codes: set[str]) -> str | None:
    acute = "2851" in codes
    chronic = any(code.startswith("2852") for code in codes)
    return None if acute == chronic else ("acute" if acute else "chronic")


def read(folder: Path, ledger: Ledger, judge: Judge) -> Iterator[Raw]:
    labels = _labels(_table(folder, "DIAGNOSES_ICD"), ledger, judge)
    listed = _listed_splits(folder, ledger)
    path = _table(folder, "NOTEEVENTS")
    seen: set[str] = set()
    columns = ("SUBJECT_ID", "HADM_ID", "CATEGORY", "DESCRIPTION", "ISERROR", "TEXT")
    for line, (patient, admission, category, description, error, text) in _rows(path, ledger, columns):
        if category.strip().lower() != "discharge summary" or admission not in labels:
            continue
        if listed is not None and admission not in listed:
            continue
        if error.strip() == "1" or description.strip().lower() == "addendum" or admission in seen:
            ledger.left_out["addenda, erroneous notes and further reports"] += 1
            continue
        seen.add(admission)
        split = listed[admission] if listed is not None else _split_of(patient)
        # Names and dates are masked in the data as [**...**]; one plain word stands for each of them.
        yield Raw(f"{path.name}:{line}", DEIDENTIFIED.sub("deid", text).strip(), labels[admission], split)


def _labels(path: Path, ledger: Ledger, judge: Judge) -> dict[str, str]:
    codes: dict[str, set[str]] = {}
    for _, (admission, code) in _rows(path, ledger, ("HADM_ID", "ICD9_CODE")):
        if code:
            codes.setdefault(admission, set()).add(code.replace(".", "").strip())
    judged = ((admission, judge(of_admission)) for admission, of_admission in codes.items())
    return {admission: label for admission, label in judged if label is not None}


def _table(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz"):
        if path.exists():
            return path
    raise Mistake(f"{folder} has neither {name}.csv nor {name}.csv.gz.")


def _rows(path: Path, ledger: Ledger, wanted: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    _, header = read_header(path, ",")
    names = [name.upper() for name in header]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise Mistake(f"{path} has no column {missing[0]}; it has {', '.join(header)}.")
    places = [names.index(name) for name in wanted]
    for line, fields in separated_rows(path, ledger, ",", len(names)):
        yield line, [fields[i] for i in places]


def _listed_splits(folder: Path, ledger: Ledger) -> dict[str, Split] | None:
    paths = {split: folder / f"{split}_50_hadm_ids.csv" for split in SPLITS}
    if not all(path.exists() for path in paths.values()):
        return None
    return {id.strip(): split for split, path in paths.items() for _, id in text_lines(path, ledger)}


def _split_of(patient: str) -> Split:
    percent = int(hashlib.sha256(patient.strip().encode()).hexdigest(), 16) % 100
    return "test" if percent < 20 else "dev" if percent < 30 else "train"
