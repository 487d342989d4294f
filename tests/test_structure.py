"""The map: folders that are ideas, small enough to be seen at once, no name twice; what tests and scripts import."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import heedful
from heedful.registry import EXPERIMENTS, EXPLAINERS

HERE = Path(__file__).parent
ROOT = Path(heedful.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MOST_MODULES = 12
MOST_LINES = 350
TIERS = ("tests", "checks", "benchmarks")  # each is started on its own, and knows nothing of the two others
# What tests replace although it is private: sizes of pieces, lists that were read already, what is to fail or to wait.
# They import nothing private, and nothing is added here.
REPLACED = {
    "test_adversary.py: _CELLS",
    "test_corpus_warnings.py: _loaded",
    "test_experiment_permutation.py: _CELLS",
    "test_inference.py: _CELLS",
    "test_other_runs.py: _loaded",
    "test_rank.py: _CELLS",
    "test_sources.py: _loaded",
    "test_statistics.py: _CELLS",
    "test_statistics.py: _REMEMBERED",
    "test_task_kinds.py: _loaded",
    "test_web.py: _make",
    "test_web_questions.py: _explain",
    "test_web_security.py: _rows",
}


def test_no_folder_holds_more_modules_than_one_sees_at_once() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in FILES if path.name != "__init__.py")
    assert {str(folder): n for folder, n in counts.items() if n > MOST_MODULES} == {}


def test_a_file_is_one_sitting() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


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


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Every module that a file imports or imports from, and what it takes of it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), one.name) for one in node.names)


def test_tests_checks_and_benchmarks_import_nothing_of_each_other() -> None:
    files = [(tier, path) for tier in TIERS for path in sorted((HERE.parent / tier).glob("*.py"))]
    tier_of = {path.stem: tier for tier, path in files}
    assert len(tier_of) == len(files)  # no two of one name, so that an import means one thing
    assert set(tier_of.values()) == set(TIERS)
    across = [
        f"{tier}/{path.name}: {module}"
        for tier, path in files
        for module, _ in imported(path)
        if tier_of.get(module.split(".")[0], tier) != tier or module.split(".")[0] in TIERS
    ]
    assert across == []


def test_scripts_find_what_is_beside_them_and_nothing_else() -> None:
    """`python checks/recompute.py` has its own folder on the path already."""
    files = [path for tier in ("checks", "benchmarks") for path in (HERE.parent / tier).glob("*.py")]
    assert [path.name for path in files if "sys.path" in path.read_text()] == []


def test_tests_take_nothing_private() -> None:
    """They import no name with a leading underscore, take none from a module, and replace only those listed."""
    taken, replaced = set(), set()
    for path in sorted(HERE.glob("*.py")):
        modules = {"heedful"}
        for module, name in imported(path):
            if module.split(".")[0] == "heedful":
                taken |= {f"{path.name}: {name}"} if private(name) else set()
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "heedful":
                own = [one for one in node.names if is_module(f"{node.module}.{one.name}")]
                modules |= {one.asname or one.name for one in own}
            elif isinstance(node, ast.Import):
                modules |= {str(one.asname) for one in node.names if one.name.startswith("heedful.")}
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and private(node.attr):
                if isinstance(node.value, ast.Name) and node.value.id in modules:
                    taken.add(f"{path.name}: {node.attr}")
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr":
                named = [str(one.value).split(".")[-1] for one in node.args[:2] if isinstance(one, ast.Constant)]
                replaced |= {f"{path.name}: {name}" for name in named[:1] if private(name)}
    assert taken == set()
    assert replaced == REPLACED


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_module(name: str) -> bool:
    """Whether it is a module of heedful, and not a name in one."""
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


# Where the layers that loop over methods and experiments have a word that is also a name of one, and means another
# thing. For the two of WORDS a key of data (`row["attention"]`) needs no line here: keys of dicts, and what stands in
# brackets, are not looked at.
WORDS = {"attention": "what models have: a setting, a column, a tab", "heads": "of a layer"}
OTHER_THINGS = {
    "api/lists.py": {"lime": "a package of that name", "shap": "a package of that name"},
    "cli/train.py": {"rationale": "a setting"},
    "engine/tasks/configure.py": {"rationale": "a setting"},
    "engine/tasks/kinds.py": {"attention": "a property of a source of models"},
    "server/live/prediction.py": {"attention": "what is read aloud of a drawing"},
    "server/live/self_attention.py": {"attention": "the address of the page"},
    "server/pages/heads.py": {"attention": "the address of the page", "uniform": "an operation on a head"},
    "server/pages/overview.py": {"attention": "a setting in the address"},
    "server/pages/run.py": {"attention": "a fact about a run"},
    "server/stored/library.py": {"attention": "a key of config.json"},
}
LOOPING = ("server", "report", "auditing", "cli", "api", "figures", "engine")


def test_layers_that_loop_hold_no_name_of_a_method_or_an_experiment() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        place = path.relative_to(ROOT)
        if place.parts[0] in LOOPING:
            found[str(place)] |= names_in(ast.parse(path.read_text()))
    assert {place: names for place, names in found.items() if names} == {
        place: set(words) for place, words in OTHER_THINGS.items()
    }


def names_in(tree: ast.AST) -> set[str]:
    """Strings that are the name of an explainer or of an experiment; of WORDS only those that are not keys of data."""
    names, keys = {*EXPLAINERS, *EXPERIMENTS}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys |= {id(key) for key in node.keys}
        elif isinstance(node, ast.Subscript):
            keys.add(id(node.slice))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            keys |= {id(argument) for argument in node.args[:1]}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in names
        and not (node.value in WORDS and id(node) in keys)
    }


def test_a_list_of_names_is_seen() -> None:
    assert names_in(ast.parse('SLOW = ("lime",)\nif name == "attention": pass\nASKED = {"permutation": 3}')) == {
        "lime",
        "attention",
        "permutation",
    }
    assert names_in(ast.parse('row = {"attention": other["attention"]}')) == set()
