"""The map of the package: folders that are ideas, small enough to be seen at once, and no name twice."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

import heedful

ROOT = Path(heedful.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MOST_MODULES = 12
MOST_LINES = 350
# Files of more lines, which are to become smaller: a new one is not added here.
LONG = {"experiments/other_training/imitation.py", "experiments/adversarial/search.py"}


def test_no_folder_holds_more_modules_than_one_sees_at_once() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in FILES if path.name != "__init__.py")
    assert {str(folder): n for folder, n in counts.items() if n > MOST_MODULES} == {}


def test_a_file_is_one_sitting() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} == LONG


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_folder_says_what_it_is() -> None:
    folders = {path.parent for path in FILES}
    silent = [f for f in folders if not ast.get_docstring(ast.parse((f / "__init__.py").read_text()))]
    assert silent == []
