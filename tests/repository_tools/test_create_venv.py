"""A missing or old Python is named together with the command that installs it."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools/create-venv"


def run(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, python], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def pretended_python(tmp_path: Path) -> Path:
    """A Python that fails at the statement which the test names in `fails-at`."""
    path = tmp_path / "python"
    path.write_text(f"""#!/bin/sh
case "$*" in *"$(cat {tmp_path}/fails-at)"*) exit 1;; *--version*) echo Python 3.9.2;; esac
""")
    path.chmod(0o755)
    return path


def test_no_python_at_all_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "python-that-is-not-there")

    assert done.returncode == 1
    assert "python-that-is-not-there is not installed" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_an_old_python_is_named_with_its_version(tmp_path: Path, pretended_python: Path) -> None:
    (tmp_path / "fails-at").write_text("version_info")

    done = run(tmp_path, str(pretended_python))

    assert done.returncode == 1
    assert "Python 3.9.2 is too old" in done.stderr


def test_a_missing_venv_module_is_named(tmp_path: Path, pretended_python: Path) -> None:
    (tmp_path / "fails-at").write_text("ensurepip")

    done = run(tmp_path, str(pretended_python))

    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_an_environment_that_works_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to("/bin/true")

    done = run(tmp_path, "python-that-is-not-there")

    assert (done.returncode, done.stderr) == (0, "")
