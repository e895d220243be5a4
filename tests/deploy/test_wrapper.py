"""The script that gives a command the settings of the service."""

import os
import subprocess
from pathlib import Path

import pytest
from deploy_files import DEPLOY


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """The script with places of its own; what it starts prints what it was given."""
    (tmp_path / "etc").mkdir()
    words = '"${0##*/}" "$FACHO_DATA_DIR" "${DATABASE_URL-}" "${FACHO_TIME_ZONE-}" "$@"'
    for program in (tmp_path / "programs/facho", tmp_path / "programs/celery"):
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' {words}\n")
        program.chmod(0o755)
    script = tmp_path / "facho"
    text = (DEPLOY / "facho").read_text()
    script.write_text(text.replace("/etc/facho", f"{tmp_path}/etc").replace("/opt/facho/bin", f"{tmp_path}/programs"))
    script.chmod(0o755)
    return script


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False)


def test_settings_are_read_as_systemd_reads_them_and_nothing_in_them_is_carried_out(wrapper: Path) -> None:
    """A password with a dollar or a semicolon is one, and quotes do not belong to the value."""
    url = "postgresql://facho:a$HOME;b&c`d@db/facho"
    (wrapper.parent / "etc/facho.env").write_text(
        f'# a comment\n\nDATABASE_URL={url}\nFACHO_TIME_ZONE="America/Bogota"\nFACHO_DATA_DIR=/srv/x'
    )

    done = run(wrapper, "olt", "add", "with space")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["facho", "/srv/x", url, "America/Bogota", "olt", "add", "with space"]


def test_a_worker_gets_the_same_settings(wrapper: Path) -> None:
    """As supervisor starts it."""
    (wrapper.parent / "etc/facho.env").write_text("DATABASE_URL=postgresql://facho:a$(id);b@db/facho\n")

    done = run(wrapper, "celery", "--app=facho.core", "worker")

    assert done.stdout.splitlines() == [
        *("celery", "/var/lib/facho", "postgresql://facho:a$(id);b@db/facho", ""),
        *("--app=facho.core", "worker"),
    ]


def test_without_a_file_the_usual_data_folder_counts(wrapper: Path) -> None:
    assert run(wrapper).stdout.splitlines()[1] == "/var/lib/facho"


def test_a_line_that_is_no_setting_is_refused(wrapper: Path) -> None:
    (wrapper.parent / "etc/facho.env").write_text("DATABASE_URL\n")

    assert run(wrapper).returncode == 78


@pytest.mark.parametrize("closed", ["etc", "etc/facho.env"])
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_run(wrapper: Path, closed: str) -> None:
    (wrapper.parent / "etc/facho.env").write_text("FACHO_DATA_DIR=/srv/x\n")
    (wrapper.parent / closed).chmod(0)
    for folder in wrapper.parents[:3]:
        folder.chmod(folder.stat().st_mode | 0o055)

    done = run(*AS_NOBODY, wrapper, "olt", "list")

    (wrapper.parent / closed).chmod(0o755)
    assert (done.returncode, done.stdout) == (78, "")
    assert "may not read" in done.stderr
    assert "sudo -u facho facho olt list" in done.stderr


# Root reads everything.
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
