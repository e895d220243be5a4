"""The package stays one that can be seen through: few modules, not too small, and few functions to jump over."""

import ast
from collections import Counter
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).resolve().parents[2] / "src/facho"
MODULES = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}

MOST_MODULES = 400
LEAST_MEDIAN_LINES = 100
# Of all functions. A private function that one line calls is a jump, not a part.
MOST_CALLED_ONCE = 0.15


def test_there_are_few_modules_and_they_are_not_small() -> None:
    lines = [len(text.splitlines()) for text in MODULES.values()]

    assert len(lines) <= MOST_MODULES
    assert median(lines) >= LEAST_MEDIAN_LINES


def test_few_functions_are_private_and_called_once() -> None:
    trees = [ast.parse(text) for text in MODULES.values()]
    functions = sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for tree in trees for node in ast.walk(tree)
    )

    assert sum(map(called_once, trees)) / functions <= MOST_CALLED_ONCE


def called_once(tree: ast.Module) -> int:
    """Count the private functions of a module whose only mention is one call."""
    mentions: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    private = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("_") and node.name[1:2] != "_":
                private.append(node.name)
            case ast.Name():
                mentions[node.id] += 1
            case ast.Attribute():
                mentions[node.attr] += 1
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                calls[name] += 1
    return sum(mentions[name] == 1 == calls[name] for name in private)
