"""Modules know each other one way only, and say at their top whom they know."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}
# Django that is not set up yet, and clients that take half a second to load.
MOST_IMPORTS_IN_FUNCTIONS = 40


def imported_by(name: str) -> set[str]:
    """Return our modules that a module names anywhere, inside its functions too."""
    found: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= whole or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & MODULES.keys()) - {name}


def imports_in_functions(tree: ast.Module) -> Iterator[ast.stmt]:
    at_top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (
                each
                for each in ast.walk(node)
                if isinstance(each, ast.Import | ast.ImportFrom) and id(each) not in at_top
            )


def test_no_two_modules_import_each_other() -> None:
    imports = {name: imported_by(name) for name in MODULES}

    mutual = [(one, other) for one in imports for other in imports[one] if one < other and one in imports[other]]

    assert mutual == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count too: what has to be loaded late to work has no order a reader could follow."""
    imports = {name: imported_by(name) for name in MODULES}
    rest = dict(imports)
    while free := [name for name, known in rest.items() if not known & rest.keys()]:
        rest = {name: known for name, known in rest.items() if name not in free}
    # What is left only leads to a circle, or is part of one.
    while ends := rest.keys() - {known for each in rest.values() for known in each}:
        rest = {name: known for name, known in rest.items() if name not in ends}

    assert sorted(rest) == []


def test_few_functions_import_anything() -> None:
    counted = Counter({name: len({id(each) for each in imports_in_functions(tree)}) for name, tree in TREES.items()})

    assert counted.total() <= MOST_IMPORTS_IN_FUNCTIONS, counted.most_common(10)


def test_every_room_is_in_a_contract_that_leaves_out_none() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

    exhaustive = [container for each in contracts if each.get("exhaustive") for container in each["containers"]]

    assert exhaustive == ["facho", "facho.core", "facho.dashboard", "facho.polling"]
