"""The package is built with the compiled decoder where a compiler is, and without it elsewhere."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatch_build import find_version

ROOT = Path(__file__).parents[2]
MODULE = "facho/polling/snmp/_pages.abi3.so"


def build_wheel(folder: Path, path: str) -> tuple[Path, list[str]]:
    """Build a copy of the checkout with the programs of a PATH; return the wheel and the files in it."""
    checkout = folder / "checkout"
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"],
        cwd=checkout,
        env={"PATH": path},
        check=True,
    )
    (wheel,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as opened:
        return wheel, opened.namelist()


def test_a_wheel_has_the_compiled_decoder_for_every_later_python(tmp_path: Path) -> None:
    wheel, files = build_wheel(tmp_path, os.environ["PATH"])

    assert "-cp311-abi3-" in wheel.name
    assert MODULE in files


def test_without_a_compiler_the_wheel_is_for_any_machine(tmp_path: Path) -> None:
    wheel, files = build_wheel(tmp_path, str(tmp_path / "no-programs"))

    assert wheel.name.endswith("-py3-none-any.whl")
    assert MODULE not in files
    assert "facho/polling/snmp/python_pages.py" in files


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.net"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with a module, under no version control."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/module.py").write_text("a = 1\n")
    return tmp_path


def test_every_commit_has_a_version_of_its_own_and_a_tag_is_a_release(sources: Path) -> None:
    git(sources, "init", "--quiet")
    git(sources, "add", ".")
    git(sources, "commit", "--quiet", "-m", "First")
    first = find_version(sources)
    git(sources, "tag", "v0.3.0")
    released = find_version(sources)
    git(sources, "commit", "--quiet", "--allow-empty", "-m", "Second")
    after = find_version(sources)
    (sources / "src/module.py").write_text("a = 2\n")

    assert re.fullmatch(r"0\.1\.0\.dev1\+g[0-9a-f]{7,}", first)
    assert released == "0.3.0"
    assert re.fullmatch(r"0\.3\.1\.dev1\+g[0-9a-f]{7,}", after)
    assert find_version(sources) == f"{after}.dirty"


def test_without_git_the_sources_themselves_are_the_version(sources: Path) -> None:
    first = find_version(sources)
    (sources / "src/module.py").write_text("a = 2\n")

    assert re.fullmatch(r"0\.1\.0\+s[0-9a-f]{10}", first)
    assert find_version(sources) != first


def test_an_sdist_keeps_its_version_even_within_another_checkout(sources: Path) -> None:
    git(sources, "init", "--quiet")
    inner = sources / "facho-1.2.3"
    inner.mkdir()
    (inner / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: facho\nVersion: 1.2.3\n")

    assert find_version(inner) == "1.2.3"
