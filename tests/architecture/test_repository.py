"""The repository keeps its own rules: size, names, docstrings, imports, and nothing of the machine it was made on."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from facho.polling.vendors.loader import GENERIC_KEY, load_definitions

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PRODUCT = sorted((ROOT / "src").rglob("*.py"))
HANDWRITTEN = [path for path in PRODUCT if "migrations" not in path.parts] + sorted((ROOT / "tools").glob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MIGRATIONS = [path for path in PRODUCT if path.parent.name == "migrations"]
LONGEST_MODULE = 700
LONGEST_TEST_MODULE = 500
# The loop guards and the runner's boundary; each says why on its line.
BROAD_EXCEPTS = [
    "src/facho/core/processes/housekeeping.py",
    "src/facho/core/processes/leader_watch.py",
    "src/facho/execution_coordinator/coordinator.py",
    "src/facho/executions/runner.py",
    "src/facho/zabbix_pollers/scheduler.py",
]
VAGUE_NAMES = {"utils", "helpers", "common", "misc", "base", "services", "manager"}
# Homes, registries, and this very checkout; written so that the pattern does not find itself.
MACHINE = re.compile(
    r"/(?:hom[e]|roo[t]|User[s])/\w|[p]ypi\.|[p]ythonhosted|[/]simple/|[-]-(?:extra-)?index-url|[-]-find-links"
    rf"|(?<![\w./]){re.escape(str(ROOT))}/"
)
# Where every vendor has the numbers of its own.
ENTERPRISES = r"1\.3\.6\.1\.4\.1\b|1, 3, 6, 1, 4, 1\b"


def relative(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def calls_in(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def has_virtual_time(path: Path) -> bool:
    """Tell a test whose event loop has a clock of its own, by itself or by its folder: a sleep there takes no time."""
    conftest = path.with_name("conftest.py")
    texts = [path.read_text(), conftest.read_text() if conftest.exists() else ""]
    return any("virtual_loop" in text for text in texts)


def is_sleep(call: ast.Call, path: Path) -> bool:
    """Tell a call that waits for real time; giving way to other tasks with 0 is none."""
    name = ast.unparse(call.func)
    if name == "asyncio.sleep":
        return ast.unparse(call.args[0]) != "0" and not has_virtual_time(path)
    return name in ("time.sleep", "sleep")


def test_no_file_tells_of_the_machine_it_was_made_on() -> None:
    texts = {path: path.read_bytes().decode(errors="ignore") for path in tracked_files()}
    found = [f"{path.relative_to(ROOT)}: {match}" for path, text in texts.items() for match in MACHINE.findall(text)]

    assert found == []


def test_no_module_is_too_long() -> None:
    limits = [(HANDWRITTEN, LONGEST_MODULE), (TESTS, LONGEST_TEST_MODULE)]
    long = [path for paths, limit in limits for path in paths if len(path.read_text().splitlines()) > limit]

    assert relative(long) == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path
        for path in HANDWRITTEN + TESTS
        if (text := path.read_text()).strip() and not ast.get_docstring(ast.parse(text))
    ]

    assert relative(silent) == []


def test_module_names_say_something() -> None:
    assert relative([path for path in HANDWRITTEN + TESTS if path.stem in VAGUE_NAMES]) == []


def test_no_two_test_modules_have_one_name() -> None:
    """Pytest imports them by it, so `pytest tests` would stop at the second."""
    names = Counter(path.name for path in TESTS if path.name.startswith("test_"))

    assert [name for name, count in names.items() if count > 1] == []


def test_no_code_names_a_brand_or_an_oid_of_one() -> None:
    """A vendor is data: whatever is true of one brand stands in its definition."""
    brands = {each.brand.lower() for each in load_definitions().values() if each.key != GENERIC_KEY}
    assert len(brands) > 9
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(brands)))})\b|{ENTERPRISES}", re.IGNORECASE)
    code = [path for kind in ("py", "html", "js", "css") for path in sorted((ROOT / "src").rglob(f"*.{kind}"))]

    assert relative([path for path in code if named.search(path.read_text())]) == []


def test_few_places_catch_everything_and_each_says_why() -> None:
    lines = [
        (path, line) for path in HANDWRITTEN for line in path.read_text().splitlines() if "except Exception" in line
    ]

    assert relative([path for path, _line in lines]) == BROAD_EXCEPTS
    assert [line for _path, line in lines if "#" not in line] == []


def test_migrations_import_nothing_of_the_product() -> None:
    """What they did to a database yesterday must not change with the code of today."""
    imports = re.compile(r"^\s*(?:from|import) (?:facho|\.)", re.MULTILINE)

    assert len(MIGRATIONS) > 9
    assert relative([path for path in MIGRATIONS if imports.search(path.read_text())]) == []


def test_no_test_waits_for_time_to_pass() -> None:
    assert relative([path for path in TESTS if any(is_sleep(call, path) for call in calls_in(path))]) == []


def test_no_test_is_skipped() -> None:
    mark = re.compile(r"pytest\.skip\(|pytest\.importorskip\(|mark\.skip|mark\.xfail")

    skipping = [path for path in TESTS if path != Path(__file__) and mark.search(path.read_text())]

    # A bare Debian and a Docker are for root alone, where Debian's packages can be fetched: these say what was missing.
    assert relative(skipping) == ["tests/deploy/conftest.py"]


@pytest.mark.parametrize(("lock", "group"), [("run", "build"), ("dev", "dev")])
def test_every_dependency_is_locked_with_its_hashes(lock: str, group: str) -> None:
    grouped = [entry for entry in PROJECT["dependency-groups"][group] if isinstance(entry, str)]
    wanted = {re.split(r"[\[<>=~ ]", entry)[0] for entry in [*PROJECT["project"]["dependencies"], *grouped]}
    text = (ROOT / f"requirements/{lock}.txt").read_text()
    locked = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==\S+ .*\n +--hash=sha256:", text, re.MULTILINE)

    assert wanted - set(locked) == set(), "run `make lock`"
    assert len(locked) == len(re.findall(r"^\w", text, re.MULTILINE))


def test_every_package_stands_in_a_layer() -> None:
    config = PROJECT["tool"]["importlinter"]
    (rooms,) = (contract for contract in config["contracts"] if contract.get("containers") == ["facho"])
    layered = {room for layer in rooms["layers"] for room in re.findall(r"\w+", layer)}

    assert layered == {path.name for path in (ROOT / "src/facho").iterdir() if (path / "__init__.py").exists()}


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("hosts", "import facho.executions"),
        ("polling/domain", "import facho.polling.snmp"),
        ("polling/snmp", "import django.conf"),
        ("polling/domain", "import time"),
        ("executions", "import facho.snmp_get"),
    ],
)
def test_a_forbidden_import_is_refused(tmp_path: Path, room: str, line: str) -> None:
    """The contracts hold, and are not empty: the same source with one wrong import breaks them."""
    copy = tmp_path / "src"
    subprocess.run(["cp", "-r", ROOT / "src", copy], check=True)
    (copy / "facho" / room / "intruder.py").write_text(line + "\n")

    command = [
        Path(sys.executable).with_name("lint-imports"),
        "--no-cache",
        "--no-logo",
        "--config",
        ROOT / "pyproject.toml",
    ]
    done = subprocess.run(command, cwd=copy, env={"PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "intruder" in done.stdout
