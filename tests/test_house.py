"""The house: nothing imports from a later row, and what each file and function may be.

Read from the syntax trees, so that imports within functions and for type checkers count too.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import gradsieve

PACKAGE = Path(gradsieve.__file__).parent
# What may import what: each part those before it. CONTRIBUTING.md says what each is for.
ROWS = (
    "text errors version files tensors settings tasks start",
    "network",
    "engine reference kernel",
    "flow change",
    "sieve judgement",
    "recipe recipes",
    "training",
    "torch",
    "data model export diagnosis fitting estimators",
    "bench experiments",
    "report",
    "cli __main__",
)
ORDER = [name for row in ROWS for name in row.split()]
ROOT = "gradsieve"  # its __init__ has the public names: what lies up to training
TWINS = {"Sieve", "SRN"}  # gs. and gst.: the same thing for the core and for PyTorch
MOST_LINES = 400
MOST_PARAMETERS = 10


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {
    module_name(path): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported(tree: ast.Module) -> list[str]:
    """The full names that a module imports from the package: modules, or names within them."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] == ROOT]


def room(name: str) -> str:
    """The part of the house that a module, or a name within one, belongs to."""
    parts = name.split(".")
    inside = len(parts) > 1 and f"{ROOT}.{parts[1]}" in TREES
    return parts[1] if inside else ROOT


def place(name: str) -> int:
    return ORDER.index("training") if name == ROOT else ORDER.index(name)


def test_every_part_of_the_package_has_its_row():
    assert {room(module) for module in TREES} == {*ORDER, ROOT}
    assert len(set(ORDER)) == len(ORDER)


def test_contributing_shows_these_rows():
    page = Path(__file__).parents[1] / "CONTRIBUTING.md"
    rows = [line.strip() for line in page.read_text().splitlines() if line.startswith("    ")]
    shown = [re.split(r"  +", row)[0].replace(",", "") for row in rows]
    assert shown == [row.removesuffix(" __main__") for row in ROWS]


@pytest.mark.parametrize("module", TREES)
def test_nothing_imports_from_a_later_row(module):
    own = room(module)
    later = [name for name in imported(TREES[module]) if place(room(name)) > place(own)]
    assert not later, f"{module} imports {later}, which lie in a later row"


def test_the_root_is_imported_only_from_above_it():
    below = {
        module for module, tree in TREES.items() for name in imported(tree)
        if room(name) == ROOT and module != ROOT and place(room(module)) <= place(ROOT)
    }  # fmt: skip
    assert not below


def test_no_part_imports_a_private_name_of_another():
    found = [
        f"{module} imports {name}"
        for module, tree in TREES.items()
        for name in imported(tree)
        if room(name) != room(module)
        and any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
    ]
    assert not found, "\n".join(found)


def test_a_public_class_has_a_name_of_its_own():
    defined = defaultdict(list)
    for module, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(module)
    twice = {name: modules for name, modules in defined.items() if len(modules) > 1}
    assert not {name: twice[name] for name in twice if name not in TWINS}
    assert set(twice) == TWINS


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([item for item in given if item.arg not in ("self", "cls")])


def functions(module: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("module", TREES)
def test_no_function_has_more_parameters_than_one_can_keep_in_mind(module):
    """But where a framework reads them: a command's options, an estimator's settings."""
    estimator = module == "gradsieve.estimators"
    long = {
        function.name: parameters(function)
        for function in functions(module)
        if parameters(function) > MOST_PARAMETERS
        and not (estimator and function.name == "__init__")
        and not is_command(module, function)
    }
    assert not long, f"{module}: {long}"


def is_command(module: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A command of Typer's is a public function of a file of `cli` that has its name."""
    return module == f"gradsieve.cli.{function.name}" and function in TREES[module].body


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_file_is_longer_than_one_can_read_in_a_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_a_lazy_import_and_one_for_type_checkers_count():
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from gradsieve.cli import app\n"
        "def late():\n    import gradsieve.report\n"
    )
    assert imported(tree) == ["gradsieve.cli.app", "gradsieve.report"]
