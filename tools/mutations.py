"""Breaks the product on purpose, one small change at a time, and expects the tests of a requirement to notice.

A mutation in tests/mutations/*.toml is a piece of the product's text that occurs once, what replaces it, and the ids of
the requirements that are broken then. Of the tests that name an id, at least one must fail. `make mutations` runs them
all; `python -m tools.mutations S0-09 queue` those of a requirement, or those with a word in their description.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools import requirements

ROOT = requirements.ROOT
LISTS = ROOT / "tests/mutations"
# What a mutation may change.
PRODUCT = ("src", "deploy")
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", ".*")
SUFFIXES = {".py", ".html", ".yaml", ".yml", ".conf", ".service", ".js", ".css"}
# Tests that start processes or storms run only when no quick one noticed: pytest puts them before those of pure rules.
QUICK, SLOW = "not slow", "slow"
# A mutation that makes a test wait forever has not been noticed.
PATIENCE_SECONDS = 300
# A test without its parameters: all of them count as one.
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py::[\w:]+)", re.MULTILINE)

Tests = Mapping[str, set[str]]


@dataclass(frozen=True)
class Mutation:
    """One change of the product that breaks requirements."""

    what: str
    old: str
    new: str
    ids: tuple[str, ...]
    database: str = "sqlite"


@dataclass(frozen=True)
class Verdict:
    """What the tests said to a mutation: the requirements whose tests did not notice it."""

    mutation: Mutation
    unnoticed: tuple[str, ...]
    report: str


def main(words: Sequence[str]) -> int:
    """Run the chosen mutations, and say which ones were not noticed and which requirements none breaks."""
    mutations = [mutation for mutation in load_mutations() if _is_chosen(mutation, words)]
    tests = tests_by_id()
    survivors = []
    for number, verdict in enumerate(run(mutations, tests), 1):
        told = "noticed" if not verdict.unnoticed else f"NOT NOTICED by the tests of {', '.join(verdict.unnoticed)}"
        print(
            f"{number}/{len(mutations)} {', '.join(verdict.mutation.ids)}: {verdict.mutation.what}: {told}", flush=True
        )
        if verdict.unnoticed:
            survivors.append(verdict)
    for verdict in survivors:
        print(f"\n== {verdict.mutation.what}\n{verdict.report}")
    uncovered = [] if words else uncovered_ids(mutations)
    shown = {identifier for mutation in mutations for identifier in mutation.ids}
    print(f"{len(mutations)} mutations of {len(shown)} requirements, {len(survivors)} survived")
    if uncovered:
        print(f"no mutation breaks {', '.join(uncovered)}")
    return 1 if survivors or uncovered or not mutations else 0


def load_mutations() -> list[Mutation]:
    entries = [entry for path in sorted(LISTS.glob("*.toml")) for entry in tomllib.loads(path.read_text())["mutation"]]
    return [Mutation(**{**entry, "ids": tuple(entry["ids"])}) for entry in entries]


def uncovered_ids(mutations: Iterable[Mutation]) -> list[str]:
    """Name the requirements of docs/requirements.md that no mutation breaks."""
    broken = {identifier for mutation in mutations for identifier in mutation.ids}
    return [row[0] for row in requirements.ROW.findall(requirements.PAGE.read_text()) if row[0] not in broken]


def find_place(old: str, root: Path = ROOT) -> Path:
    """Find the one file of the product that holds the text once; a moved function takes its mutations along."""
    holding = [(path, count) for path in _product_files(root) if (count := path.read_text().count(old))]
    if sum(count for _path, count in holding) != 1:
        places = ", ".join(str(path.relative_to(root)) for path, _count in holding) or "nowhere"
        raise LookupError(f"must occur once, but is in {places}: {old!r}")
    return holding[0][0]


def tests_by_id() -> Tests:
    """Tell which tests name each id: in their docstring, their comments, or those of their class or module."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.parent.name == "architecture":
            continue
        for identifier, node in _named_in(path):
            found[identifier].add(f"{path.relative_to(ROOT)}{node}")
    return found


