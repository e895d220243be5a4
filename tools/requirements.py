"""Marks in docs/requirements.md which requirements a test names: `x` when one does, `o` while it is open."""

import ast
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/requirements.md"
TESTS = ROOT / "tests"
IDENTIFIER = re.compile(r"\b(?:S[0-4]-\d\d|D[1-9]\d?)\b")
ROW = re.compile(r"^\| (\S+) \| ([xo]) \| (.+) \| (.+) \|$", re.MULTILINE)


def main() -> int:
    named = ids_named_by_tests()
    PAGE.write_text(ROW.sub(lambda row: _marked(row, is_shown=row[1] in named), PAGE.read_text()))
    print(f"{len(named)} of {len(ROW.findall(PAGE.read_text()))} requirements are named by a test")
    return 0


def ids_named_by_tests() -> set[str]:
    """Collect the ids in docstrings and comments of all tests but the architecture's own."""
    paths = (path for path in TESTS.rglob("test_*.py") if path.parent.name != "architecture")
    return {identifier for path in paths for identifier in IDENTIFIER.findall(_docstrings(path) + _comments(path))}


def _marked(row: re.Match[str], *, is_shown: bool) -> str:
    return f"| {row[1]} | {'x' if is_shown else 'o'} | {row[3]} | {row[4]} |"


def _docstrings(path: Path) -> str:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, documented))
    return "".join(f"{ast.get_docstring(node)}\n" for node in nodes)


def _comments(path: Path) -> str:
    with tokenize.open(path) as file:
        tokens = tokenize.generate_tokens(file.readline)
        return "".join(f"{token.string}\n" for token in tokens if token.type == tokenize.COMMENT)


if __name__ == "__main__":
    sys.exit(main())
