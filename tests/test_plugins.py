"""heedful.plugins: the names for authors of extensions are those that it documents, and cost nothing before use."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful import plugins

HERE = Path(__file__).parent


def test_the_names_are_those_that_are_documented() -> None:
    """Each in one line of the docstring, and where type checkers find it, too."""
    assert plugins.__doc__ is not None
    documented = re.findall(r"^    (\w+) +\S.*$", plugins.__doc__, flags=re.MULTILINE)
    assert sorted(documented) == sorted(plugins.__all__) == sorted(set(documented))
    (checked,) = (node for node in ast.parse(Path(plugins.__file__).read_text()).body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert {str(node.module): tuple(alias.name for alias in node.names) for node in imports} == plugins.PLACES
    assert sorted(name for names in plugins.PLACES.values() for name in names) == sorted(plugins.__all__)


@pytest.mark.parametrize("name", plugins.__all__)
def test_each_name_is_the_thing_itself(name: str) -> None:
    (place,) = (module for module, names in plugins.PLACES.items() if name in names)
    assert getattr(plugins, name) is getattr(importlib.import_module(place), name)
    assert name in dir(plugins)


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Explainers'"):
        _ = plugins.Explainers


def test_importing_loads_no_torch_before_a_name_that_needs_it() -> None:
    code = (
        "import sys; from heedful.plugins import Experiment, Column, Batch, Config, Mistake, Result, common_columns\n"
        "print('torch' in sys.modules); from heedful.plugins import Encoder; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True"], done.stderr


@pytest.mark.parametrize(
    "path", [*sorted((HERE / "toy_package").rglob("*.py")), HERE / "toy_transformer.py"], ids=lambda path: path.name
)
def test_the_toy_package_imports_nothing_else(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert all(module in ("heedful", "heedful.plugins") for module in modules if module.split(".")[0] == "heedful")