def run(mutations: Sequence[Mutation], tests: Tests) -> Iterator[Verdict]:
    """Judge each mutation in a copy of the repository, as many at a time as there are cores."""
    workers = min(len(os.sched_getaffinity(0)), len(mutations)) or 1
    with tempfile.TemporaryDirectory(prefix="facho-mutations-") as folder, ThreadPoolExecutor(workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(_copy(Path(folder) / str(number)))

        def judge_in_a_copy(mutation: Mutation) -> Verdict:
            copy = copies.get()
            try:
                return _judge(mutation, tests, copy)
            finally:
                copies.put(copy)

        yield from pool.map(judge_in_a_copy, mutations)


def _judge(mutation: Mutation, tests: Tests, copy: Path) -> Verdict:
    unnoticed, reports = [], []
    with _applied(mutation, copy) as place:
        options = [f"--database={mutation.database}", "--hypothesis-profile=mutations"]
        # To migrate takes longer than most tests: once is enough, unless a migration is what was changed.
        if "migrations" not in place.parts:
            options.append(f"--migrated={copy.with_name(f'{copy.name}-migrated')}")
        for identifier in mutation.ids:
            for which in (QUICK, SLOW):
                code, report = _pytest(["-m", which, *options, *sorted(tests[identifier])], copy)
                reports.append(report[-3000:])
                # Whatever keeps the tests from being read breaks everything, and shows nothing.
                failed = FAILED.findall(report) if code == 1 else []
                if any(_is_within(test, named) for test in failed for named in tests[identifier]):
                    break
            else:
                unnoticed.append(identifier)
    return Verdict(mutation, tuple(unnoticed), "\n".join(reports))


def _pytest(arguments: Sequence[str], copy: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "--quiet", "--exitfirst", "--tb=line", "-rfE", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(copy / "src")}
    with tempfile.TemporaryFile("w+") as report:
        process = subprocess.Popen(command, cwd=copy, env=environ, stdout=report, stderr=subprocess.STDOUT)
        try:
            code = process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            code = -1
        report.seek(0)
        return code, report.read() + ("" if code >= 0 else f"\nnot done after {PATIENCE_SECONDS} s")


@contextmanager
def _applied(mutation: Mutation, copy: Path) -> Iterator[Path]:
    path = find_place(mutation.old, copy)
    text = path.read_text()
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        yield path
    finally:
        path.write_text(text)


def _copy(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=LEFT_BEHIND, symlinks=True)
    return folder


def _product_files(root: Path) -> Iterator[Path]:
    for folder in PRODUCT:
        yield from (path for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES)


def _is_chosen(mutation: Mutation, words: Sequence[str]) -> bool:
    return not words or any(word in mutation.ids or word in mutation.what for word in words)


def _is_within(test: str, named: str) -> bool:
    """Tell whether the failed test is what names the requirement, or a part of it (a module, a class)."""
    return test == named or test.startswith(f"{named}::")


def _named_in(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    for node, name in _documented(tree):
        for identifier in requirements.IDENTIFIER.findall(ast.get_docstring(node) or ""):
            yield identifier, name
    places = [
        (node, name) for node, name in _documented(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    with tokenize.open(path) as file:
        comments = [token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    for comment in comments:
        # A comment is about the function that contains it, or about the next one.
        around = [name for node, name in places if (node.end_lineno or 0) >= comment.start[0]]
        for identifier in requirements.IDENTIFIER.findall(comment.string):
            yield identifier, around[0] if around else ""


def _documented(
    tree: ast.Module,
) -> Iterator[tuple[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    yield tree, ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node, f"::{node.name}"
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and member.name.startswith("test"):
                    yield member, f"::{node.name}::{member.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node, f"::{node.name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
