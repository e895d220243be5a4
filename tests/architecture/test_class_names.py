"""One class name, one meaning: no two modules of the package define a class of the same name."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules_by_class() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted((ROOT / "src/facho").rglob("*.py")):
        if "migrations" not in path.parts:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path.relative_to(ROOT / "src/facho").as_posix())
    return found


def test_every_class_name_has_one_meaning() -> None:
    assert {name: modules for name, modules in modules_by_class().items() if len(modules) > 1} == {}
