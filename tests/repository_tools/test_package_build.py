"""The package is built with the compiled decoder where a compiler is, and without it elsewhere."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

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
